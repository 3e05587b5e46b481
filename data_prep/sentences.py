"""Text to one sentence a line, a blank line between documents: the corpus format of the paper.

    python -m data_prep.sentences --input='books/*.txt' --output=corpus
    python -m data_prep.sentences --input='wiki_*.gz' --output=corpus --documents=articles
    python -m data_prep.sentences --input='zh/*.txt' --output=corpus --documents=files --language=zh

`--documents` says where documents begin (`data_prep.corpus.text_layout`): at chapter headings, at
blank lines, at every line, or at files. Each input file becomes one output file, plain or gzip.
Corpora of TensorFlow Datasets go by name, for example --input=tfds:wiki40b/en
(`data_prep.corpus.tfds_corpora`).

English is split by nupunkt, every other language by sentencex (both MIT, no downloads). In 35 short
real and hard English passages (tests/data_prep/hard_sentences.txt: quotations, dialogue,
abbreviations) nupunkt found all 49 inner sentence ends and 3 false ones at 7 MB/s; syntok missed 2
and made 6 false ones at 1.4 MB/s; sentencex, which never splits inside quotation marks, missed 12,
but knows some 300 languages. Two habits of nupunkt are repaired below.
"""

import contextlib
import functools
import gzip
import importlib.metadata
import io
import json
import multiprocessing
import os
import re
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from absl import flags

from data_prep.corpus import text_layout, tfds_corpora
from data_prep.corpus.documents import expand_inputs, is_remote, text_lines
from official_bert import commands
from official_bert.errors import UserError
from official_bert.files import atomic_write

LAYOUTS = ("chapters", "articles", "files", "lines")

# Written without blanks between words: wrapped lines are joined without one.
_NO_BLANKS = ("zh", "ja", "th", "lo", "km", "my", "bo", "yue", "wuu")
# Single-word "sentences" that are really the title of the name that follows.
_TITLES = re.compile(
    r"^[\"'“‘(\[]*(Lt|Gov|Cf|Capt|Maj|Sgt|Col|Gen|Rev|Hon|Messrs|Mme|Mlle|No|St)\.$"
)

# nupunkt, trained on law, takes a few words for abbreviations ("so." as Southern Reporter) and
# misses 0.7 % of the ends in novels: behind a lower-case word that never is one, before a capital.
_ABBREVIATIONS = frozenset(
    ("al", "approx", "ca", "cf", "ch", "col", "dept", "ed", "eds", "esp", "est", "etc", "ff", "fig")
    + ("figs", "fl", "incl", "nr", "op", "pp", "resp", "sc", "sec", "ser", "st", "tr", "trans")
    + ("viz", "vol", "vols", "vs")
)
_MISSED_END = re.compile(r"(?<![\w.])([a-z]{2,})[.!?][\"'”’]* (?=[\"'“‘]*[A-Z])")


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of one paragraph, each stripped, inner white space made single blanks.

    Nothing but white space is lost: the sentences joined with blanks are the paragraph.

    Args:
      text: one paragraph.
      language: an ISO 639 code ("en", "zh", "ko", "pt-br", ...).
    """
    text = " ".join(text.split())
    if not text:
        return []
    return _splitter(language)(text)


@functools.cache
def _splitter(language: str):
    if language == "en":
        import nupunkt

        def split_english(text):
            found = _rejoin(nupunkt.sent_tokenize(text))
            return [part for sentence in found for part in _split_missed(sentence)]

        return split_english
    import sentencex

    def split(text):
        stripped = (sentence.strip() for sentence in sentencex.segment(language, text))
        return [sentence for sentence in stripped if sentence]

    return split


def _split_missed(sentence: str) -> list[str]:
    parts, start = [], 0
    for match in _MISSED_END.finditer(sentence):
        if match.group(1) not in _ABBREVIATIONS:
            parts.append(sentence[start : match.end() - 1])
            start = match.end()
    parts.append(sentence[start:])
    return parts


def _rejoin(sentences: list[str]) -> list[str]:
    """Puts a lone title ("Lt.") in front of its name, and marks without words behind their text."""
    joined = []
    for sentence in sentences:
        wordless = not any(character.isalnum() for character in sentence)
        if joined and (_TITLES.match(joined[-1]) or wordless):
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined


def split_file(
    source: str,
    target: str | os.PathLike,
    layout: str = "chapters",
    language: str = "en",
    title_lines: int = 1,
    section_titles: bool = False,
) -> dict[str, int]:
    """Writes one text file as sentences; gzip where `target` ends in .gz.

    Returns:
      {"documents", "sentences", "characters"}, counts of what was written.
    """
    counts = {"documents": 0, "sentences": 0, "characters": 0}
    found = _documents(source, layout, language, title_lines, section_titles)
    with atomic_write(target, "wb") as raw, _text_writer(raw, str(target).endswith(".gz")) as file:
        for document in found:
            sentences = [s for paragraph in document for s in split_sentences(paragraph, language)]
            if not sentences:
                continue
            if counts["documents"]:
                file.write("\n")
            file.write("\n".join(sentences) + "\n")
            counts["documents"] += 1
            counts["sentences"] += len(sentences)
            counts["characters"] += sum(map(len, sentences))
    return counts


def split_files(
    inputs: str | list[str],
    output: str | os.PathLike,
    layout: str = "chapters",
    language: str = "en",
    title_lines: int = 1,
    section_titles: bool = False,
    compress: bool = True,
    num_workers: int = 1,
    overwrite: bool = False,
    progress: bool = False,
) -> dict[str, dict[str, int]]:
    """Splits every input file into `output`, beside a sentences.json of options and counts.

    Files that an earlier call with the same options finished, and whose input has not changed
    since, are skipped: an interrupted call continues. A file's bytes do not depend on
    `num_workers`.

    Returns:
      Counts of each output file, as `split_file`, by name.

    Raises:
      UserError: an unknown layout, inputs as `expand_inputs`, `output` made with other options
        (unless `overwrite`), or nothing in any file.
    """
    if layout not in LAYOUTS:
        raise UserError(f"--documents={layout}: choose one of {', '.join(LAYOUTS)}")
    paths = _expand(inputs)
    output = Path(output)
    targets = dict(zip(_output_names(paths, compress), paths, strict=True))
    options = {
        "documents": layout,
        "language": language,
        "title_lines": title_lines,
        "section_titles": section_titles,
        "compress": compress,
        "splitter": _splitter_version(language),
    }
    done = _finished(output, options, overwrite)
    # Entries of files that are no input of this call stay, like the files themselves.
    entries, todo = {name: entry for name, entry in done.items() if name not in targets}, {}
    for name, source in targets.items():
        state = _input_state(source)
        entry = done.get(name)
        if entry and entry["input"] == state and (output / name).exists():
            entries[name] = entry
        else:
            todo[name] = (source, state)

    arguments = (layout, language, title_lines, section_titles)
    last_saved = 0.0
    try:
        for name, counts in _run(todo, output, arguments, num_workers, progress, len(entries)):
            entries[name] = {"input": todo[name][1], **counts}
            if time.monotonic() - last_saved > 2:
                _save(output, options, entries)
                last_saved = time.monotonic()
    finally:
        if entries:
            _save(output, options, entries)
    if not any(entries[name]["sentences"] for name in targets):
        raise UserError(
            f"no sentence found in {len(paths)} files with --documents={layout}; "
            f"is that how they are laid out? See --help"
        )
    return {name: entries[name] for name in targets}


def _expand(inputs: str | list[str]) -> list[str]:
    """Files, and parts of the corpora of TensorFlow Datasets, in the order given."""
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    found = []
    for name in inputs:
        found += tfds_corpora.slices(name) if tfds_corpora.is_tfds(name) else expand_inputs(name)
    return found or expand_inputs(inputs)


def _documents(source, layout, language, title_lines, section_titles):
    if tfds_corpora.is_tfds(source):
        return tfds_corpora.documents(source)
    lines = text_lines(source)
    join = "" if language.split("-")[0] in _NO_BLANKS else " "
    if layout == "chapters":
        return text_layout.chapters(lines, join)
    if layout == "articles":
        return text_layout.articles(lines, title_lines, section_titles)
    if layout == "files":
        return text_layout.whole_file(lines, join)
    return text_layout.each_line(lines)


@contextlib.contextmanager
def _text_writer(raw, compress):
    """A text file over a binary one. No name or time goes into the gzip header: same bytes."""
    packed = gzip.GzipFile("", "wb", 6, raw, mtime=0) if compress else contextlib.nullcontext(raw)
    with packed as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n", write_through=False)
        yield text
        text.flush()
        text.detach()


def _run(todo, output, arguments, num_workers, progress, already):
    """Yields (name, counts) as files are finished, in any order."""
    from tqdm import tqdm

    bar = tqdm(
        total=already + len(todo), initial=already, unit="file", disable=not progress, leave=False
    )
    with bar:
        if num_workers <= 1 or len(todo) <= 1:
            for name, (source, _) in todo.items():
                yield name, split_file(source, output / name, *arguments)
                bar.update()
            return
        # Fresh processes: the parent may hold TensorFlow's threads, which do not survive a fork.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(num_workers, len(todo)), mp_context=context) as pool:
            # The largest first, so that no worker is left alone with one at the end.
            names = sorted(todo, key=lambda name: -todo[name][1]["bytes"])
            futures = {
                pool.submit(split_file, todo[name][0], output / name, *arguments): name
                for name in names
            }
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
                    bar.update()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _output_names(paths: list[str], compress: bool) -> list[str]:
    """A flat name for each input: its own, or with its folders where two inputs share one."""

    def name(path):
        stem = re.sub(r"\.gz$", "", path)
        stem = re.sub(r"\.txt$", "", stem)
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


def _finished(output: Path, options: dict, overwrite: bool) -> dict:
    """The entries of an earlier call with the same options; {} where there was none."""
    path = output / "sentences.json"
    if not path.exists():
        return {}
    try:
        earlier = json.loads(path.read_text("utf-8"))
        was, files = earlier["options"], earlier["files"]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is damaged; delete it, or choose another folder") from None
    differences = [
        f"{name} was {was.get(name)!r}, now {value!r}"
        for name, value in options.items()
        if was.get(name) != value
    ]
    if differences and not overwrite:
        raise UserError(
            f"{output} was made with other options ({'; '.join(differences)}); "
            f"choose another folder or pass --overwrite"
        )
    return {} if differences or overwrite else files


def _save(output: Path, options: dict, entries: dict) -> None:
    with atomic_write(output / "sentences.json") as file:
        json.dump({"options": options, "files": dict(sorted(entries.items()))}, file, indent=1)
        file.write("\n")


def _input_state(path: str) -> dict:
    if tfds_corpora.is_tfds(path):
        number, version = tfds_corpora.size(path)
        return {"path": path, "bytes": number, "modified": version}
    if is_remote(path):
        import tensorflow as tf

        status = tf.io.gfile.stat(path)
        return {"path": path, "bytes": status.length, "modified": status.mtime_nsec}
    status = os.stat(path)
    return {
        "path": os.path.abspath(path),
        "bytes": status.st_size,
        "modified": status.st_mtime_ns,
    }


def _splitter_version(language: str) -> str:
    name = "nupunkt" if language == "en" else "sentencex"
    return f"{name} {importlib.metadata.version(name)}"


def main(argv) -> None:
    del argv
    start = time.monotonic()
    files = split_files(
        FLAGS.input,
        FLAGS.output,
        layout=FLAGS.documents,
        language=FLAGS.language,
        title_lines=FLAGS.title_lines,
        section_titles=FLAGS.section_titles,
        compress=FLAGS.compress,
        num_workers=FLAGS.num_workers,
        overwrite=FLAGS.overwrite,
        progress=True,
    )
    total = {
        key: sum(counts[key] for counts in files.values())
        for key in ("documents", "sentences", "characters")
    }
    print(
        f"{FLAGS.output}: {len(files)} files, {total['documents']:,} documents, "
        f"{total['sentences']:,} sentences, {total['characters'] / 1e6:.1f} M characters "
        f"in {time.monotonic() - start:.1f} s"
    )


FLAGS = flags.FLAGS


def define_flags() -> None:
    flags.DEFINE_list(
        "input",
        None,
        "Text files or globs, plain or gzip, or corpora of TensorFlow Datasets "
        "(tfds:wikipedia/20230601.en), whose documents need no --documents.",
        required=True,
    )
    flags.DEFINE_string("output", None, "Folder for the sentence files.", required=True)
    flags.DEFINE_enum(
        "documents",
        "chapters",
        LAYOUTS,
        "Where documents begin. chapters: at the headings of a book, whose paragraphs are "
        "separated by blank lines. articles: at blank lines; a line is a paragraph, the first the "
        "title. files: a file is a document. lines: a line is a document.",
    )
    flags.DEFINE_string("language", "en", "ISO 639 code: en, de, zh, ko, ...")
    flags.DEFINE_integer("title_lines", 1, "Title lines of an article, left out.", lower_bound=0)
    flags.DEFINE_bool("section_titles", False, "Keep lines that look like section titles.")
    flags.DEFINE_bool("compress", True, "Write .txt.gz rather than .txt.")
    flags.DEFINE_integer("num_workers", os.cpu_count() or 1, "Processes.", lower_bound=1)
    flags.DEFINE_bool("overwrite", False, "Replace an output made with other options.")


if __name__ == "__main__":
    define_flags()
    commands.run(main)
