"""The parts of the file `tokenizer.json` of the library `tokenizers`, and their meaning."""

import contextlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of, read_json, shorten
from official_bert.tokenization.library import bounds
from official_bert.tokenization.reference import Rules

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
_BLANK = "▁"  # SentencePiece's sign for the blank before a word


def read(path: Path) -> dict[str, Any]:
    """Return the contents of the file.

    Raises:
      UserError: it is missing, not JSON, or not a tokenizer.
    """
    return check(read_json(path), path)


def check(contents: dict[str, Any], where) -> dict[str, Any]:
    """Return the contents, after a check of the types of their vocabulary and added tokens.

    Raises:
      UserError: a field is missing or of another kind.
    """
    model = field(contents, "model", dict, where)
    if model.get("type") == "Unigram":
        for entry in list_of(model, "vocab", list, f"{where}: model"):
            if len(entry) != 2 or not isinstance(entry[0], str):
                raise UserError(f"{where}: vocab: {shorten(entry)} is not a piece with its score")
    else:
        for piece in field(model, "vocab", dict, f"{where}: model"):
            field(model["vocab"], piece, int, f"{where}: vocab")
    if contents.get("added_tokens"):
        for index, token in enumerate(list_of(contents, "added_tokens", dict, where)):
            field(token, "content", str, f"{where}: added_tokens[{index}]")
            field(token, "id", int, f"{where}: added_tokens[{index}]")
    return contents


def library(contents: dict[str, Any], where: str):
    """Return the `tokenizers.Tokenizer` of contents, and the complete contents that it writes.

    Raises:
      UserError: the library does not know them, would draw pieces at random, or gives an added
        token another id.
    """
    check(contents, where)
    import tokenizers

    model = field(contents, "model", dict, where)
    if model.get("dropout"):
        raise UserError(
            f"{where}: model: dropout={shorten(model['dropout'])} draws the pieces of a text at "
            "random; set it to null"
        )
    bounds.check(contents, where)
    with no_panic(f"{where}: the library tokenizers cannot read it"):
        found = tokenizers.Tokenizer.from_str(json.dumps(contents))
    for token in contents.get("added_tokens") or ():
        index = found.token_to_id(token["content"])
        if index != token["id"]:
            raise UserError(
                f"{where}: added_tokens gives {token['content']!r} the id {token['id']}, but the "
                f"library tokenizers, which counts on from the vocabulary, {index}"
            )
    return found, json.loads(found.to_str())


@contextlib.contextmanager
def no_panic(message: str) -> Iterator[None]:
    """Turn exceptions and panics of the library in a block into UserErrors.

    A panic is not an Exception. `message` starts the error.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, UserError):
        raise
    except BaseException as error:
        raise UserError(f"{message} ({error})") from None


def whole(model: dict[str, Any], added_tokens=(), **parts: dict | None) -> dict[str, Any]:
    """Return the contents of a file with these parts; a part that is left out does nothing."""
    names = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added_tokens),
        **{name: parts.get(name) for name in names},
        "model": model,
    }


def bert_steps(rules: Rules) -> dict[str, dict[str, Any]]:
    """Return BERT's basic tokeniser as steps of a tokenizer.json."""
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": rules.tokenize_chinese_chars,
        "strip_accents": rules.strip_accents,
        "lowercase": rules.do_lower_case,
    }
    return {"normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"}}


def special_tokens(id_of: dict[str, int], tokens: Iterable[str]) -> list[dict[str, Any]]:
    """Return the entries of special tokens among a file's added tokens."""
    return [
        {"id": id_of[token], "content": token, **FLAGS, "special": True}
        for token in sorted(tokens, key=id_of.__getitem__)
    ]


def part(name: str, contents: dict[str, Any]):
    """Return the library's object for one field of a file: its normalizer or pre_tokenizer."""
    import tokenizers

    model = {"type": "WordPiece", "unk_token": "", "continuing_subword_prefix": "", "vocab": {}}
    contents = whole({**model, "max_input_chars_per_word": 0}, **{name: contents})
    return getattr(tokenizers.Tokenizer.from_str(json.dumps(contents)), name)


def lower_cases(of_library) -> bool:
    """Return whether the normalizer lower-cases text."""
    normalizer = of_library.normalizer
    with no_panic("the library tokenizers cannot lower-case"):
        return normalizer is not None and normalizer.normalize_str("A").strip(f"{_BLANK} ") == "a"


def pieces(of_library, contents: dict[str, Any], where: str) -> list[str]:
    """Return the pieces in the order of their ids; "" for an id without a piece.

    Raises:
      UserError: two pieces have one id.
    """
    written = contents["model"].get("vocab")
    id_of = of_library.get_vocab(with_added_tokens=True)
    found = [""] * (max(id_of.values(), default=-1) + 1)
    for piece, index in id_of.items():
        if found[index]:
            raise UserError(f"{where}: {found[index]!r} and {piece!r} have the same id, {index}")
        found[index] = piece
    if isinstance(written, list):  # Unigram's; of a repeated piece the last counts
        found[: len(written)] = [piece for piece, _ in written]
    if not found:
        raise UserError(f"{where}: its vocabulary is empty")
    return found


def padding(tokenizer) -> dict[str, Any]:
    """Return the field `padding`, to the longest row of a batch."""
    return {
        "strategy": "BatchLongest",
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": tokenizer.pad_id,
        "pad_type_id": 0,
        "pad_token": tokenizer.special.pad,
    }


def steps(contents: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """Return the steps of a part of a file: "normalizer", "pre_tokenizer" or "post_processor"."""
    return [*bounds.steps(contents.get(part))]


def says_where_words_begin(contents: dict[str, Any]) -> bool:
    """Return whether each piece shows if it continues the word of the piece before it."""
    return bool(_prefix(contents)) or _is_byte_level(contents) or _has_blanks(contents)


def piece_reader(contents: dict[str, Any]) -> Callable[[str], tuple[str, bool]]:
    """Return a function from a piece to (its letters, whether it begins a word).

    Where nothing says it, every piece begins one.
    """
    prefix, suffix = _prefix(contents), contents["model"].get("end_of_word_suffix")
    if prefix:
        return lambda piece: (piece.removeprefix(prefix), not piece.startswith(prefix))
    if _is_byte_level(contents):
        return lambda piece: _without(text_of(piece), " ")
    if _has_blanks(contents):
        return lambda piece: _without(piece, _BLANK)
    return lambda piece: (piece.removesuffix(suffix) if suffix else piece, True)


def _prefix(contents):
    return contents["model"].get("continuing_subword_prefix") or ""


def _is_byte_level(contents):
    return any(step["type"] == "ByteLevel" for step in steps(contents, "pre_tokenizer"))


def _has_blanks(contents):
    return any(step["type"] == "Metaspace" for step in steps(contents, "pre_tokenizer"))


def _without(piece: str, blank: str) -> tuple[str, bool]:
    return (piece[len(blank) :] or piece, True) if piece.startswith(blank) else (piece, False)


def _byte_characters() -> str:
    """Return the character that stands for each byte: itself where it is printable, else one from
    U+0100.

    >>> _byte_characters()[0:2], _byte_characters()[32], _byte_characters()[65]
    ('Āā', 'Ġ', 'A')
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = itertools.count(0x100)
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))


BYTE_CHARACTERS = _byte_characters()
_BYTE_OF = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


def text_of(piece: str) -> str:
    """Return the text that a piece spells, with U+FFFD for parts of a character.

    An added token spells itself.
    """
    if not set(piece) <= _BYTE_OF.keys():
        return piece
    return bytes(_BYTE_OF[character] for character in piece).decode("utf-8", "replace")
