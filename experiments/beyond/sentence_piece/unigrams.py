"""XLM-RoBERTa's SentencePiece model as a `tokenizer.json` (Conneau et al. 2020).

The ids are those of fairseq, in which it was trained: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, then
the model's pieces from its third on, each with its own number plus one, and `<mask>` last. The
library `tokenizers` computes them, as in `transformers`.
"""

import base64
import struct
from pathlib import Path
from typing import Any

from official_bert.common import protocol_buffers
from official_bert.common.errors import UserError
from official_bert.common.json_files import shorten
from official_bert.common.outside_files import read_bytes
from official_bert.tokenization.library import tokenizer_json
from official_bert.tokenization.library.foreign import ForeignTokenizer

BLANK = "▁"  # how a piece writes the blank that begins it
NORMAL, UNKNOWN = 1, 2  # types of pieces in a model
_FIRST, _BEGIN = ["<unk>", "<s>", "</s>"], ["<s>", "<pad>", "</s>", "<unk>"]
_MASK = "<mask>"
_MOST_BYTES = 64_000_000


class UnigramTokenizer(ForeignTokenizer):
    """XLM-RoBERTa's tokeniser; a model folder keeps it as any other `tokenizer.json`."""

    hub_files = ("tokenizer.json", "sentencepiece.bpe.model")

    @classmethod
    def hub_contents(cls, path: Path) -> dict[str, Any] | None:
        return contents_of(path) if path.suffix == ".model" else None


def contents_of(path: Path) -> dict[str, Any]:
    """Return the contents of the `tokenizer.json` that `transformers` makes of a model.

    Raises:
      UserError: the file is missing or damaged, or is not a model of XLM-RoBERTa's kind.
    """
    try:
        pieces, trainer, normalizer = _parts(read_bytes(path, _MOST_BYTES))
        characters = base64.b64encode(normalizer.get(2, b"")).decode() or None
    except (ValueError, IndexError, struct.error, TypeError, AttributeError) as error:
        raise UserError(f"{path}: no SentencePiece model, or damaged ({error})") from None
    names, odd = [piece for piece, _, _ in pieces], [p for p in pieces[3:] if p[2] != NORMAL]
    reason = ""
    if names[:3] != _FIRST:
        reason = f"its pieces begin with {shorten(', '.join(names[:3]))}, not {', '.join(_FIRST)}"
    elif odd:
        reason = f"its piece {shorten(odd[0][0])} is of type {odd[0][2]}, all have type {NORMAL}"
    elif trainer.get(3, 1) != 1:
        reason = f"its trainer_spec has model_type {trainer[3]}, only 1 (unigrams) is read"
    elif off := [number for number in (3, 4, 5) if normalizer.get(number, 1) != 1]:
        names = {3: "add_dummy_prefix", 4: "remove_extra_whitespaces", 5: "escape_whitespaces"}
        reason = f"its normalizer_spec has {names[off[0]]}=false"
    if reason:
        raise UserError(f"{path}: not a model of XLM-RoBERTa's kind: {reason}")
    scores = [[name, 0.0] for name in _BEGIN]
    scores += [[piece, score] for piece, score, _ in pieces[3:]] + [[_MASK, 0.0]]
    added = tokenizer_json.special_tokens(
        {name: index for index, (name, _) in enumerate(scores)}, [*_BEGIN, _MASK]
    )
    added[-1]["lstrip"] = True  # the blank before a mask belongs to the word that it hides
    space = {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "always", "split": True}
    return tokenizer_json.whole(
        {"type": "Unigram", "unk_id": 3, "vocab": scores, "byte_fallback": False},
        added,
        normalizer=characters and {"type": "Precompiled", "precompiled_charsmap": characters},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]},
        post_processor=_template(),
        decoder=space,
    )


def _template() -> dict[str, Any]:
    single, pair = ["<s>", "A", "</s>"], ["<s>", "A", "</s>", "</s>", "B", "</s>"]
    kinds = {"A": "Sequence", "B": "Sequence"}
    single, pair = (
        [{kinds.get(name, "SpecialToken"): {"id": name, "type_id": 0}} for name in names]
        for names in (single, pair)
    )
    ids = {"<s>": 0, "</s>": 2}
    tokens = {name: {"id": name, "ids": [index], "tokens": [name]} for name, index in ids.items()}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def _parts(model: bytes):
    """Return [(piece, score, type)] and the fields of trainer_spec and normalizer_spec."""
    pieces, parts = [], {2: {}, 3: {}}
    for number, content in protocol_buffers.fields(model):
        if number == 1:
            piece = dict(protocol_buffers.fields(content))
            score = struct.unpack("<f", piece.get(2, bytes(4)))[0]
            pieces.append((piece.get(1, b"").decode(), score, piece.get(3, NORMAL)))
        elif number in parts:
            parts[number] = dict(protocol_buffers.fields(content))
    return pieces, *parts.values()
