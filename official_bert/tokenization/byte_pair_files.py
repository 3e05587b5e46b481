"""The files of byte-pair vocabularies: `tokenizer.json`, or `vocab.json` and `merges.txt`."""

import json
from pathlib import Path
from typing import Any

from official_bert.errors import UserError
from official_bert.files import write_text
from official_bert.json_files import field, list_of, read_json, shorten
from official_bert.tokenization.base import SpecialTokens

MERGES_FILE, VOCAB_FILE = "merges.txt", "vocab.json"
WORD_END = "</w>"


def read(path: Path) -> tuple[list[str], list[tuple[str, str]], bool | None]:
    """(pieces, merges, add_prefix_space or None) of a `tokenizer.json` or a `vocab.json`.

    Raises:
      UserError: a file is missing or damaged, or the tokeniser is of another kind.
    """
    contents = read_json(path, missing="a byte-pair vocabulary is a tokenizer.json or a vocab.json")
    if "model" in contents:
        return _of_tokenizer_json(contents, path)
    return pieces_of(contents, str(path)), _merges_of_text(path.with_name(MERGES_FILE)), None


def read_word_ends(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """(pieces, merges) of a `tokenizer.json` or a `vocab.json` of OpenAI GPT.

    Raises:
      UserError: a file is missing or damaged, or the tokeniser is of another kind.
    """
    contents = read_json(path, missing="a byte-pair vocabulary is a tokenizer.json or a vocab.json")
    if "model" not in contents:
        return pieces_of(contents, str(path)), _merges_of_text(path.with_name(MERGES_FILE))
    if not _has_word_ends(contents):
        raise UserError(f"{path}: no byte pairs of words that end in {WORD_END}")
    return pieces_of(with_added_tokens(contents, path), f"{path}: vocab"), _merges(contents, path)


def has_word_ends(path: Path) -> bool:
    """Whether a `tokenizer.json` or a `vocab.json` is of the kind that `read_word_ends` reads."""
    return _has_word_ends(read_json(path)) if path.is_file() else False


def _has_word_ends(contents) -> bool:
    model = contents.get("model")
    if isinstance(model, dict):
        return model.get("type") == "BPE" and model.get("end_of_word_suffix") == WORD_END
    return any(piece.endswith(WORD_END) for piece in contents)


def is_byte_pair(path: Path) -> bool:
    """Whether a `tokenizer.json` holds byte pairs."""
    model = read_json(path).get("model")
    return isinstance(model, dict) and model.get("type") == "BPE"


def write(
    path: Path,
    vocab: list[str],
    merges: list[tuple[str, str]],
    special: SpecialTokens,
    add_prefix_space: bool,
) -> None:
    """Writes a `tokenizer.json` as the library `tokenizers` reads it, for RoBERTa."""
    id_of = {piece: index for index, piece in enumerate(vocab)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True}
    flags = {"single_word": False, "rstrip": False, "normalized": False, "special": True}
    contents = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            # The blank before a mask belongs to the word that it hides.
            {"id": id_of[token], "content": token, "lstrip": token == special.mask, **flags}
            for token in sorted(special, key=lambda token: id_of[token])
        ],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": [special.sep, id_of[special.sep]],
            "cls": [special.cls, id_of[special.cls]],
            "trim_offsets": True,
            "add_prefix_space": add_prefix_space,
        },
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": id_of,
            "merges": [list(pair) for pair in merges],
        },
    }
    write_text(path, json.dumps(contents, ensure_ascii=False, indent=1))


def write_parts(folder: Path, vocab: list[str], merges: list[tuple[str, str]]) -> None:
    """Writes `vocab.json` and `merges.txt`, which older versions of `transformers` read."""
    id_of = {piece: index for index, piece in enumerate(vocab)}
    text = json.dumps(id_of, ensure_ascii=False) + "\n"
    write_text(folder / VOCAB_FILE, text)
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    write_text(folder / MERGES_FILE, f"#version: 0.2\n{lines}")


def pieces_of(id_of: dict[str, Any], where: str) -> list[str]:
    """The pieces in the order of their ids.

    Raises:
      UserError: the ids are not those of a list.
    """
    for piece in id_of:
        field(id_of, piece, int, where)
    if sorted(id_of.values()) != list(range(len(id_of))):
        raise UserError(f"{where}: the ids are not 0 to {len(id_of) - 1}, each once")
    return sorted(id_of, key=id_of.__getitem__)


def with_added_tokens(contents: dict[str, Any], path: Path) -> dict[str, int]:
    """{piece: id} of the model and of the added tokens of a `tokenizer.json`.

    Raises:
      UserError: a field is missing or wrong.
    """
    model = field(contents, "model", dict, path)
    id_of = dict(field(model, "vocab", dict, f"{path}: model"))
    added = list_of(contents, "added_tokens", dict, path) if contents.get("added_tokens") else []
    for index, token in enumerate(added):
        where = f"{path}: added_tokens[{index}]"
        id_of[field(token, "content", str, where)] = field(token, "id", int, where)
    return id_of


def _of_tokenizer_json(contents, path):
    model = field(contents, "model", dict, path)
    if model.get("type") != "BPE":
        raise UserError(f"{path}: a {shorten(model.get('type'))} tokenizer, not one of byte pairs")
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "dropout", "byte_fallback"):
        if model.get(name):
            raise UserError(f"{path}: model has {name}={shorten(model[name])}; RoBERTa's has none")
    byte_level = contents.get("pre_tokenizer")
    if (
        contents.get("normalizer")
        or not isinstance(byte_level, dict)
        or byte_level.get("type") != "ByteLevel"
        or byte_level.get("use_regex") is False
    ):
        raise UserError(
            f"{path}: its normalizer and pre_tokenizer are not RoBERTa's (none, and ByteLevel)"
        )
    pieces = pieces_of(with_added_tokens(contents, path), f"{path}: vocab")
    return pieces, _merges(contents, path), byte_level.get("add_prefix_space") is True


def _merges(contents, path: Path) -> list[tuple[str, str]]:
    written = list_of(field(contents, "model", dict, path), "merges", (str, list), path)
    return [pair_of(merge, f"{path}: merges") for merge in written]


def _merges_of_text(path: Path) -> list[tuple[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise UserError(f"{path}: missing; a {VOCAB_FILE} needs the merges beside it") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text ({error.reason})") from None
    return [
        pair_of(line, f"{path} line {number}")
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#version")
    ]


def pair_of(merge, where) -> tuple[str, str]:
    """A merge written as a text or a list.

    Raises:
      UserError: it is no pair.
    """
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise UserError(f"{where}: {shorten(merge)} is no pair of pieces")
    return parts[0], parts[1]
