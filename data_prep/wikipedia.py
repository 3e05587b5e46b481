"""A MediaWiki dump as one sentence a line: the articles' text passages (section 3.1).

    python -m data_prep.wikipedia --dump=enwiki-pages-articles-multistream.xml.bz2 --output=DIR

Reads .xml, .xml.bz2 (multistream or not) and .xml.gz, as it goes: memory does not grow with the
dump. Lists, tables, headers, references, templates, images, redirects, disambiguation pages and
other namespaces are left out (`wikitext.py`), then passages are split into sentences.
The dump says its language and its names of namespaces. A sentence that lost a formula or the words
of a template is left out; with --hole=MARK it is kept, with the mark in their place. The command
stops where less than half of the articles' text is kept; --accept_loss goes on. DIR holds

    wiki-00000.txt.gz, ...         the corpus, one article a document
    articles-00000.jsonl.gz, ...   a line for each document: id, revision, title, sentences
    report.json                    options, what was kept, and what was left out, by reason

Killed and run again, it continues behind the last finished file. Each worker takes stretches of a
.xml or a multistream .xml.bz2 file, unpacks them, and parses the XML and the wikitext
(`wikipedia_dump.py`). A file that cannot be cut (.gz, a .bz2 of one stream) is unpacked by one
process. The output does not depend on the number of workers.
"""

import functools
import itertools
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from absl import flags

from data_prep.corpus import shares
from data_prep.corpus.mediawiki import nodes, wikipedia_dump, wikitext
from data_prep.corpus.mediawiki.unclosed_markup import TooSlow
from data_prep.corpus.mediawiki.wikipedia_dump import Page, Stretch
from data_prep.corpus.sentence_splitter import split_sentences, splitter_version
from data_prep.corpus.text_files import INVALID_UTF8
from data_prep.jobs import checked_json, command_flags, commands, storage
from data_prep.jobs.output_folder import begin, earlier, locked
from data_prep.jobs.outputs import check_outputs
from data_prep.jobs.processes import Processes
from data_prep.jobs.progress import progress_bar
from official_bert.common.errors import UserError

_OF_TEXT = ("paragraphs", "sentences", "page: too short")  # these lower the share that is kept
_NUMBERS = (
    "pages", "articles", "sentences", "characters", "characters_found", "files", "invalid_utf8"
)  # fmt: skip
_WRITTEN = re.compile(r"wiki-\d+\.txt\.gz|articles-\d+\.jsonl\.gz")
_BATCH_BYTES = 1_000_000  # of XML for a worker at a time, where the dump has no stretches


class _Part(NamedTuple):
    """Some pages of a stretch, before or after a worker's work.

    The fields are (start, stop) of the stretch, the number of its pages before these, and the
    pages. With None the worker reads all further pages itself.
    """

    stretch: tuple[int, int | None]
    before: int
    pages: list | None
    seam: tuple[int | None, int | None] = (None, None)  # first and end of the stretch, when read


def article(
    page: Page, site: nodes.Site, min_characters: int, hole: str, dropped: Counter
) -> list[str]:
    """Return the sentences of a page, or [] where it is not an article or has too little text.

    Args:
      page: from `wikipedia_dump`.
      site: its language is that of sentence splitting.
      min_characters: articles with less text are left out.
      hole: see `wikitext.without_holes`.
      dropped: gets counts of what was left out; of pages by reason, "page: ...".
    """
    reason = wikitext.why_not_article(page.title, page.namespace, page.redirect, page.text)
    if reason is None and page.model not in ("", "wikitext"):
        reason = "not wikitext"
    if reason is None:
        try:
            passages = wikitext.passages(page.text, dropped, site)
        except TooSlow:
            passages, reason = [], "too slow"
        sentences = []
        for passage in passages:
            split = split_sentences(passage, site.language)
            sentences.extend(wikitext.without_holes(split, dropped, hole))
        if sum(map(len, sentences)) >= max(min_characters, 1):
            return sentences
        reason = reason or "too short"
    dropped[f"page: {reason}"] += 1
    return []


def extract(
    dump: str,
    output: str | os.PathLike,
    language: str = "",
    min_characters: int = 200,
    megabytes_per_file: float = 64,
    num_workers: int = 1,
    overwrite: bool = False,
    progress: bool = False,
    invalid_utf8: str = "error",
    hole: str = "",
    accept_loss: bool = False,
) -> dict:
    """Write the corpus of a dump; see the docstring of the module.

    Args:
      dump: MediaWiki dump: .xml, .xml.bz2 or .xml.gz.
      output: folder for the corpus.
      language: ISO 639 code, for sentence splitting; of wikis with variants also which one (zh-tw).
        By default what the dump says.
      min_characters: articles with less text are left out.
      megabytes_per_file: text of one output file.
      num_workers: processes.
      overwrite: rename an earlier output (DIR.~1~) and begin anew.
      progress: shows a bar on stderr.
      invalid_utf8: what to do with bytes that are not UTF-8; the report counts the pages that have
        such.
      hole: mark for a formula, or the words of a template, that a sentence lost; by default such
        sentences are left out.
      accept_loss: go on where less than half of the text is kept.

    Returns:
      The report: {"options", "pages", "articles", "sentences", "characters", "characters_found" (in
      all articles' text), "files", "dropped"}.

    Raises:
      UserError: the dump is missing, damaged or none; `output` was made with other options or of
        another dump, its content counting (unless `overwrite`), or is in use by another process;
        less than half of the text was kept (unless `accept_loss`).
    """
    output = str(output)
    check_outputs([dump], work=[output])
    with locked(output) as lock:
        site = wikipedia_dump.read_site(dump)
        if not site.named and (language or site.language or "en") != "en":
            print(f"{dump} does not name its namespaces: English names are taken", file=sys.stderr)
        site = site._replace(language=language or site.language or "en")
        options = {
            "dump": storage.fingerprint(dump),  # "latest" ones change under their name
            "language": site.language,
            "splitter": splitter_version(site.language),
            "min_characters": min_characters,
            "megabytes_per_file": megabytes_per_file,
            "invalid_utf8": invalid_utf8,
            "hole": hole,
        }
        report = _begin_or_continue(output, options, overwrite, lock)
        if not report["finished"]:
            work = functools.partial(
                _extract_part,
                dump=dump,
                site=site,
                min_characters=min_characters,
                invalid_utf8=invalid_utf8,
                hole=hole,
            )
            with Processes(num_workers) as processes:
                parts = _joined(dump, processes.map(work, _parts(dump, **report["next"])))
                for file in _files(parts, megabytes_per_file * 1e6, report["pages"], progress):
                    _write(output, report, *file)
                    _check_kept(report, accept_loss)
            if not report["pages"]:
                raise UserError(f"{dump} holds no page")
            report["finished"] = True
            checked_json.write(_report_path(output), report)
    if not report["articles"]:
        raise UserError(
            f"{dump}: no article with at least {min_characters} characters of text among "
            f"{report['pages']} pages; see {_report_path(output)}"
        )
    _check_kept(report, accept_loss)
    return report


def _check_kept(report, accept_loss):
    lost = {name: n for name, n in report["dropped"].items() if name.startswith(_OF_TEXT)}
    accepted = accept_loss or not report["articles"]
    shares.check_kept(_kept(report), report["characters_found"], lost, accepted)


def _kept(report):
    """Return the characters kept of those found, with a blank for each sentence, where there was
    one."""
    return min(report["characters"] + report["sentences"], report["characters_found"])


def _parts(dump: str, byte: int, pages: int) -> Iterator[_Part]:
    """Yield parts for workers, from the stretch at `byte` on, without its first `pages` pages."""
    stretches = wikipedia_dump.stretches(dump, byte)
    if len(stretches) > 1:
        yield _Part(stretches[0], pages, None)
        for stretch in stretches[1:]:
            yield _Part(stretch, 0, None)
        return
    # Pages that an earlier run finished are skipped, which costs little.
    stretch = Stretch(dump, *stretches[0])
    batch, size = [], 0
    for page in itertools.islice(stretch.pages(), pages, None):
        batch.append(page)
        size += len(page)
        if size >= _BATCH_BYTES:
            yield _Part(stretches[0], pages, batch)
            pages += len(batch)
            batch, size = [], 0
    if batch:
        yield _Part(stretches[0], pages, batch)


def _extract_part(part: _Part, dump, site, min_characters, invalid_utf8, hole) -> _Part:
    """Return the part with (document or None, counts of what was left out) of each page."""
    stretch = Stretch(dump, *part.stretch)
    pages = part.pages
    if pages is None:
        pages = itertools.islice(stretch.pages(), part.before, None)
    found = []
    for raw in pages:
        dropped = Counter()
        page = stretch.parse(raw, invalid_utf8, dropped)
        sentences = article(page, site, min_characters, hole, dropped)
        document = (page.identifier, page.revision, page.title, sentences)
        found.append((document if sentences else None, dropped))
    return part._replace(pages=found, seam=(stretch.first, stretch.end))


def _joined(dump: str, parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield the parts, checked to lack nothing between them.

    Raises:
      UserError: a stretch does not begin where the one before it ended.
    """
    ended = None
    for part in parts:
        first, end = part.seam
        if first is not None:
            if ended is not None and first != ended:
                raise UserError(f"{dump} is damaged or truncated after byte {ended:,}")
            ended = end
        yield part


def _files(parts: Iterator[_Part], size: float, pages_before: int, progress: bool):
    """Join pages to files of about `size` characters.

    Yield (pages, documents, dropped, place where the next file begins) of each.
    """
    pages, documents, dropped, characters = 0, [], Counter(), 0
    following = {}
    with progress_bar(progress, unit="page", initial=pages_before, leave=False) as bar:
        for part in parts:
            for number, (document, page_dropped) in enumerate(part.pages, part.before + 1):
                following = {"byte": part.stretch[0], "pages": number}
                pages += 1
                dropped.update(page_dropped)
                if document is not None:
                    documents.append(document)
                    characters += sum(map(len, document[-1]))
                if characters >= size:
                    yield pages, documents, dropped, following
                    pages, documents, dropped, characters = 0, [], Counter(), 0
            bar.update(len(part.pages))
    if pages:
        yield pages, documents, dropped, following


def _write(output: str, report: dict, pages, documents, dropped: Counter, following) -> None:
    if documents:
        if not report["files"]:
            checked_json.write(
                _report_path(output), report
            )  # before anything else, as `begin` asks
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
    report["invalid_utf8"] += dropped.pop("invalid_utf8", 0)
    report["characters_found"] += dropped.pop("characters found", 0)
    report["next"] = following
    total = Counter(report["dropped"]) + dropped
    report["dropped"] = dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
    # From here on, a new run continues behind this file.
    checked_json.write(_report_path(output), report)


def _write_text(path: str, text: str) -> None:
    with storage.writing(path) as raw, storage.gzipped(raw) as file:
        file.write(text.encode("utf-8"))


def _begin_or_continue(output: str, options: dict, overwrite: bool, lock) -> dict:
    """Return the report of an earlier run with these options, or begin a folder with an empty
    one."""
    record = _report_path(output)
    report = None if overwrite else earlier(record, options, output, "options")
    if report is not None:
        return report
    names = filter(_WRITTEN.fullmatch, storage.list_folder(output))
    begin(output, os.path.basename(record), names, overwrite, lock)
    numbers = dict.fromkeys(_NUMBERS, 0)
    start = {"byte": 0, "pages": 0}  # that many pages of the stretch at that byte are done
    return {"options": options, "finished": False, **numbers, "dropped": {}, "next": start}


def _report_path(output: str) -> str:
    return os.path.join(output, "report.json")


def main(argv) -> None:
    del argv
    start = time.monotonic()
    report = extract(progress=True, **command_flags.values(extract))
    print(
        f"{FLAGS.output}: {report['articles']:,} articles of {report['pages']:,} pages, "
        f"{report['sentences']:,} sentences, {report['characters'] / 1e6:.1f} M characters: "
        f"{_kept(report) / max(1, report['characters_found']):.1%} of the articles' text, "
        f"{report['files']} files in {time.monotonic() - start:.1f} s; language "
        f"{report['options']['language']}"
    )
    if report["invalid_utf8"]:
        print(f"{report['invalid_utf8']:,} pages with bytes that are not UTF-8")
    print("left out:")
    for reason, count in report["dropped"].items():
        print(f"  {count:>9,}  {reason}")


FLAGS = flags.FLAGS


def _define_flags() -> None:
    least = {"min_characters": 0, "megabytes_per_file": 0.001}
    command_flags.define(extract, least=least, invalid_utf8=INVALID_UTF8)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
