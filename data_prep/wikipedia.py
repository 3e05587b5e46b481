"""A MediaWiki dump to one sentence a line: the articles' text passages (section 3.1).

    python -m data_prep.wikipedia --dump=enwiki-pages-articles-multistream.xml.bz2 --output=DIR

Reads .xml, .xml.bz2 (multistream or not) and .xml.gz, as it goes: memory does not grow with the
dump. Lists, tables, headers, references, templates, images, redirects, disambiguation pages and
other namespaces are left out (`data_prep.corpus.wikitext`), then passages are split into sentences.
DIR holds

    wiki-00000.txt.gz, ...         the corpus, one article a document
    articles-00000.jsonl.gz, ...   a line for each document: id, revision, title, sentences
    report.json                    options, what was kept, and what was left out, by reason

Killed and run again, it continues behind the last finished file. The files do not depend on the
number of workers. One process parses the XML, at 12 MB/s on one core here; the others the
articles, at 3 MB/s of wikitext each.
"""

import functools
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from absl import flags

from data_prep.corpus import wikitext
from data_prep.corpus.sentence_splitter import split_sentences
from data_prep.corpus.text_files import DamagedFile, open_bytes
from data_prep.jobs import storage
from data_prep.jobs.output_folder import earlier, locked
from data_prep.jobs.processes import Processes, available_cores
from data_prep.jobs.progress import progress_bar
from official_bert import commands
from official_bert.errors import UserError

_BATCH_CHARACTERS = 1_000_000  # of wikitext, for a worker at a time


class Page(NamedTuple):
    """One <page> of a dump; `text` is its first revision's wikitext."""

    identifier: int
    revision: int
    title: str
    namespace: int
    redirect: bool
    model: str
    text: str


def read_pages(dump: str) -> Iterator[Page]:
    """Yields the pages of a dump in order; memory holds one.

    Raises:
      UserError: the file is missing, is damaged or truncated (with the last page), is not a
        MediaWiki dump, or holds no page.
    """
    from xml.etree import ElementTree

    last, root = None, None
    try:
        with open_bytes(dump) as file:
            for event, element in ElementTree.iterparse(file, events=("start", "end")):
                tag = element.tag.rpartition("}")[2]
                if root is None:
                    root = element
                    if tag != "mediawiki":
                        raise UserError(f"{dump}: no MediaWiki dump (its root is <{tag}>)")
                if event == "end" and tag == "page":
                    last = _page(element)
                    yield last
                    root.clear()  # pages that were read would pile up in their parent
    except (ElementTree.ParseError, ValueError, DamagedFile) as error:
        where = f"after page {last.title!r}" if last else "before its first page"
        raise UserError(f"{dump} is damaged or truncated {where}: {error}") from None
    if last is None:
        raise UserError(f"{dump} holds no page")


def article(page: Page, language: str, min_characters: int, dropped: Counter) -> list[str]:
    """The sentences of a page, [] where it is no article or has too little text.

    Args:
      page: from `read_pages`.
      language: for sentence splitting.
      min_characters: articles with less text are left out.
      dropped: counts what was left out; pages by reason under "page: ...".
    """
    kind = wikitext.page_kind(page.title, page.namespace, page.redirect, page.text)
    if kind is None and page.model not in ("", "wikitext"):
        kind = "not wikitext"
    if kind is None:
        sentences = []
        for passage in wikitext.passages(page.text, dropped):
            split = split_sentences(passage, language)
            sentences.extend(wikitext.without_holes(split, dropped))
        if sum(map(len, sentences)) >= max(min_characters, 1):
            return sentences
        kind = "too short"
    dropped[f"page: {kind}"] += 1
    return []


def extract(
    dump: str,
    output: str | os.PathLike,
    language: str = "en",
    min_characters: int = 200,
    megabytes_per_file: float = 64,
    num_workers: int = 1,
    overwrite: bool = False,
    progress: bool = False,
) -> dict:
    """Writes the corpus of a dump; see the module's docstring.

    Returns:
      The report: {"options", "pages", "articles", "sentences", "characters", "files", "dropped"}.

    Raises:
      UserError: as `read_pages`, or `output` was made with other options (unless `overwrite`) or is
        in use by another process.
    """
    output = str(output)
    options = {
        "dump": storage.absolute(dump),
        "language": language,
        "min_characters": min_characters,
        "megabytes_per_file": megabytes_per_file,
    }
    with locked(output):
        report = _begin_or_continue(output, options, overwrite)
        if report["finished"]:
            return report
        # What an earlier run had finished is read over, which costs little.
        pages = itertools.islice(read_pages(dump), report["pages"], None)
        work = functools.partial(_extract_batch, language=language, min_characters=min_characters)
        with Processes(num_workers) as processes:
            documents = processes.map(work, _batches(pages))
            for batch in _files(documents, megabytes_per_file * 1e6, report["pages"], progress):
                _write(output, report, *batch)
        report["finished"] = True
        storage.write_json(_report_path(output), report)
    if not report["articles"]:
        raise UserError(
            f"{dump}: no article with at least {min_characters} characters of text among "
            f"{report['pages']} pages; see {_report_path(output)}"
        )
    return report


def _page(element) -> Page:
    space = element.tag.rpartition("page")[0]

    def find(*path):
        return element.findtext("/".join(space + name for name in path)) or ""

    return Page(
        int(find("id") or 0),
        int(find("revision", "id") or 0),
        find("title"),
        int(find("ns") or 0),
        element.find(f"{space}redirect") is not None,
        find("revision", "model"),
        find("revision", "text"),
    )


def _batches(pages) -> Iterator[list[Page]]:
    batch, characters = [], 0
    for page in pages:
        # The reason is found from the first lines; the text of other pages need not travel.
        batch.append(page if page.namespace == 0 else page._replace(text=""))
        characters += len(batch[-1].text) + 100
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _extract_batch(pages: list[Page], language: str, min_characters: int):
    dropped, documents = Counter(), []
    for page in pages:
        sentences = article(page, language, min_characters, dropped)
        if sentences:
            documents.append((page.identifier, page.revision, page.title, sentences))
    return len(pages), documents, dropped


def _files(batches, size: float, pages_before: int, progress: bool):
    """Joins batches to files of about `size` characters: (pages, documents, dropped) of each."""
    pages, documents, dropped, characters = 0, [], Counter(), 0
    with progress_bar(progress, unit="page", initial=pages_before, leave=False) as bar:
        for batch_pages, batch_documents, batch_dropped in batches:
            pages += batch_pages
            documents.extend(batch_documents)
            dropped.update(batch_dropped)
            characters += sum(len(s) for document in batch_documents for s in document[-1])
            bar.update(batch_pages)
            if characters >= size:
                yield pages, documents, dropped
                pages, documents, dropped, characters = 0, [], Counter(), 0
    if pages:
        yield pages, documents, dropped


def _write(output: str, report: dict, pages: int, documents: list, dropped: Counter) -> None:
    if documents:
        number = report["files"]
        texts = ("\n".join(sentences) + "\n" for *_, sentences in documents)
        _write_text(os.path.join(output, f"wiki-{number:05d}.txt.gz"), "\n".join(texts))
        entries = (
            {"id": identifier, "revision": revision, "title": title, "sentences": len(sentences)}
            for identifier, revision, title, sentences in documents
        )
        lines = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        _write_text(os.path.join(output, f"articles-{number:05d}.jsonl.gz"), lines)
        report["files"] += 1
    report["pages"] += pages
    report["articles"] += len(documents)
    report["sentences"] += sum(len(document[-1]) for document in documents)
    report["characters"] += sum(len(s) for document in documents for s in document[-1])
    total = Counter(report["dropped"]) + dropped
    report["dropped"] = dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
    # From here on, a new run continues behind this file.
    storage.write_json(_report_path(output), report)


def _write_text(path: str, text: str) -> None:
    with storage.writing(path) as raw, storage.packing(raw) as file:
        file.write(text.encode("utf-8"))


def _begin_or_continue(output: str, options: dict, overwrite: bool) -> dict:
    """The report of an earlier run with the same options, or an empty one in an emptied folder."""
    report = None if overwrite else earlier(_report_path(output), options, output, "options")
    if report is not None:
        return report
    for pattern in ("wiki-*.txt.gz", "articles-*.jsonl.gz"):
        for old in storage.matches(os.path.join(output, pattern)):
            storage.remove(old)
    numbers = dict.fromkeys(["pages", "articles", "sentences", "characters", "files"], 0)
    return {"options": options, "finished": False, **numbers, "dropped": {}}


def _report_path(output: str) -> str:
    return os.path.join(output, "report.json")


def main(argv) -> None:
    del argv
    start = time.monotonic()
    report = extract(
        FLAGS.dump,
        FLAGS.output,
        language=FLAGS.language,
        min_characters=FLAGS.min_characters,
        megabytes_per_file=FLAGS.megabytes_per_file,
        num_workers=FLAGS.num_workers,
        overwrite=FLAGS.overwrite,
        progress=True,
    )
    print(
        f"{FLAGS.output}: {report['articles']:,} articles of {report['pages']:,} pages, "
        f"{report['sentences']:,} sentences, {report['characters'] / 1e6:.1f} M characters, "
        f"{report['files']} files in {time.monotonic() - start:.1f} s"
    )
    print("left out:")
    for reason, count in report["dropped"].items():
        print(f"  {count:>9,}  {reason}")


FLAGS = flags.FLAGS


def define_flags() -> None:
    flags.DEFINE_string("dump", None, "MediaWiki dump: .xml, .xml.bz2 or .xml.gz.", required=True)
    flags.DEFINE_string("output", None, "Folder for the corpus.", required=True)
    flags.DEFINE_string("language", "en", "ISO 639 code, for sentence splitting.")
    flags.DEFINE_integer("min_characters", 200, "Leave out shorter articles.", lower_bound=0)
    flags.DEFINE_float("megabytes_per_file", 64, "Text of one output file.", lower_bound=0.001)
    flags.DEFINE_integer("num_workers", available_cores(), "Processes.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Replace an output made with other options.")


if __name__ == "__main__":
    define_flags()
    commands.run(main)
