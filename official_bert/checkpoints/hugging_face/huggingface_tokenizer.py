"""The tokenizer files of a Hugging Face folder: `tokenizer.json`, or the older ones of a kind.

The library `tokenizers`, which defines them, computes them (`tokenization.library.foreign`). Where
the files of a folder contradict each other, `tokenizer.json` counts; a contradiction about case,
accents or ideographs, which `transformers` decides in its own way, is an error.
"""

import json
import os
from pathlib import Path
from typing import Any

from official_bert.checkpoints.google import find_tokenizer
from official_bert.common.errors import UserError
from official_bert.common.files import write_json
from official_bert.common.json_files import field, read_json, shorten
from official_bert.tokenization import (
    SPECIAL_TOKENS,
    BertTokenizer,
    ForeignTokenizer,
    SpecialTokens,
    Tokenizer,
    load_tokenizer,
    load_vocab,
    tokenizer_class,
    write_vocab,
)
from official_bert.tokenization.library import roles, tokenizer_json
from official_bert.tokenization.library.own_json import RULES, as_tokenizer_json, standard
from official_bert.tokenization.reference import Rules
from official_bert.tokenization.vocabulary import lower_case_of

_MAX_CHARS_PER_WORD = 100  # longer words become [UNK]; in the original 200
_FILE, _ADDED = "tokenizer.json", "added_tokens.json"
_CONFIG, _MAP = roles.CONFIG, roles.MAP


def read(
    folder: Path,
    vocab: str | os.PathLike | None = None,
    do_lower_case: bool | None = None,
    kind: str = "word_piece",
):
    """Return the folder's tokeniser, or None where it has no file of it.

    Args:
      vocab: another vocabulary file.
      do_lower_case: None as the files say; where none does, text is lower-cased unless many pieces
        have capital letters, and a warning says so.
      kind: of the model's usual tokeniser, see `tokenization.tokenizer_class`.

    Raises:
      UserError: a file is damaged, or holds what cannot be computed.
    """
    usual = tokenizer_class(kind)
    if vocab:
        if Path(vocab).suffix not in (".json", ".model"):
            return find_tokenizer(vocab, folder, do_lower_case)
        if contents := usual.hub_contents(Path(vocab)):
            return ForeignTokenizer(contents, where=str(vocab))
        found = load_tokenizer(vocab, do_lower_case is not False)
        if kind != "word_piece" and found.kind not in (kind, ForeignTokenizer.kind):
            raise UserError(f"{vocab}: a {found.kind} vocabulary; this model has {kind}")
        return found
    path = next((folder / name for name in usual.hub_files if (folder / name).is_file()), None)
    if path is None:
        return None
    config = _json(folder / _CONFIG)
    if path.name == "vocab.txt":
        contents = _of_vocabulary(path, config, do_lower_case)
        return _foreign(contents, path, config, None)
    if contents := usual.hub_contents(path):
        return _foreign(contents, path, config, do_lower_case)
    if path.name != _FILE or (usual.reads_hub_json and load_tokenizer(path).kind == kind):
        lower = config.get("do_lower_case") if do_lower_case is None else do_lower_case
        return load_tokenizer(path, lower is not False)
    return _foreign(tokenizer_json.read(path), path, config, do_lower_case)


def _foreign(contents, path: Path, config: dict, do_lower_case: bool | None) -> ForeignTokenizer:
    _check_rules(contents, config, do_lower_case, path)
    named = _named(path)
    known = _add_tokens(contents, _added(path.parent, config, named), path)
    special = roles.find(contents, known, str(path), named)
    return ForeignTokenizer(contents, special, str(path))


def _of_vocabulary(path: Path, config: dict, do_lower_case: bool | None) -> dict:
    """Return the `tokenizer.json` that transformers makes of a `vocab.txt`."""
    named = _named(path)
    lines = load_vocab(path, check=False)
    if do_lower_case is None:
        do_lower_case = config.get("do_lower_case")
    if not isinstance(do_lower_case, bool):
        do_lower_case = lower_case_of(lines, str(path))
    rules = Rules(do_lower_case)
    rules = rules._replace(
        **{name: config[name] for name in Rules._fields[1:] if isinstance(config.get(name), bool)}
    )
    # The library wants a piece for each id. No word holds blanks, so these pieces are never found.
    last = {piece: index for index, piece in enumerate(lines) if piece}
    without = {*range(len(lines))} - {*last.values()}
    id_of = {**{f"no piece {index}": index for index in sorted(without)}, **last}
    special = [token for token in named.values() if token in id_of]
    return standard(id_of, rules, named["unk"], special, _MAX_CHARS_PER_WORD)


def _check_rules(contents, config: dict, do_lower_case: bool | None, path: Path) -> None:
    """Compare the normalizer with `tokenizer_config.json`; set `do_lower_case` where it is given.

    Raises:
      UserError: `tokenizer_config.json` says otherwise than the BertNormalizer, or there is none
        that `do_lower_case` could change.
    """
    found = [
        step
        for step in tokenizer_json.steps(contents, "normalizer")
        if step.get("type") == "BertNormalizer"
    ]
    if do_lower_case is not None:
        if found:
            found[-1]["lowercase"] = do_lower_case
        elif do_lower_case != tokenizer_json.lower_cases(_library(contents, path)[0]):
            raise UserError(
                f"{path}: its normalizer decides about case, so do_lower_case="
                f"{str(do_lower_case).lower()} cannot be had; leave the option out"
            )
    if not found or str(config.get("tokenizer_class", "Bert")).startswith("PreTrained"):
        return  # transformers does not look at the fields either
    written = Rules(*(found[-1].get(name) for name in RULES.values()))
    beside = written._replace(**{k: config[k] for k in RULES if isinstance(config.get(k), bool)})
    if do_lower_case is not None:
        beside = beside._replace(do_lower_case=do_lower_case)
    for name, value in (*written._asdict().items(), ("strip_accents", written.accents_go)):
        other = beside.accents_go if name == "strip_accents" else getattr(beside, name)
        value = written.accents_go if name == "strip_accents" else value
        if bool(value) != bool(other):
            option = "pass do_lower_case, or " if name == "do_lower_case" else ""
            raise UserError(
                f"{path}: its normalizer has {RULES[name]}={json.dumps(value)}, but {_CONFIG} "
                f"beside it says {name}={json.dumps(other)}; {option}correct the wrong one"
            )


def _named(path: Path) -> dict[str, str]:
    """Return {role: token} of the files beside a vocabulary.

    Without a `tokenizer.json`, roles that they do not name have BERT's tokens.
    """
    has_json = path.with_name(_FILE).is_file()
    usual = {} if has_json else SpecialTokens(*SPECIAL_TOKENS)._asdict()
    return {**usual, **roles.named_beside(path)}


def _added(folder: Path, config: dict, named: dict[str, str]) -> list[dict[str, Any]]:
    """Return the added tokens of the files beside a `tokenizer.json`, in the order of their ids."""
    found = {}
    path = folder / _ADDED
    for token in (contents := _json(path)):
        is_special = token in named.values()
        flags = {**tokenizer_json.FLAGS, "normalized": not is_special, "special": is_special}
        found[field(contents, token, int, path)] = {"content": token, **flags}
    decoder = config.get("added_tokens_decoder") or {}
    path = folder / _CONFIG
    if not isinstance(decoder, dict):
        raise UserError(f"{path}: added_tokens_decoder must be an object, not {shorten(decoder)}")
    for index in decoder:
        token = field(decoder, index, dict, f"{path}: added_tokens_decoder")
        if not index.isdecimal() or len(index) > 9:
            raise UserError(f"{path}: added_tokens_decoder: {shorten(index)} is not an id")
        where = f"{path}: added_tokens_decoder: {index}"
        flags = {name: bool(token.get(name)) for name in (*tokenizer_json.FLAGS, "special")}
        found[int(index)] = {"content": field(token, "content", str, where), **flags}
    return [{"id": index, **found[index]} for index in sorted(found)]


def _add_tokens(contents, tokens: list[dict], path: Path) -> list[str]:
    """Add the tokens that the contents lack; return all pieces.

    Raises:
      UserError: a token has one id here and another one there.
    """
    there = contents["added_tokens"] = list(contents.get("added_tokens") or [])
    names = {token.get("content") for token in there}
    known, count = _pieces(contents, path), len(there)
    id_of = {piece: index for index, piece in enumerate(known)}
    for token in tokens:
        name, index = token["content"], token["id"]
        if id_of.get(name, index) != index or known[index : index + 1] not in ([], [name], [""]):
            raise UserError(
                f"{path.parent}: {_ADDED} or {_CONFIG} gives {name!r} the id {index}, which "
                f"{path.name} does not"
            )
        if name not in names:
            there.append(token)
    if len(there) == count:
        return known
    there.sort(key=lambda token: token["id"])
    return _pieces(contents, path)


def _pieces(contents, path) -> list[str]:
    return tokenizer_json.pieces(*_library(contents, path), str(path))


def _library(contents, path):
    return tokenizer_json.library({**contents, "truncation": None, "padding": None}, str(path))


def longest(folder: Path) -> int:
    """Return the `model_max_length` of `tokenizer_config.json`, in tokens; 0 where it has none."""
    length = _json(folder / _CONFIG).get("model_max_length")
    # A huge number means no limit.
    return length if type(length) is int and 0 < length < 1 << 30 else 0


def write(folder: Path, tokenizer: Tokenizer, max_length: int, has_segments: bool = True) -> None:
    """Write the vocabulary for the class of `transformers`, and `tokenizer_config.json`.

    For WordPieces `tokenizer.json` and `special_tokens_map.json` are written, too.

    Without segments the tokenizer does not give the model `token_type_ids`.
    """
    special = {f"{role}_token": t for role, t in tokenizer.special._asdict().items() if t}
    if tokenizer.special.mask == tokenizer.special.unk:
        special.pop("mask_token", None)  # it hides nothing
    inputs = {} if has_segments else {"model_input_names": ["input_ids", "attention_mask"]}
    if isinstance(tokenizer, BertTokenizer):
        write_vocab(folder / "vocab.txt", tokenizer.vocab)
        write_json(folder / _MAP, special)
        write_json(folder / _FILE, as_tokenizer_json(tokenizer))
    elif tokenizer.special.cls == tokenizer.special.sep:
        write_json(folder / _FILE, tokenizer.without_template())
    else:
        tokenizer.write_for_hub(folder)
    write_json(
        folder / _CONFIG,
        {
            "tokenizer_class": tokenizer.hub_class,
            **tokenizer.options,
            "model_max_length": max_length,
            **(inputs if tokenizer.kind in ("word_piece", ForeignTokenizer.kind) else {}),
            **special,
        },
    )


def _json(path: Path) -> dict:
    return read_json(path) if path.is_file() else {}
