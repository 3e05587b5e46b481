"""A Wikipedia page with the same content in every script: its sentences against those written."""

import gzip
import tempfile
from pathlib import Path

from tests.parity.results import Result, Results, check

SCRIPTS = Path(__file__).parents[1] / "data_prep" / "scripts.txt"
_UNSPACED = ("zh", "ja")
_DUMP = """<mediawiki xml:lang="{language}"><siteinfo><namespaces>
<namespace key="6">{files}</namespace><namespace key="14">X {files}</namespace>
</namespaces></siteinfo><page><title>T</title><ns>0</ns><id>1</id><revision><id>1</id><text>
[[{files}:a|thumb|{text}]]
{text}

{text} [[x_{files}:A b. C.]]
[[{language}x:{files}]]</text></revision></page></mediawiki>
"""


def pages() -> list[tuple[str, str, str, list[str]]]:
    """(script, language, the wiki's name of files, sentences) of each page."""
    lines = SCRIPTS.read_text("utf-8").splitlines()
    rows = [line.split("|") for line in lines if not line.startswith("#")]
    return [(script, language, files, parts) for script, language, files, *parts in rows]


def joined(language: str, sentences: list[str]) -> str:
    return ("" if language in _UNSPACED else " ").join(sentences)


def extracted(language: str, files: str, sentences: list[str]) -> tuple[list[str], dict]:
    """Run `data_prep.wikipedia` on two paragraphs of the sentences; returns lines and report."""
    from data_prep.wikipedia import extract

    with tempfile.TemporaryDirectory() as folder:
        dump, text = Path(folder, "dump.xml"), joined(language, sentences)
        dump.write_text(_DUMP.format(language=language, files=files, text=text), "utf-8")
        report = extract(str(dump), f"{folder}/out", min_characters=10)
        with gzip.open(f"{folder}/out/wiki-00000.txt.gz", "rt", encoding="utf-8") as file:
            return file.read().splitlines(), report


@check()
def sentences_of_scripts() -> Results:
    """Return the same number of sentences in every script, and the same ones."""
    for script, language, files, sentences in pages():
        wanted = 2 * sentences
        found, _ = extracted(language, files, sentences)
        differ = len(set(enumerate(found)) ^ set(enumerate(wanted)))
        what = f"sentences of one page that differ, of {len(wanted)}: {script}, {language}"
        yield Result(what, "the page as written", differ, 0)
