"""A hook of MkDocs: the site's files lie as they do in the repository, so that links hold in both.

`make docs` builds the site. Beside docs/ it shows README.md, the reports and what they link to, and
a page of the API, which is made of the docstrings here.
"""

from pathlib import Path

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

import official_bert.export

ROOT = Path(__file__).parents[1]
SHOWN = (
    "*.md",
    "LICENSE",
    "CITATION.cff",
    "data_prep/sample/LICENSES.md",
    "docs/*.md",
    "docs/images/*",
    "docs/notebooks/*.ipynb",
    "experiments/results/**/*.md",
    "experiments/results/**/*.json",
    "experiments/results/**/*.svg",
    "benchmarks/README.md",
    "benchmarks/results/**/*",
    "official_bert/embedded/*/README.md",
)


@event_priority(100)  # before the notebooks are looked for
def on_files(files, config):
    """Return the repository's files in place of those of docs/, whose paths would begin inside
    it."""
    shown = Files([file for file in files if file.src_dir != config.docs_dir])
    for path in sorted({path for pattern in SHOWN for path in ROOT.glob(pattern)}):
        if path.is_file():
            place = path.relative_to(ROOT).as_posix()
            shown.append(File(place, str(ROOT), config.site_dir, config.use_directory_urls))
    shown.append(File.generated(config, "docs/api.md", content=api()))
    return shown


def api() -> str:
    """Return a page with every public name of `official_bert` and `official_bert.export`."""
    parts = ["# API"]
    for module in (official_bert, official_bert.export):
        parts.append(f"What `import {module.__name__}` gives.")
        parts += [f"::: {module.__name__}.{home}.{name}" for name, home in module._HOME_OF.items()]
    return "\n\n".join(parts) + "\n"
