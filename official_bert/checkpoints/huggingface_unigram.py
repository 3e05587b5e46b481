"""ALBERT's `tokenizer.json`, all that newer versions of `transformers` write, as SentencePiece's
own model file.

It holds the same: pieces with their scores, and the table of characters that become others.
"""

import base64
import binascii
from pathlib import Path

from official_bert.errors import UserError
from official_bert.json_files import field, list_of, read_json, shorten
from official_bert.tokenization.sentence_piece import SPECIAL, SentencePieceTokenizer


def read(path: Path, do_lower_case: bool) -> SentencePieceTokenizer:
    """The tokeniser of a `tokenizer.json` of the kind Unigram.

    Raises:
      UserError: a field is missing or wrong, or SentencePiece is not installed.
    """
    contents = read_json(path)
    model = field(contents, "model", dict, path)
    if model.get("type") != "Unigram":
        raise UserError(f"{path}: a {shorten(model.get('type'))} tokenizer; ALBERT's is Unigram")
    pieces = [_piece(entry, path) for entry in list_of(model, "vocab", list, path)]
    added = list_of(contents, "added_tokens", dict, path) if contents.get("added_tokens") else []
    user_defined = {token.get("content") for token in added} - {*SPECIAL}
    content = _model_file(pieces, user_defined, _characters(contents, path), path)
    return SentencePieceTokenizer(content, do_lower_case)


def _model_file(pieces, user_defined, characters: bytes, path: Path) -> bytes:
    try:
        from sentencepiece import sentencepiece_model_pb2 as messages
    except ImportError:
        raise UserError(
            f"{path}: to read ALBERT's tokeniser needs the library SentencePiece: "
            "pip install sentencepiece protobuf"
        ) from None
    model, kinds = messages.ModelProto(), messages.ModelProto.SentencePiece
    for name, score in pieces:
        kind = kinds.USER_DEFINED if name in user_defined else kinds.NORMAL
        if name in SPECIAL:
            kind = kinds.UNKNOWN if name == SPECIAL.unk else kinds.CONTROL
        model.pieces.add(piece=name, score=score, type=kind)
    model.trainer_spec.model_type = messages.TrainerSpec.UNIGRAM
    model.trainer_spec.vocab_size = len(pieces)
    model.trainer_spec.bos_id = model.trainer_spec.eos_id = -1
    for name in ("pad", "unk"):
        token = getattr(SPECIAL, name)
        index = next((i for i, (piece, _) in enumerate(pieces) if piece == token), -1)
        setattr(model.trainer_spec, f"{name}_id", index)
        setattr(model.trainer_spec, f"{name}_piece", token)
    model.normalizer_spec.precompiled_charsmap = characters
    return model.SerializeToString()


def _characters(contents, path: Path) -> bytes:
    """The table of characters, from among the steps of the normalizer."""
    normalizer = contents.get("normalizer")
    steps = normalizer.get("normalizers") if isinstance(normalizer, dict) else None
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and step.get("type") == "Precompiled":
            try:
                return base64.b64decode(field(step, "precompiled_charsmap", str, path))
            except binascii.Error as error:
                raise UserError(f"{path}: precompiled_charsmap: {error}") from None
    return b""


def _piece(entry, path: Path) -> tuple[str, float]:
    if len(entry) != 2 or not isinstance(entry[0], str) or not isinstance(entry[1], int | float):
        raise UserError(f"{path}: vocab: {shorten(entry)} is no piece with its score")
    return entry[0], float(entry[1])
