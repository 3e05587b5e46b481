"""Steps of LoRA beside the same in PyTorch: by its formula, and by peft."""

import tempfile

import numpy as np

import official_bert as ob
from experiments.beyond.lora import adapter
from experiments.beyond.lora.low_rank import adapt, merged
from experiments.training.step import strategies
from experiments.training.step.trainer import Trainer
from experiments.training.step.trainer_state import StepOptions
from official_bert.checkpoints import model_folder
from official_bert.checkpoints.hugging_face import huggingface
from tests.parity import finetuning, peers
from tests.parity.results import Result, check

_RANK, _ALPHA, _STEPS = 4, 12.0, 4


@check("torch", "transformers")
def lora() -> list[Result]:
    """LoRA on all products of a classifier: its own training step, beside the formula."""
    return _compare("PyTorch, by the formula", _by_the_formula)


def lora_of_peft() -> list[Result]:
    """Compare with peft, which is in no extra of this project."""
    return _compare("peft", _by_peft)


def adapters_of_peft() -> list[Result]:
    """Compare models with their adapters in peft, and with what peft writes of them, read again."""
    kinds = {
        "BERT": {},
        "RoBERTa": {"type_vocab_size": 1, "pad_token_id": 1},
        "ALBERT": {"num_hidden_groups": 1, "embedding_size": 24, "gelu_form": "tanh"},
        "ELECTRA": {"embedding_size": 24, "pooler_activation": "gelu"},
        "DistilBERT": {"type_vocab_size": 0, "pooler_activation": "relu"},
    }
    return [one for name, fields in kinds.items() for one in _adapters_of_peft(name, fields)]


def _adapters_of_peft(of: str, fields: dict) -> list[Result]:
    import peft
    import transformers

    shape = finetuning.without_dropout(peers.SMALL).replaced(**fields)
    model = ob.BertClassifier(ob.BertEncoder(shape, seed=1), 3, seed=1)
    peers.shake(model)
    batch = peers.random_batch(shape, rows=6, length=24)
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    if of == "RoBERTa":  # it counts positions without the padding, and has one segment
        inputs["input_ids"] = np.maximum(inputs["input_ids"], 2)
        inputs["segment_ids"] = np.zeros_like(inputs["segment_ids"])
    with tempfile.TemporaryDirectory() as folder:
        base, tuned, ours, theirs, again = (f"{folder}/{name}" for name in "botha")
        model_folder.save(base, model.encoder, None)
        huggingface.export_huggingface(f"{folder}/hf", model, None)
        adapt(model.encoder, _RANK, _ALPHA, seed=2)
        peers.shake(model)
        plain = merged(model)
        model_folder.save(tuned, plain, None, {"num_labels": 3, "labels": ["a", "b", "c"]})
        adapter.run(base=base, model=tuned, output=ours)
        kind = transformers.AutoModelForSequenceClassification
        peer = peft.PeftModel.from_pretrained(
            kind.from_pretrained(f"{folder}/hf", num_labels=3), ours
        ).eval()
        peer.save_pretrained(theirs)
        adapter.run(base=base, adapter=theirs, output=again)
        logits = peer(**peers.their_inputs(inputs)).logits
        found = {"written": plain, "read": model_folder.load(again).model}
        return [
            Result(
                f"LoRA, adapter of {of} {name}: logits",
                "peft",
                peers.farthest(one(inputs)["logits"], logits),
                2e-6,
            )
            for name, one in found.items()
        ]


def _compare(against, give_updates) -> list[Result]:
    """Compare losses, updates and heads of a few steps from the same start.

    Args:
      give_updates: function of a model of transformers, which it changes in place: a list of their
        ([r, N], [M, r]) parameters in the order of `_linears`; all others are frozen.
    """
    shape = finetuning.without_dropout(peers.SMALL)
    model = ob.BertClassifier(ob.BertEncoder(shape, seed=1), 3, seed=1)
    peers.shake(model)
    theirs = peers.in_transformers(model).train()
    adapt(model.encoder, _RANK, _ALPHA, seed=2)
    pairs = give_updates(theirs)
    for (a, b), (first, second) in zip(_updates(model), pairs, strict=True):
        first.data.copy_(_tensor(a))
        second.data.copy_(_tensor(b))
    for part in (theirs.bert.pooler, theirs.classifier):
        part.requires_grad_(True)
    batch = peers.random_batch(shape, rows=6, length=24)
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    batch = {**inputs, "label_ids": np.array([0, 1, 2, 0, 1, 2], "int32")}
    optimizer = finetuning.TorchBertAdamW(theirs, 1e-2, 0, 100)
    trainer = Trainer(lambda seed: model, strategies.get_strategy("one_device"), StepOptions())
    trainer.set_schedule(1e-2, 0, 100)
    losses = []
    for _ in range(_STEPS):
        loss = theirs(**peers.their_inputs(batch), **finetuning.their_labels(batch)).loss
        loss.backward()
        optimizer.step()
        ours = float(trainer.read([trainer.train_on(batch)])["loss"][0])
        losses.append(abs(ours - loss.item()))
    trained = [*_updates(model), (model.head.kernel, model.encoder.pooler.kernel)]
    pairs = [*pairs, (theirs.classifier.weight, theirs.bert.pooler.dense.weight)]
    moved = max(
        peers.farthest(np.asarray(ours).T, other)
        for both, others in zip(trained, pairs, strict=True)
        for ours, other in zip(both, others, strict=True)
    )
    what = f"LoRA, rank {_RANK}, {_STEPS} steps: "
    return [
        Result(f"{what}losses", against, max(losses), 1e-5),
        Result(f"{what}A, B, pooler and head", against, moved, 1e-4),
    ]


def _updates(model):
    for block in model.encoder.blocks:
        attention = block.attention
        for layer in (
            attention.query, attention.key, attention.value, attention.output_dense,
            block.intermediate, block.output_dense,
        ):  # fmt: skip
            yield layer.lora_kernel_a, layer.lora_kernel_b


def _linears(theirs):
    """Yield (owner, attribute) of the products of a BERT of transformers."""
    for layer in theirs.bert.encoder.layer:
        attention = layer.attention
        yield from ((attention.self, name) for name in ("query", "key", "value"))
        yield from ((one, "dense") for one in (attention.output, layer.intermediate, layer.output))


def _by_the_formula(theirs):
    import torch

    class Updated(torch.nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.linear = linear
            self.a = torch.nn.Parameter(torch.empty(_RANK, linear.in_features))
            self.b = torch.nn.Parameter(torch.empty(linear.out_features, _RANK))

        def forward(self, x):
            return self.linear(x) + _ALPHA / _RANK * (x @ self.a.T) @ self.b.T

    theirs.requires_grad_(False)
    pairs = []
    for owner, name in [*_linears(theirs)]:
        setattr(owner, name, Updated(getattr(owner, name)))
        pairs.append((getattr(owner, name).a, getattr(owner, name).b))
    return pairs


def _by_peft(theirs):
    import peft

    kinds = ["query", "key", "value", "attention.output.dense", "intermediate.dense"]
    config = peft.LoraConfig(
        r=_RANK, lora_alpha=_ALPHA, target_modules=[*kinds, "output.dense"], lora_dropout=0.0
    )
    peft.inject_adapter_in_model(config, theirs)
    layers = [getattr(owner, name) for owner, name in _linears(theirs)]
    return [(one.lora_A["default"].weight, one.lora_B["default"].weight) for one in layers]


def _tensor(variable):
    import torch

    return torch.from_numpy(np.ascontiguousarray(np.asarray(variable.numpy()).T))
