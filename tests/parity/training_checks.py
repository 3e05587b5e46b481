"""Pre-training step by step beside the PyTorch twin."""

import dataclasses
import tempfile

import numpy as np

import official_bert as ob
from official_bert.checkpoints import transfer
from tests.parity import peers
from tests.parity.results import Result, check

STEPS, WARMUP, PEAK, ROWS, LENGTH = 200, 20, 1e-3, 16, 24


@check("torch")
def pretraining_twin() -> list[Result]:
    """200 steps of a toy model on the same batches: the two loss curves, step by step."""
    import tensorflow as tf
    import torch

    from tests.parity.twin import Twin

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for so small a model more threads only wait for each other

    config = dataclasses.replace(
        peers.SMALL,
        num_hidden_layers=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.02 * (768 / peers.SMALL.hidden_size) ** 0.5,  # base's 0.02, narrower
    )
    model = ob.BertPretrainer(config, seed=7)
    tensors = transfer.extract(model, "pretraining", "huggingface")
    twin = Twin(
        {name: array.copy() for name, array in tensors.items()},
        config.num_hidden_layers,
        config.num_attention_heads,
        PEAK,
        WARMUP,
        STEPS,
    )
    optimizer = ob.BertAdamW(ob.WarmupLinearDecay(PEAK, WARMUP, STEPS))
    optimizer.build(model.trainable_variables)

    @tf.function
    def train(batch):
        with tf.GradientTape() as tape:
            terms = model.loss_terms(batch, model(batch, training=True))
            loss = sum(total / weight for total, weight in terms.values())
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    ours, theirs = [], []
    for step in range(STEPS):
        batch = learnable_batch(config.vocab_size, step)
        theirs.append(twin.train(batch))
        ours.append(float(train({name: tf.constant(a) for name, a in batch.items()})))
    torch.set_num_threads(threads)
    final = transfer.extract(model, "pretraining", "huggingface")
    apart = max(peers.farthest(array, twin.weights[name].detach()) for name, array in final.items())
    name = f"{STEPS} pre-training steps of a toy model (2/48/4)"
    fall = float(np.mean(ours[:5]) - np.mean(ours[-5:]))
    curves = float(np.max(np.abs(np.array(ours) - theirs)))
    fell = f"fall of the loss, {ours[0]:.2f} to {ours[-1]:.2f}; {name}"
    return [
        Result(f"loss, worst step; {name}", "PyTorch twin", curves, 1e-4),
        Result(f"weights after the last step; {name}", "PyTorch twin", apart, 1e-2),
        Result(fell, "no learning", fall, 0.5, True),
    ]


@check("torch", "transformers")
def finetuning_steps() -> list[Result]:
    """20 steps of every head on a toy encoder."""
    import torch

    from tests.parity import finetuning

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
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
        results.append(Result(what, "transformers (PyTorch)", worst, 1e-4))
    torch.set_num_threads(threads)
    return results


@check(needs_data=True, slow=True)
def bert_tiny_on_sst2(data_dir) -> list[Result]:
    """The trained BERT-tiny encoder, fine-tuned on SST-2: Turc et al. report 83.2 on test."""
    from experiments import finetune
    from experiments.training.config import FinetuneConfig

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
        accuracy = finetune.run(config, folder, progress=False)["dev"]["accuracy"]
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
