"""XLM-RoBERTa: ids by hand, models that are refused, its folder in and out."""

import json
import struct

import keras
import numpy as np
import pytest
from tiny import CONFIG

import official_bert
from experiments.beyond.sentence_piece.unigrams import contents_of
from official_bert.checkpoints.finding.resolve import EXPORTERS
from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from official_bert.common.errors import UserError
from official_bert.common.protocol_buffers import field

_FIRST = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
_PIECES = [("▁", -3.0, 1), ("▁the", -1.0, 1), ("▁dog", -2.0, 1), ("s", -2.5, 1), ("犬", -4.0, 1)]
NAME = "sentencepiece.bpe.model"


def model_of(pieces, trainer=b"", normalizer=b"") -> bytes:
    """Return a SentencePiece model of (piece, score, type)."""
    written = [
        field(1, field(1, piece.encode()) + b"\x15" + struct.pack("<f", score) + bytes([24, kind]))
        for piece, score, kind in pieces
    ]
    return b"".join([*written, field(2, trainer), field(3, normalizer)])


def test_ids_are_those_of_fairseq(tmp_path):
    (tmp_path / NAME).write_bytes(model_of([*_FIRST, *_PIECES]))
    tokenizer = huggingface_tokenizer.read(tmp_path, kind="unigram")
    assert tokenizer.vocab[:5] == ["<s>", "<pad>", "</s>", "<unk>", "▁"]
    assert tokenizer.vocab[-1] == "<mask>" and tokenizer.vocab_size == 3 + len(_PIECES) + 2
    assert tokenizer.encode_with_offsets(" the  dogs犬é") == (
        [5, 6, 7, 8, 3],
        [(1, 4), (6, 9), (9, 10), (10, 11), (11, 12)],
    )
    assert tokenizer.encode_masked("the <mask> s") == [5, 9, 4, 7]
    row = tokenizer(["the"], ["dog"])
    assert row["input_ids"].tolist() == [[0, 5, 2, 2, 6, 2]]
    assert tokenizer.decode([0, 5, 6, 7, 2]) == "the dogs"
    [given] = {huggingface_tokenizer.read(tmp_path, tmp_path / NAME, kind="unigram").digest()}
    assert given == tokenizer.digest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x07no", "no SentencePiece model, or damaged"),
        (b"\x08\x05", "no SentencePiece model, or damaged"),
        (model_of([*_FIRST, *_PIECES], normalizer=b"\x10\x05"), "or damaged"),
        (model_of(_PIECES), "its pieces begin with .*, not <unk>, <s>, </s>"),
        (model_of([*_FIRST, ("<en>", 0.0, 4)]), 'its piece "<en>" is of type 4'),
        (model_of([*_FIRST, *_PIECES], trainer=b"\x18\x02"), "model_type 2"),
        (model_of([*_FIRST, *_PIECES], normalizer=b"\x18\x00"), "has add_dummy_prefix=false"),
    ],
    ids=[
        "damaged",
        "a number",
        "a number as a map",
        "pieces",
        "types",
        "byte pairs",
        "no blank before",
    ],
)
def test_models_of_other_kinds_are_refused(tmp_path, content, message):
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(UserError, match=f"{NAME}.*{message}"):
        contents_of(tmp_path / NAME)


def test_a_folder_comes_back_to_the_bit(tmp_path):
    (tmp_path / NAME).write_bytes(model_of([*_FIRST, *_PIECES]))
    tokenizer = huggingface_tokenizer.read(tmp_path, kind="unigram")
    config = CONFIG.replaced(type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, vocab_size=10)
    encoder = official_bert.BertEncoder(config, seed=0)
    model = official_bert.BertPretrainer(encoder, ["masked_lm"], seed=1)
    EXPORTERS["huggingface"](tmp_path / "out", model, tokenizer)
    fields = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (fields["model_type"], fields["architectures"]) == (
        "xlm-roberta", ["XLMRobertaForMaskedLM"],
    )  # fmt: skip
    assert fields["max_position_embeddings"] == config.max_position_embeddings + 2
    loaded = official_bert.load(tmp_path / "out")
    assert loaded.config == config and loaded.tokenizer.digest() == tokenizer.digest()
    for found, expected in zip(loaded.encoder.layers, encoder.layers, strict=True):
        if expected.name != "pooler":  # which the class has not
            for one, other in zip(found.weights, expected.weights, strict=True):
                np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, (one, other)))
    answer = loaded.fill_mask("the <mask>", top_k=2)
    assert len(answer["masks"][0]) == 2 and loaded.embed(["the dog"]).shape == (1, 8)
    # With other pieces the same encoder is a RoBERTa.
    EXPORTERS["huggingface"](tmp_path / "plain", model, None)
    fields = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert fields["model_type"] == "roberta"
    assert np.isfinite(loaded.embed(["犬"])).all()
