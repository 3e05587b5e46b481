"""Corpora of TensorFlow Datasets, by name, as documents of paragraphs.

    python -m data_prep.sentences --input=tfds:wikipedia/20230601.en --output=corpus
    python -m data_prep.sentences --input=tfds:wiki40b/de --output=corpus --language=de
    python -m data_prep.sentences --input=tfds:pg19@train --output=corpus

A name is "tfds:", the dataset with its configuration as TFDS writes it, and optionally "@" and a
split with a range ("@train[:5000]"; by default "@train"). Any dataset with a text field of whole
documents works; wiki40b's markers, Wikipedia's section titles and the chapters of pg19's books are
understood. TFDS looks for the data in $TFDS_DATA_DIR or ~/tensorflow_datasets and downloads it
where it is not prepared. Data sets of shuffled sentences (lm1b) are refused: next-sentence
prediction needs documents (section 3.1).
"""

import re
from collections import Counter
from collections.abc import Iterator

from data_prep.corpus import sentence_splitter, text_layout
from official_bert.common.errors import UserError, first_line

PREFIX = "tfds:"

_TEXT_FIELDS = ("text", "book_text", "document", "article", "content")
_SHUFFLED_SENTENCES = ("lm1b",)
_WIKI40B_MARKER = re.compile(r"_START_(ARTICLE|SECTION|PARAGRAPH)_\n")
_LINK_BEHIND_ARTICLE = re.compile(r"\w[\w ]*:\S")  # "Category:Towns", in any language


def is_tfds(name: str) -> bool:
    return name.startswith(PREFIX)


def slices(name: str, documents_per_slice: int = 20_000) -> list[str]:
    """Return names of consecutive parts of a corpus, which can be read side by side.

    Raises:
      UserError: the data set or split does not exist, or cannot be prepared.
    """
    dataset, split = _parse(name)
    builder = _builder(dataset)
    base, start, end = _range(builder, name, split)
    return [
        f"{PREFIX}{dataset}@{base}[{first}:{min(first + documents_per_slice, end)}]"
        for first in range(start, end, documents_per_slice)
    ]


def size(name: str) -> tuple[int, str]:
    """Return the number of documents of a corpus, and its version."""
    dataset, split = _parse(name)
    builder = _builder(dataset)
    _, start, end = _range(builder, name, split)
    return end - start, str(builder.version)


def documents(
    name: str,
    titles: text_layout.Titles | None = None,
    counts: Counter | None = None,
    lost: Counter | None = None,
) -> Iterator[list[str]]:
    """Yield the corpus's documents, in the order of its files, each as its paragraphs.

    Args:
      titles, counts, lost: as for `sources.documents`.

    Raises:
      UserError: as `slices`, the data set holds no documents or no text, or a text is not UTF-8.
    """
    import tensorflow_datasets as tfds

    titles = text_layout.Titles() if titles is None else titles
    counts, lost = (Counter() if counter is None else counter for counter in (counts, lost))
    dataset, split = _parse(name)
    builder = _builder(dataset)
    _range(builder, name, split)
    field = _text_field(dataset, builder)
    # Files are read one after the other: the order must not depend on timing.
    config = tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False)
    examples = builder.as_dataset(
        split=split,
        read_config=config,
        shuffle_files=False,
        decoders=tfds.decode.PartialDecoding({field: True}),  # other fields are not even parsed
    )
    for number, text in enumerate(examples.map(lambda example: example[field])):
        try:
            text = text.numpy().decode("utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{name}: document {number} is not UTF-8") from None
        yield from _paragraphs(builder.name, field, text, titles, counts, lost)


def _paragraphs(dataset: str, field: str, text: str, titles, counts, lost) -> Iterator[list[str]]:
    lines = [" ".join(line.split()) for line in text.split("\n")]
    counts["characters_read"] += sum(map(len, lines))
    if dataset == "wiki40b":
        parts = _WIKI40B_MARKER.split(text)
        document = [
            paragraph
            for kind, part in zip(parts[1::2], parts[2::2], strict=True)
            if kind == "PARAGRAPH"
            for paragraph in part.split("_NEWLINE_")
        ]
    elif field == "book_text":
        yield from text_layout.chapters(text.split("\n"), " ", lost)
        return
    elif dataset == "wikipedia":
        document = []
        for line in filter(None, lines):
            if _LINK_BEHIND_ARTICLE.match(line) and not sentence_splitter.closes(line):
                lost["links behind articles"] += len(line)
            elif titles.keeps(line, lost):
                document.append(line)
    else:
        document = lines
    document = [" ".join(paragraph.split()) for paragraph in document if paragraph.strip()]
    if document:
        yield document


def _parse(name: str) -> tuple[str, str]:
    dataset, _, split = name.removeprefix(PREFIX).partition("@")
    if not dataset:
        raise UserError(f"{name!r}: name a data set, for example tfds:wikipedia/20230601.en")
    return dataset, split or "train"


def _builder(dataset: str):
    import tensorflow_datasets as tfds

    if dataset.partition("/")[0].partition(":")[0] in _SHUFFLED_SENTENCES:
        raise UserError(
            f"tfds:{dataset} holds shuffled sentences, and pre-training needs documents; "
            f"take wikipedia, wiki40b or pg19"
        )
    try:
        builder = tfds.builder(dataset)
    except (tfds.core.DatasetNotFoundError, ValueError, ImportError) as error:
        reason = first_line(error)
        raise UserError(f"tfds:{dataset}: not in TensorFlow Datasets: {reason}") from None
    if not builder.info.splits:
        try:
            builder.download_and_prepare()
        except Exception as error:
            raise UserError(
                f"tfds:{dataset} is not in {builder.data_dir} and could not be prepared: "
                f"{type(error).__name__}: {first_line(error)}"
            ) from error
    return builder


def _range(builder, name: str, split: str) -> tuple[str, int, int]:
    """Return a split such as "train[10%:20%]" as ("train", first document, end)."""
    base = split.partition("[")[0]
    try:
        info = builder.info.splits[split]
        if split == base:
            return base, 0, info.num_examples
        # A part's own instruction counts within its files; TFDS has the absolute numbers.
        instruction = _absolute(builder, split)
    except (KeyError, ValueError, AssertionError, IndexError):
        known = ", ".join(builder.info.splits)
        raise UserError(f"{name}: no split {split!r}; there are {known}") from None
    return base, *instruction


def _absolute(builder, split: str) -> tuple[int, int]:
    import tensorflow_datasets as tfds

    (instruction,) = tfds.core.ReadInstruction.from_spec(split).to_absolute(builder.info.splits)
    last = builder.info.splits[instruction.splitname].num_examples
    return instruction.from_ or 0, last if instruction.to is None else instruction.to


def _text_field(dataset: str, builder) -> str:
    features = builder.info.features
    for field in _TEXT_FIELDS:
        if field in features:
            return field
    raise UserError(
        f"tfds:{dataset} has none of the fields {', '.join(_TEXT_FIELDS)} (its fields: "
        f"{', '.join(features)}); is it a corpus of documents?"
    )
