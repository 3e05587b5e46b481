"""The files of byte-pair vocabularies: `tokenizer.json`, or `vocab.json` and `merges.txt`."""

import json
import re
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.files import write_text
from official_bert.common.json_files import MOST_BYTES, field, list_of, read_json, shorten
from official_bert.common.outside_files import read_bytes
from official_bert.tokenization.library import tokenizer_json
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS
from official_bert.tokenization.reference import Rules

MERGES_FILE, VOCAB_FILE = "merges.txt", "vocab.json"
WORD_END = "</w>"
# GPT's words are those of uncased BERT.
UNCASED_WORDS = tokenizer_json.bert_steps(Rules())


def read(path: Path) -> tuple[list[str], list[tuple[str, str]], bool | None]:
    """Return (pieces, merges, add_prefix_space or None) of a `tokenizer.json` or a `vocab.json`.

    Raises:
      UserError: a file is missing or damaged, or the tokeniser is of another kind.
    """
    contents = _contents(path)
    if "model" in contents:
        return parts_of(contents, path)
    return *_of_two_files(contents, path), None


def read_word_ends(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Return (pieces, merges) of a `tokenizer.json` or a `vocab.json` of OpenAI GPT.

    Raises:
      UserError: a file is missing or damaged, or the tokeniser is of another kind.
    """
    contents = _contents(path)
    if "model" not in contents:
        return _of_two_files(contents, path)
    if not _has_word_ends(contents):
        raise UserError(f"{path}: no byte pairs of words that end in {WORD_END}")
    for name, usual in UNCASED_WORDS.items():
        if contents.get(name) != usual:
            raise UserError(f"{path}: {name} {shorten(contents.get(name))} is not GPT's, {usual}")
    return _pieces(contents, path), _merges(contents, path)


def parts_of(contents: dict[str, Any], where) -> tuple[list[str], list[tuple[str, str]], bool]:
    """Return (pieces, merges, add_prefix_space) of a `tokenizer.json` that is RoBERTa's.

    Raises:
      UserError: it is another; the message says what differs.
    """
    if reason := _why_not_roberta(contents, where):
        raise UserError(f"{where}: {reason}")
    pieces = _pieces(contents, where)
    add_prefix_space = contents["pre_tokenizer"].get("add_prefix_space") is True
    return pieces, _merges(contents, where), add_prefix_space


def kind_of(path: Path) -> str:
    """Return the name in `KINDS` of the tokeniser in a `tokenizer.json` or a `vocab.json`."""
    contents = _contents(path)
    if _has_word_ends(contents):
        return "word_end_byte_pair"
    is_foreign = "model" in contents and _why_not_roberta(contents, path)
    return "tokenizer_json" if is_foreign else "byte_pair"


def _has_word_ends(contents) -> bool:
    """Return whether they are GPT's, which has no tokens to begin and end a sequence but those of
    ours."""
    model = contents.get("model")
    if not isinstance(model, dict):
        return any(str(piece).endswith(WORD_END) for piece in contents)
    if model.get("type") != "BPE" or model.get("end_of_word_suffix") != WORD_END:
        return False
    added = list_of({"added_tokens": [], **contents}, "added_tokens", dict, "tokenizer.json")
    names = {str(token.get("content")) for token in added} | {*(model.get("vocab") or ())}
    return "_start_" in names or names.isdisjoint(("[CLS]", "<s>"))


def write_parts(folder: Path, vocab: list[str], merges: list[tuple[str, str]]) -> None:
    """Write `vocab.json` and `merges.txt`, which older versions of `transformers` read."""
    id_of = {piece: index for index, piece in enumerate(vocab)}
    text = json.dumps(id_of, ensure_ascii=False) + "\n"
    write_text(folder / VOCAB_FILE, text)
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    write_text(folder / MERGES_FILE, f"#version: 0.2\n{lines}")


def pieces_of(id_of: dict[str, Any], where: str) -> list[str]:
    """Return the pieces in the order of their ids.

    Raises:
      UserError: the ids are not those of a list.
    """
    for piece in id_of:
        field(id_of, piece, int, where)
    if sorted(id_of.values()) != list(range(len(id_of))):
        raise UserError(f"{where}: the ids are not 0 to {len(id_of) - 1}, each once")
    return sorted(id_of, key=id_of.__getitem__)


def _contents(path: Path) -> dict[str, Any]:
    return read_json(path, missing="a byte-pair vocabulary is a tokenizer.json or a vocab.json")


def _pieces(contents: dict[str, Any], where) -> list[str]:
    """Return the pieces of the model and of the added tokens of a `tokenizer.json`."""
    tokenizer_json.check(contents, where)
    added = {token["content"]: token["id"] for token in contents.get("added_tokens") or ()}
    return pieces_of({**contents["model"]["vocab"], **added}, f"{where}: vocab")


def merges_of(contents: dict[str, Any]) -> tuple[list[tuple[str, str]], bool]:
    """Return the merges of byte pairs as RoBERTa has them, and whether offsets leave blanks out.

    Raises:
      UserError: they are others, which a TensorFlow graph does not compute; the message says why.
    """
    model = contents["model"]
    reason = _why_not_roberta({**contents, "added_tokens": []}, "")
    if not reason and contents["pre_tokenizer"].get("add_prefix_space"):
        reason = "its pre_tokenizer has add_prefix_space=true"
    known = set(model["vocab"])
    if not reason and not known.issuperset(BYTE_CHARACTERS):
        reason = "its vocabulary lacks some of the 256 bytes"
    if reason:
        raise UserError(
            f"a TensorFlow graph cannot compute this tokeniser ({reason}); export token ids "
            "instead (experiments.export --format=onnx)"
        )
    steps = tokenizer_json.steps(contents.get("post_processor"), "processors")
    return _merges(contents, "tokenizer.json"), any(step.get("trim_offsets") for step in steps)


def _why_not_roberta(contents, path) -> str:
    """Say what is not as in RoBERTa's `tokenizer.json`; "" where all is."""
    model = field(contents, "model", dict, path)
    if model.get("type") != "BPE":
        return f"a {shorten(model.get('type'))} tokenizer, not one of byte pairs"
    for name in (
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "dropout",
        "byte_fallback",
        "ignore_merges",
    ):
        if model.get(name):
            return f"model has {name}={shorten(model[name])}; RoBERTa's has none"
    byte_level = contents.get("pre_tokenizer")
    if (
        contents.get("normalizer")
        or not isinstance(byte_level, dict)
        or byte_level.get("type") != "ByteLevel"
        or byte_level.get("use_regex") is False
    ):
        return "its normalizer and pre_tokenizer are not RoBERTa's (none, and ByteLevel)"
    own = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    for token in contents.get("added_tokens") or ():
        name = token.get("content") if isinstance(token, dict) else None
        if isinstance(name, str) and name not in own:
            return f"added_tokens has {shorten(name)}; RoBERTa's are {', '.join(own)}"
    return ""


def _merges(contents, path: Path) -> list[tuple[str, str]]:
    written = list_of(field(contents, "model", dict, path), "merges", (str, list), path)
    return [pair_of(merge, f"{path}: merges") for merge in written]


def _of_two_files(contents: dict[str, Any], path: Path):
    """Return (pieces, merges) of a `vocab.json` and the merges beside it.

    Raises:
      UserError: one is damaged, or many pieces are made by no merge, as where lines are missing.
    """
    pieces, path = pieces_of(contents, str(path)), path.with_name(MERGES_FILE)
    try:
        content = read_bytes(path, MOST_BYTES, f"a {VOCAB_FILE} needs the merges beside it")
        lines = re.split("\r\n?|\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text ({error.reason})") from None
    merges = [
        pair_of(line, f"{path} line {number}")
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#version")
    ]
    single = {piece for piece in pieces if len(piece.removesuffix(WORD_END)) < 2}
    unmade = len({*pieces} - single - {*map("".join, merges)})
    if unmade > max(16, len(pieces) // 10):  # special tokens are few
        raise UserError(
            f"{path}: {unmade:,} of {len(pieces):,} pieces are no merge's; is it whole?"
        )
    return pieces, merges


def pair_of(merge, where) -> tuple[str, str]:
    """Return a merge written as a text or a list.

    Raises:
      UserError: it is not a pair.
    """
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise UserError(f"{where}: {shorten(merge)} is not a pair of pieces")
    return parts[0], parts[1]
