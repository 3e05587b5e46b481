"""The parts of the file `tokenizer.json` of the library `tokenizers`, and their meaning."""

import contextlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of, read_json, shorten
from official_bert.tokenization.base import SpecialTokens
from official_bert.tokenization.library import bounds
from official_bert.tokenization.reference import Rules

# Names of each role where a file does not say, in the order in which they are tried.
_USUAL = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
CONFIG, MAP = "tokenizer_config.json", "special_tokens_map.json"
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
      UserError: it does not know them, would draw its pieces at random, or gives an added token
        another id.
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


def roles(
    contents: dict[str, Any], vocab: list[str], where: str, named: dict[str, str] | None = None
) -> SpecialTokens:
    """Find the special tokens: as `named`, else as the file says, else by their usual names.

    The file says them in its template, padding and model.

    Our own templates name the mask too, as a token that they do not use. A special token that is
    the only one of its file, and has no other role, divides texts: it begins and ends a sequence,
    and stands for nothing unknown (GPT-2's <|endoftext|>).

    Args:
      named: {role: token} of the files beside a `tokenizer.json`. Tokens that are not pieces are
        passed over, since the model has no vectors for them.

    Raises:
      UserError: no token begins or ends a sequence.
    """
    known = set(vocab)
    in_file: dict[str, str | None] = {}
    template = _template(contents, where)
    if template:
        in_file["cls"], in_file["sep"] = template.single[0], template.single[-1]
        unused = [name for name in template.names if name not in template.pair]
        in_file["mask"] = unused[0] if len(unused) == 1 else None
    padding = contents.get("padding")
    if isinstance(padding, dict):
        in_file["pad"] = padding.get("pad_token")
    model = contents["model"]
    in_file["unk"] = model.get("unk_token")
    if isinstance(model.get("unk_id"), int) and model["unk_id"] < len(vocab):
        in_file["unk"] = vocab[model["unk_id"]]
    found = {}
    for role, usual in _USUAL.items():
        named = named or {}
        # GPT-2's files name tokens for the begin and the end of a text, not of a classifier's row.
        other = named.get({"cls": "bos", "sep": "eos"}.get(role))
        candidates = (named.get(role), in_file.get(role), other, *usual)
        found[role] = next((token for token in candidates if token in known and token), None)
    others = {in_file["unk"], *_USUAL["pad"], *_USUAL["unk"], *_USUAL["mask"]}
    alone = [t["content"] for t in contents.get("added_tokens") or () if t.get("special")]
    if len(alone) == 1 and alone[0] not in others:
        found |= {role: found[role] or alone[0] for role in ("cls", "sep")}
    if found["unk"] in (found["cls"], found["sep"]):
        found["unk"] = None
    for role, does in (("cls", "begins"), ("sep", "ends")):
        if found[role] is None:
            token = named.get(role)
            problem = f"{role}_token {token!r} is not a piece of it" if token else "none is named"
            raise UserError(
                f"{where}: no token {does} a sequence ({problem}); name one of its pieces as "
                f"{role}_token in {CONFIG} beside it"
            )
    # The model never reads the padding.
    return SpecialTokens(**{**found, "pad": found["pad"] or found["sep"]})


def named_beside(path: Path) -> dict[str, str]:
    """Return {role: token} of `special_tokens_map.json` and `tokenizer_config.json` beside a file.

    Beside the roles of `SpecialTokens` these files have "bos" and "eos".
    """
    named = {}
    for other in (MAP, CONFIG):
        beside = path.with_name(other)
        fields = read_json(beside) if beside.is_file() else {}
        for role in (*SpecialTokens._fields, "bos", "eos"):
            token = fields.get(f"{role}_token")
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str) and token:
                named[role] = token
    return named


def separators(contents: dict[str, Any], special: SpecialTokens, where: str) -> int:
    """Return how many separators stand between two texts.

    Raises:
      UserError: the file joins texts in another way than `sequences.pack`.
    """
    template = _template(contents, where)
    if template is None:
        return 1
    cls, sep = special.cls, special.sep
    between = len(template.pair) - 4
    expected = [cls, None, *[sep] * between, None, sep]
    if template.single != [cls, None, sep] or between not in (1, 2) or template.pair != expected:

        def shown(names):
            return shorten(" ".join(name or "TEXT" for name in names[:50]))

        raise UserError(
            f"{where}: post_processor joins texts as {shown(template.single)} and "
            f"{shown(template.pair)}; BERT's way is {shown([cls, None, sep])} and "
            f"{shown([cls, None, sep, None, sep])}"
        )
    return between


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


def steps(part: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """Return the steps of a normalizer, pre_tokenizer or post_processor, sequences flattened.

    Args:
      name: field of a "Sequence" with its list: "normalizers", "pretokenizers" or "processors".
    """
    if part is None:
        return []
    if part.get("type") != "Sequence":
        return [part]
    return [step for inner in part.get(name, []) for step in steps(inner, name)]


def normalizers(contents: dict[str, Any]) -> list[dict[str, Any]]:
    return steps(contents.get("normalizer"), "normalizers")


def pre_tokenizers(contents: dict[str, Any]) -> list[dict[str, Any]]:
    return steps(contents.get("pre_tokenizer"), "pretokenizers")


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


class _Template:
    """The order of tokens and texts (None) in a joined row; `names` are all that it knows."""

    def __init__(self, single, pair, names=()):
        self.single, self.pair, self.names = single, pair, names


def _template(contents, where) -> _Template | None:
    """Return the template of a file, or None where it adds nothing to a text."""
    for step in steps(contents.get("post_processor"), "processors"):
        match step.get("type"):
            case "ByteLevel":
                continue
            case "BertProcessing" | "RobertaProcessing" as kind:
                cls, sep = step["cls"][0], step["sep"][0]
                between = [sep] * (2 if kind == "RobertaProcessing" else 1)
                return _Template([cls, None, sep], [cls, None, *between, None, sep])
            case "TemplateProcessing":
                known = step.get("special_tokens", {}).items()
                tokens = {name: one["tokens"] for name, one in known}
                single, pair = (
                    [
                        token
                        for part in list_of(step, name, dict, where)
                        for token in (
                            tokens[part["SpecialToken"]["id"]] if "SpecialToken" in part else [None]
                        )
                    ]
                    for name in ("single", "pair")
                )
                if single == [None] and pair == [None, None]:
                    continue
                return _Template(single, pair, [*itertools.chain(*tokens.values())])
            case other:
                raise UserError(f"{where}: post_processor: {shorten(other)} is not read")
    return None


def _prefix(contents):
    return contents["model"].get("continuing_subword_prefix") or ""


def _is_byte_level(contents):
    return any(step["type"] == "ByteLevel" for step in pre_tokenizers(contents))


def _has_blanks(contents):
    return any(step["type"] == "Metaspace" for step in pre_tokenizers(contents))


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
