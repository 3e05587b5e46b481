"""Text to one sentence a line, a blank line between documents: the corpus format of the paper.

    python -m data_prep.sentences --input='books/*.txt' --output=corpus --documents=chapters
    python -m data_prep.sentences --input=extracted --output=corpus            # WikiExtractor's
    python -m data_prep.sentences --input='c4/*.json.gz' --output=corpus --text_field=text
    python -m data_prep.sentences --input='zh/*.txt' --output=corpus --documents=files --language=zh

`--documents` says where documents begin (`data_prep.corpus.sources`): at chapter headings, at blank
lines, at every line, or at files. It may be left out where the text shows it: books of numbered
chapters, WikiExtractor's output, JSON Lines and Parquet. Each input file becomes one output file.
Corpora of TensorFlow Datasets go by name, for example --input=tfds:wiki40b/en
(`data_prep.corpus.tfds_corpora`).
"""

import contextlib
import dataclasses
import functools
import io
import os
import re
import time
from collections import Counter

from absl import flags

from data_prep.corpus import shares, sources, tfds_corpora
from data_prep.corpus.input_files import each_once, expand_inputs, places_of, split_patterns
from data_prep.corpus.packed_files import unpacked_name
from data_prep.corpus.sentence_splitter import split_sentences, splitter_version
from data_prep.corpus.sources import LAYOUTS, Reading
from data_prep.corpus.text_files import INVALID_UTF8
from data_prep.jobs import checked_json, command_flags, commands, storage
from data_prep.jobs.output_folder import begin, earlier, locked
from data_prep.jobs.outputs import check_outputs
from data_prep.jobs.processes import Processes
from data_prep.jobs.progress import progress_bar
from official_bert.common.errors import UserError, first_of

_LOST = "lost: "  # prefix of the counts of `sources.documents` of text that was left out
_MANY_STOPPED = 0.1  # share of the lines, where there are at least
_ENOUGH_LINES = 100
_ENOUGH_DOCUMENTS = 10

__all__ = ["LAYOUTS", "split_file", "split_files", "split_sentences"]


def split_file(source: str, target: str | os.PathLike, reading: Reading) -> dict[str, int]:
    """Write one source as sentences; gzip where `target` ends in .gz.

    Returns:
      Counts: "documents", "sentences" and "characters" that were written, and the counts of
      `sources.documents` of the text that was read.
    """
    counts = {"documents": 0, "sentences": 0, "characters": 0}
    read = Counter(characters_read=0)
    with _text_writer(str(target)) as file:
        for document in sources.documents(source, reading, read):
            sentences = [s for p in document for s in split_sentences(p, reading.language)]
            if not sentences:
                continue
            if counts["documents"]:
                file.write("\n")
            file.write("\n".join(sentences) + "\n")
            counts["documents"] += 1
            counts["sentences"] += len(sentences)
            counts["characters"] += sum(map(len, sentences))
    return counts | read


def split_files(
    inputs: str | list[str],
    output: str | os.PathLike,
    layout: str = "",
    language: str = "en",
    compress: bool = True,
    num_workers: int = 1,
    overwrite: bool = False,
    progress: bool = False,
    accept_loss: bool = False,
    **reading,
) -> dict[str, dict[str, int]]:
    """Split every input file into `output`, and write options and counts to sentences.json.

    Files that an earlier call with the same options finished, and whose input has not changed
    since, are skipped: an interrupted call continues. A file's bytes do not depend on
    `num_workers`.

    Args:
      output: folder for the sentence files.
      layout: "" for the layout that the text shows (`sources.find_layout`).
      language: ISO 639 code: en, de, zh, ko, ...
      compress: write .txt.gz rather than .txt.
      num_workers: processes.
      overwrite: rename an earlier output (DIR.~1~) and begin anew.
      accept_loss: go on where less than half of the text is kept.
      **reading: further fields of `sources.Reading`.

    Returns:
      Counts of each output file, as `split_file`, by name.

    Raises:
      UserError: an unknown layout or none where the text shows none, inputs as `expand_inputs`,
        `output` made with other options (unless `overwrite`) or in use by another process,
        nothing in any file, or less than half of the text kept (unless `accept_loss`).
    """
    paths = _expand(inputs)
    reading = _reading(paths, layout, language, reading)
    output = str(output)
    targets = dict(zip(_output_names(paths, compress), paths, strict=True))
    named = [*places_of(inputs), *(path for path in paths if not tfds_corpora.is_tfds(path))]
    check_outputs(named, work=[output])
    options = _options(reading, compress)
    record = os.path.join(output, "sentences.json")
    with locked(output) as lock:
        before = None if overwrite else earlier(record, options, output, "options")
        _begin(output, record, targets, before, overwrite, lock)
        done = before["files"] if before else {}
        entries, todo = _plan(targets, done, output)
        _save(record, options, done, todo)
        finished = _run(todo, output, reading, num_workers, progress, len(entries))
        _note(finished, entries, todo, output, record, options)
    files = {name: entries[name] for name in targets}
    total = _total(files)
    if not total["sentences"]:
        raise UserError(
            f"no sentence found in {len(paths)} files with --documents={reading.layout}; "
            f"is that how they are laid out? See --help"
        )
    shares.check_kept(total["characters"], total["characters_read"], _lost(total), accept_loss)
    return files


def _reading(paths, layout, language, fields) -> Reading:
    """Return how files are read; refuse fields that a file's layout does not have."""
    layout = sources.find_layout(paths, layout, fields.get("text_field", ""))
    reading = Reading(layout, language, **fields)
    others = [path for path in paths if layout != "rows" or tfds_corpora.is_tfds(path)]
    for name in ("text_field", "document_column"):
        if others and getattr(reading, name):
            how = f"read as {layout}" if layout != "rows" else "a corpus of TensorFlow Datasets"
            raise UserError(f"--{name} is of rows, JSON Lines or Parquet; {others[0]} is {how}")
    return reading


def _options(reading: Reading, compress: bool) -> dict:
    """Return what decides the bytes of the output, for its record."""
    fields = dataclasses.asdict(reading)
    options = {"splitter": splitter_version(reading.language), "compress": compress}
    options |= {"documents": fields.pop("layout"), **fields}
    if not reading.document_column:
        del options["document_column"]  # outputs from before this option go on
    return options


def _plan(targets: dict, done: dict, output: str) -> tuple[dict, dict]:
    """Return ({name: entry} of finished files, {name: (source, its state)} of those to be made).

    Entries of files that this call does not read stay, like the files themselves.
    """
    entries, todo = {name: entry for name, entry in done.items() if name not in targets}, {}
    for name, source in targets.items():
        state, entry = _input_state(source), done.get(name)
        if entry and entry["input"] == state and storage.exists(os.path.join(output, name)):
            entries[name] = entry
        else:
            todo[name] = (source, state)
    return entries, todo


def _note(finished, entries: dict, todo: dict, output: str, record: str, options: dict) -> None:
    """Add files to `entries` and to the record as they are finished."""
    last_saved = 0.0
    try:
        for name, counts in finished:
            entries[name] = {"input": todo[name][1], **counts}
            if time.monotonic() - last_saved > 2:
                _save(record, options, entries, todo)
                last_saved = time.monotonic()
    finally:
        begun = todo.keys() - entries  # other workers may have finished them behind an error
        if entries or any(storage.exists(os.path.join(output, name)) for name in begun):
            _save(record, options, entries, begun)
        else:  # nothing was made with these options
            storage.remove(record)


def _expand(inputs: str | list[str]) -> list[str]:
    """Return the files, or the parts of TensorFlow Datasets' corpora, in the given order."""
    found = []
    for name in split_patterns(inputs):
        found += tfds_corpora.slices(name) if tfds_corpora.is_tfds(name) else expand_inputs(name)
    return each_once(found) or expand_inputs(inputs)


@contextlib.contextmanager
def _text_writer(path: str):
    """Open a text file that appears when the block succeeds; gzip if its name ends in .gz."""
    with contextlib.ExitStack() as stack:
        binary = stack.enter_context(storage.writing(path))
        if path.endswith(".gz"):
            binary = stack.enter_context(storage.gzipped(binary))
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        text.detach()


def _run(todo, output, reading, num_workers, progress, already):
    """Yield (name, counts) as files are finished, in any order."""
    # The largest files come first, so that none keeps a single worker busy at the end.
    items = sorted(todo.items(), key=lambda item: -item[1][1]["bytes"])
    total = already + len(todo)
    with (
        Processes(max(1, min(num_workers, len(todo)))) as processes,
        progress_bar(progress, total=total, initial=already, unit="file", leave=False) as bar,
    ):
        split = functools.partial(_split_todo, output, reading)
        for name, counts in processes.map(split, items, in_order=False):
            yield name, counts
            bar.update()


def _split_todo(output, reading, item):
    name, (source, _) = item
    return name, split_file(source, os.path.join(output, name), reading)


def _output_names(paths: list[str], compress: bool) -> list[str]:
    """Return a flat name for each input: its own, with its folders where two inputs share it."""

    def name(path):
        stem = re.sub(r"\.(txt|jsonl|parquet)$", "", unpacked_name(path))
        return stem + (".txt.gz" if compress else ".txt")

    # "tfds:wiki40b/en@train[20000:40000]" becomes "wiki40b-en-train-000020000".
    paths = [
        re.sub(r"[/@]|\[(\d+):\d+\]", _dash_and_first, path.removeprefix(tfds_corpora.PREFIX))
        if tfds_corpora.is_tfds(path)
        else path
        for path in paths
    ]
    names = [name(os.path.basename(path)) for path in paths]
    if len(set(names)) < len(names):
        common = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
        names = [name(os.path.relpath(path, common).replace(os.sep, "-")) for path in paths]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise UserError(f"two inputs would both be written as {repeated[0]}; rename one of them")
    return names


def _dash_and_first(match) -> str:
    return "-" + (match.group(1) or "").zfill(9 if match.group(1) else 0)


def _begin(output: str, record: str, targets, before: dict | None, overwrite: bool, lock) -> None:
    """Begin the folder, or check that files with the targets' names are an earlier call's."""
    if before is None:
        begin(output, os.path.basename(record), targets, overwrite, lock)
        return
    ours = {*before["files"], *before.get("begun", ())}  # older records have no "begun"
    for path in (os.path.join(output, name) for name in targets if name not in ours):
        storage.check_free(path)


def _save(record: str, options: dict, entries: dict, begun) -> None:
    """Write the record; `begun` names files that may exist before they have an entry."""
    files = dict(sorted(entries.items()))
    content = {"options": options, "files": files, "begun": sorted(begun)}
    checked_json.write(record, content)


def _input_state(path: str) -> dict:
    if tfds_corpora.is_tfds(path):
        number, version = tfds_corpora.size(path)
        return {"path": path, "bytes": number, "modified": version}
    return {
        "path": storage.absolute(path),
        "bytes": storage.size(path),
        "modified": storage.modified(path),
    }


def _total(files: dict[str, dict[str, int]]) -> Counter:
    total = Counter()
    for counts in files.values():
        total.update({name: number for name, number in counts.items() if name != "input"})
    return total


def _lost(total: Counter) -> dict[str, int]:
    """Return the characters that were left out, by reason."""
    return {
        name.removeprefix(_LOST): number for name, number in total.items() if name.startswith(_LOST)
    }


def report(
    files: dict[str, dict[str, int]], title_stops: bool = False, document_column: str = ""
) -> list[str]:
    """Return lines that tell what was read and written, from the result of `split_files`."""
    total = _total(files)
    documents = max(1, total["documents"])
    # Wrapped lines are joined with blanks, which were not read.
    kept = min(1, total["characters"] / max(1, total["characters_read"]))
    lines = [
        f"{len(files)} files, {total['documents']:,} documents, {total['sentences']:,} sentences "
        f"({total['sentences'] / documents:.1f} a document), {total['characters'] / 1e6:.1f} M "
        f"characters: {kept:.0%} of those read"
    ]
    if total["invalid_utf8"]:
        lines.append(f"{total['invalid_utf8']:,} lines held bytes that are not UTF-8")
    if documents >= _ENOUGH_DOCUMENTS and total["sentences"] < 1.5 * documents:
        advice = "where rows are sentences, --document_column= names the field that says of which"
        if document_column:
            advice = (
                f"rows of one {document_column} are joined where they are neighbours: sort them"
            )
        lines.append(f"most documents are a single sentence, which has no next one; {advice}")
    if total["empty"]:
        lines.append(f"{total['empty']:,} rows hold no text")
    if lost := shares.by_reason(_lost(total)):
        lines.append(f"characters left out: {'; '.join(lost)}")
    many = total["stopped"] > _MANY_STOPPED * max(_ENOUGH_LINES, total["lines"])
    if many and not title_stops:
        lines.append(
            f"{total['stopped'] / total['lines']:.0%} of the lines are a few words and a full stop "
            "and were kept; if they are section titles (WikiExtractor's), pass --title_stops"
        )
    empty = [name for name, counts in files.items() if not counts["documents"]]
    if empty:
        lines.append(
            f"no document in {len(empty)} files, by the layout that was asked for: "
            f"{first_of(empty, 5)}"
        )
    return lines


def main(argv) -> None:
    del argv
    start = time.monotonic()
    options = command_flags.values(split_files) | command_flags.values(Reading)
    files = split_files(FLAGS.input, layout=FLAGS.documents or "", progress=True, **options)
    first, *others = report(files, FLAGS.title_stops, FLAGS.document_column)
    print(f"{FLAGS.output}: {first}, in {time.monotonic() - start:.1f} s", *others, sep="\n")


FLAGS = flags.FLAGS


def _define_flags() -> None:
    flags.DEFINE_string(
        "input",
        None,
        "Files, folders or globs, plain or compressed, or corpora of TensorFlow Datasets "
        "(tfds:wikipedia/20230601.en), whose documents need no --documents.",
        required=True,
    )
    flags.DEFINE_enum(
        "documents",
        None,
        LAYOUTS,
        "Where documents begin. chapters: at the headings of a book, whose paragraphs are "
        "separated by blank lines. articles: at blank lines; a line is a paragraph, the first the "
        "title. files: a file is a document. lines: a line is a document. wikiextractor: its "
        "blocks. rows: of JSON Lines or Parquet. By default what the text shows.",
    )
    command_flags.define(split_files, ("layout",))
    least = {"title_lines": 0}
    command_flags.define(Reading, ("layout", "language"), least, invalid_utf8=INVALID_UTF8)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
