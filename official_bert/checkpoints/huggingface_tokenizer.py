"""The tokenizer files of a Hugging Face folder: `tokenizer.json`, or the older ones of a kind."""

import json
import os
from pathlib import Path

from official_bert.checkpoints import huggingface_unigram
from official_bert.checkpoints.google import find_tokenizer, is_lower_case
from official_bert.errors import UserError
from official_bert.files import write_text
from official_bert.json_files import field, read_json, shorten
from official_bert.tokenization import (
    SPECIAL_TOKENS,
    BertTokenizer,
    Tokenizer,
    load_tokenizer,
    sequences,
    write_vocab,
)
from official_bert.tokenization.byte_pair_files import pieces_of, with_added_tokens, write_parts
from official_bert.tokenization.reference import Rules

# Words longer than this become [UNK] in the original; transformers' own default is 100.
_MAX_CHARS_PER_WORD = 200


def read(
    folder: Path,
    vocab: str | os.PathLike | None = None,
    do_lower_case: bool | None = None,
    kind: str = "word_piece",
):
    """The folder's tokeniser, or None where it has no file of it.

    Args:
      vocab: another vocabulary file.
      do_lower_case: None as the files say.
      kind: of the tokeniser, a name of `tokenization.KINDS`.

    Raises:
      UserError: a file is damaged, or the tokenizer is of another kind.
    """
    if kind != "word_piece" and not (folder / "vocab.txt").is_file():
        return _successors(folder, vocab, do_lower_case, kind)
    rules = _rules_of(folder)
    lower = rules.pop("do_lower_case", None)
    if do_lower_case is None:
        do_lower_case = lower
    if vocab or (folder / "vocab.txt").is_file():
        return find_tokenizer(vocab, folder, do_lower_case, **rules)
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    pieces = _pieces(read_json(path), path)
    if do_lower_case is None:
        do_lower_case = is_lower_case(pieces)
    return BertTokenizer(pieces, do_lower_case, **rules)


def _successors(folder, vocab, do_lower_case, kind):
    names = {
        "byte_pair": ("tokenizer.json", "vocab.json"),
        "word_end_byte_pair": ("tokenizer.json", "vocab.json"),
        "sentence_piece": ("spiece.model", "tokenizer.json"),
    }
    paths = [Path(vocab)] if vocab else [folder / name for name in names[kind]]
    path = next((path for path in paths if vocab or path.is_file()), None)
    if path is None:
        return None
    if do_lower_case is None:
        do_lower_case = _rules_of(folder).get("do_lower_case", True)
    if kind == "sentence_piece" and path.suffix == ".json":
        return huggingface_unigram.read(path, do_lower_case)
    tokenizer = load_tokenizer(path, do_lower_case)
    if tokenizer.kind != kind:
        raise UserError(f"{path}: a {tokenizer.kind} vocabulary; this model has {kind}")
    return tokenizer


def longest(folder: Path) -> int:
    """The most tokens of a text that `tokenizer_config.json` names; 0 where it names none."""
    path = folder / "tokenizer_config.json"
    length = read_json(path).get("model_max_length") if path.is_file() else None
    # A number without end stands for none.
    return length if isinstance(length, int) and 0 < length < 1 << 30 else 0


def write(
    folder: Path, tokenizer: BertTokenizer, max_length: int, has_segments: bool = True
) -> None:
    """Writes `vocab.txt`, `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json`.

    Without segments the tokenizer does not give the model `token_type_ids`.
    """
    special = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL_TOKENS}
    write_vocab(folder / "vocab.txt", tokenizer.vocab)
    _write_json(folder / "special_tokens_map.json", special)
    inputs = {} if has_segments else {"model_input_names": ["input_ids", "attention_mask"]}
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "BertTokenizer",
            **tokenizer.rules._asdict(),
            "model_max_length": max_length,
            **inputs,
            **special,
        },
    )
    _write_json(folder / "tokenizer.json", fast_tokenizer(tokenizer))


def write_of_successor(folder: Path, tokenizer: Tokenizer, max_length: int) -> None:
    """Writes a successor's vocabulary and its `tokenizer_config.json`."""
    tokenizer.write(folder)
    classes = {
        "byte_pair": "RobertaTokenizer",
        "sentence_piece": "AlbertTokenizer",
        "word_end_byte_pair": "OpenAIGPTTokenizer",
    }
    special = tokenizer.special._asdict()
    if tokenizer.kind == "word_end_byte_pair":
        write_parts(folder, tokenizer.vocab, tokenizer.merges)
        del special["mask"]  # GPT has none
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": classes[tokenizer.kind],
            **tokenizer.options,
            "model_max_length": max_length,
            **{f"{role}_token": token for role, token in special.items()},
        },
    )


def fast_tokenizer(tokenizer: BertTokenizer) -> dict:
    """The contents of `tokenizer.json` as the library `tokenizers` defines it."""
    id_of = {piece: index for index, piece in enumerate(tokenizer.vocab)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": id_of[name], "content": name, **flags, "special": True}
            for name in sorted(SPECIAL_TOKENS, key=id_of.get)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": tokenizer.rules.tokenize_chinese_chars,
            "strip_accents": tokenizer.rules.strip_accents,
            "lowercase": tokenizer.do_lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": sequences.as_template(tokenizer),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _MAX_CHARS_PER_WORD,
            "vocab": id_of,
        },
    }


def _rules_of(folder: Path) -> dict:
    """The fields of `reference.Rules` that the files state; tokenizer_config.json first, as in
    transformers."""
    rules = {}
    for file, place, names in (
        ("tokenizer.json", "normalizer", ("lowercase", "strip_accents", "handle_chinese_chars")),
        ("tokenizer_config.json", "", Rules._fields),
    ):
        contents = read_json(folder / file) if (folder / file).is_file() else {}
        contents = contents.get(place) if place and isinstance(contents, dict) else contents
        if isinstance(contents, dict):
            for rule, name in zip(Rules._fields, names, strict=True):
                if isinstance(contents.get(name), bool):
                    rules[rule] = contents[name]
    return rules


def _pieces(contents, path: Path) -> list[str]:
    model = field(contents, "model", dict, path)
    if model.get("type", "WordPiece") != "WordPiece":
        raise UserError(f"{path}: a {shorten(model['type'])} tokenizer; BERT's is WordPiece")
    return pieces_of(with_added_tokens(contents, path), f"{path}: vocab")


def _write_json(path: Path, contents) -> None:
    text = json.dumps(contents, indent=2, ensure_ascii=False)
    write_text(path, text + "\n")
