"""Encoder and decoder against `transformers`' EncoderDecoderModel: logits, greedy texts, beams."""

import tempfile
from pathlib import Path

import keras
import numpy as np

import official_bert as ob
from experiments.beyond.seq2seq.model import Seq2Seq
from official_bert.checkpoints.hugging_face import huggingface
from tests.parity import peers
from tests.parity.results import Result, check

AGAINST = "transformers (PyTorch)"
_SHAPE = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 40,
}  # fmt: skip
_BEGIN, _END, _LONGEST = 2, 3, 16
_ENDS = 2.0  # makes some of the random texts end


@check("torch", "transformers")
def encoder_decoder() -> list[Result]:
    """BERT2BERT with random weights: sources of every length, targets of 12 tokens."""
    import torch
    import transformers

    torch.manual_seed(0)
    fields = {"is_decoder": True, "add_cross_attention": True}
    theirs = transformers.EncoderDecoderModel(
        encoder=transformers.BertModel(transformers.BertConfig(**_SHAPE)),
        decoder=transformers.BertLMHeadModel(transformers.BertConfig(**_SHAPE, **fields)),
    ).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():  # zero biases and unit gains would hide mistakes
            parameter.add_(0.2 * torch.randn_like(parameter))
        theirs.decoder.cls.predictions.bias[_END] += _ENDS
    ours = _taken_over(theirs)
    batch = peers.random_batch(ours.encoder.config, rows=8, length=24)
    ids, mask = batch["input_ids"], batch["input_mask"]
    ids[:, 0] = _BEGIN
    ids[np.arange(8), mask.sum(1) - 1] = _END
    targets = np.random.default_rng(1).integers(5, 60, (8, 12)).astype("int32")
    given = {"input_ids": torch.tensor(ids).long(), "attention_mask": torch.tensor(mask).long()}
    with torch.no_grad():
        logits = theirs(**given, decoder_input_ids=torch.tensor(targets).long()).logits
    batch = {"input_ids": ids, "input_mask": mask}
    labels = np.concatenate([targets, targets[:, :1]], axis=1)
    scores = keras.ops.convert_to_numpy(ours({**batch, "label_ids": labels})["logits"])
    name = "EncoderDecoderModel, tiny shape, random weights"
    found = [Result(f"logits; {name}", AGAINST, peers.farthest(scores, logits), 2e-5)]
    special = {"decoder_start_token_id": _BEGIN, "eos_token_id": _END, "pad_token_id": 0}
    ended = set()
    for beams, penalty in ((1, 1.0), (4, 1.0), (3, 0.0), (5, 2.0)):
        written = theirs.generate(
            **given, **special, do_sample=False, num_beams=beams, length_penalty=penalty,
            max_length=_LONGEST + 1,
        )[:, 1:].tolist()  # fmt: skip
        ours.beams, ours.length_penalty = beams, penalty
        mine = keras.ops.convert_to_numpy(ours(batch)["output_ids"]).tolist()
        mine = [[i for i in row if i >= 0] for row in mine]
        written = [row[: row.index(_END)] if _END in row else row for row in written]
        written = [row[:_LONGEST] for row in written]
        ended |= {len(row) == _LONGEST for row in written}
        differ = sum(a != b for a, b in zip(mine, written, strict=True))
        what = f"{beams} beams, length penalty {penalty}" if beams > 1 else "greedy"
        found.append(Result(f"texts that differ, of 8, {what}; {name}", AGAINST, differ, 0))
    assert ended == {True, False}, "texts that end, and texts that are cut"
    return found


def _taken_over(theirs) -> Seq2Seq:
    """Ours with the weights of theirs."""
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        encoder, decoder = Path(folder, "encoder"), Path(folder, "decoder")
        theirs.encoder.save_pretrained(encoder)
        plain = transformers.BertLMHeadModel(transformers.BertConfig(**_SHAPE, is_decoder=True))
        told = plain.load_state_dict(theirs.decoder.state_dict(), strict=False)
        assert not told.missing_keys
        assert all("crossattention" in name for name in told.unexpected_keys)
        plain.save_pretrained(decoder)
        read = huggingface.import_huggingface(encoder)
        written = huggingface.import_huggingface(decoder)
    ours = Seq2Seq(read.encoder, longest=_LONGEST)
    by_path = {v.path.partition("/")[2]: v for v in written.model.weights}
    below = {v.path.partition("/")[2]: v for v in written.encoder.weights}
    for variable in (*ours.own_decoder.weights, *ours.masked_lm.weights):
        path = variable.path.partition("/")[2]
        variable.assign(by_path[path] if path in by_path else below[path.partition("/")[2]])
    for layer, cross in zip(theirs.decoder.bert.encoder.layer, ours.cross, strict=True):
        attention, output = layer.crossattention.self, layer.crossattention.output
        pairs = [
            (cross.attention.query, attention.query),
            (cross.attention.key, attention.key),
            (cross.attention.value, attention.value),
            (cross.attention.output_dense, output.dense),
        ]
        for mine, one in pairs:
            mine.kernel.assign(one.weight.detach().numpy().T)
            mine.bias.assign(one.bias.detach().numpy())
        cross.norm.gamma.assign(output.LayerNorm.weight.detach().numpy())
        cross.norm.beta.assign(output.LayerNorm.bias.detach().numpy())
    assert isinstance(ours.own_decoder, ob.BertEncoder)
    return ours
