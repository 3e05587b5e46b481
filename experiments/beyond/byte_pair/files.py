"""The files of byte-pair vocabularies: `tokenizer.json`, or `vocab.json` and `merges.txt`."""

import json
import re
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.files import write_text
from official_bert.common.json_files import MOST_BYTES, field, list_of, read_json, shorten
from official_bert.common.outside_files import read_bytes
from official_bert.tokenization.library import roles, tokenizer_json
from official_bert.tokenization.library.foreign import ForeignTokenizer
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS

MERGES_FILE, VOCAB_FILE = "merges.txt", "vocab.json"
END_OF_TEXT = "<|endoftext|>"  # GPT-2's
WORD_END = "</w>"  # ends the last piece of a word in OpenAI GPT's


def read(path: Path) -> tuple[list[str], list[tuple[str, str]], bool | None]:
    """Return (pieces, merges, add_prefix_space or None) of a `tokenizer.json` or a `vocab.json`.

    Raises:
      UserError: a file is missing or damaged, or the tokeniser is of another kind.
    """
    contents = read_contents(path)
    if is_whole(contents):
        return parts_of(contents, path)
    return *of_two_files(contents, path), None


def read_contents(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises:
      UserError: it is missing, or no JSON object.
    """
    return read_json(path, missing="a byte-pair vocabulary is a tokenizer.json or a vocab.json")


def is_whole(contents: dict[str, Any]) -> bool:
    """Return whether contents are of a `tokenizer.json`; in a `vocab.json` a piece "model" has an
    id."""
    return isinstance(contents.get("model"), dict)


def is_robertas(contents: dict[str, Any], where) -> bool:
    """Return whether `read` reads a file with these contents."""
    if is_whole(contents):
        return not _why_not_roberta(contents, where)
    return not any(str(piece).endswith(WORD_END) for piece in contents)


def is_gpt2s(contents: dict[str, Any]) -> bool:
    """Return whether a `vocab.json` is GPT-2's, whose one special token divides texts."""
    return isinstance(contents.get(END_OF_TEXT), int) and "<s>" not in contents


def gpt2s(contents: dict[str, Any], path: Path) -> ForeignTokenizer:
    """Return the tokeniser of GPT-2's `vocab.json` and the merges beside it.

    Raises:
      UserError: a file is damaged.
    """
    pieces, merges = of_two_files(contents, path)
    id_of = {piece: index for index, piece in enumerate(pieces)}
    beside = path.with_name(roles.CONFIG)
    prefix = beside.is_file() and read_json(beside).get("add_prefix_space") is True
    byte_level = {"type": "ByteLevel", "add_prefix_space": prefix, "use_regex": True}
    whole = tokenizer_json.whole(
        model_of(id_of, merges),
        tokenizer_json.special_tokens(id_of, [END_OF_TEXT]),
        pre_tokenizer={**byte_level, "trim_offsets": True},
        post_processor={**byte_level, "trim_offsets": False},
        decoder={**byte_level, "trim_offsets": True},
    )
    found = ForeignTokenizer(whole, where=str(path))
    found.second_file = MERGES_FILE
    return found


def parts_of(contents: dict[str, Any], where) -> tuple[list[str], list[tuple[str, str]], bool]:
    """Return (pieces, merges, add_prefix_space) of a `tokenizer.json` that is RoBERTa's.

    Raises:
      UserError: it is another; the message says what differs.
    """
    if reason := _why_not_roberta(contents, where):
        raise UserError(f"{where}: {reason}")
    add_prefix_space = contents["pre_tokenizer"].get("add_prefix_space") is True
    return *pieces_and_merges(contents, where), add_prefix_space


def pieces_and_merges(contents: dict[str, Any], where) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the pieces of the model and of the added tokens of a `tokenizer.json`, and its merges.

    Raises:
      UserError: one is damaged.
    """
    tokenizer_json.check(contents, where)
    added = {token["content"]: token["id"] for token in contents.get("added_tokens") or ()}
    pieces = pieces_of({**contents["model"]["vocab"], **added}, f"{where}: vocab")
    return pieces, _merges(contents, where)


def model_of(id_of: dict[str, int], merges: list[tuple[str, str]], **more) -> dict[str, Any]:
    """Return the field "model" of a `tokenizer.json` of byte pairs."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "fuse_unk": False,
        "byte_fallback": False,
        **more,
        "vocab": id_of,
        "merges": [list(pair) for pair in merges],
    }


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
    steps = tokenizer_json.steps(contents, "post_processor")
    return _merges(contents, "tokenizer.json"), any(step.get("trim_offsets") for step in steps)


def _why_not_roberta(contents, path) -> str:
    """Describe the first difference from RoBERTa's `tokenizer.json`; "" without one."""
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


def of_two_files(contents: dict[str, Any], path: Path):
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
