"""A hook of MkDocs: the site's files lie as they do in the repository, so that links hold in both.

`make docs` builds the site. Beside docs/ it shows README.md, the reports and what they link to, and
pages of the API, which are made of the docstrings here: one for each group of names.
"""

from pathlib import Path

from api_pages import GROUPS, page  # beside this file, which MkDocs loads by its path
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
SHOWN = (
    "*.md",
    "LICENSE",
    "CITATION.cff",
    "data_prep/sample/LICENSES.md",
    "docs/*.md",
    "docs/*.css",
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
    for group in GROUPS:
        shown.append(File.generated(config, f"docs/api/{group.file}.md", content=page(group)))
    return shown
