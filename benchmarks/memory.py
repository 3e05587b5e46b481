"""Memory of one pre-training step on a device, by size and length: computed, and XLA's figure.

    KERAS_BACKEND=jax python -m benchmarks.memory

Measured is what XLA gives the compiled step on this machine's CPU: arguments, results and temporary
memory (`memory_analysis`). Nothing is run. Each result is kept in `results/memory.json` as soon as
it is there, and is not measured again. Printed is the table of docs/distribution.md.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.machine import kept
from official_bert.common.markdown import markdown_table
from official_bert.config import named_config

RESULTS = Path(__file__).parent / "results" / "memory.json"
SIZES = ("tiny", "mini", "small", "medium", "base", "large")
LENGTHS = (128, 512)
BATCH = 8


def fields(length, rows=BATCH):
    """Return the batch of a step: dict of arrays [rows, ...], zeros."""
    shapes = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), (rows, length))
    predicted = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    shapes |= dict.fromkeys(predicted, (rows, predictions(length)))
    shapes["next_sentence_labels"] = (rows, 1)
    return {n: np.zeros(s, "float32" if "weights" in n else "int32") for n, s in shapes.items()}


def predictions(length):
    return length * 20 // 128


def measured(bert, length, strategy=None, parts=1):
    """Return bytes a device of the compiled step, {"arguments", "temporary"}; its results are where
    its arguments were.

    Args:
      parts: micro-batches of BATCH rows.
    """
    from experiments.training.step import jax_strategies
    from experiments.training.step.jax_strategies import stacked
    from experiments.training.step.jax_trainer import JaxTrainer
    from experiments.training.step.trainer_state import StepOptions
    from official_bert.pretraining import BertPretrainer

    options = StepOptions(accumulation=parts)
    strategy = strategy or jax_strategies.get_strategy("one_device")
    trainer = JaxTrainer(lambda seed: BertPretrainer(bert, seed=seed), strategy, options)
    rows = fields(length, parts * BATCH)
    program = trainer.lowered(stacked(iter([rows]), 1, 1, parts)).compile()
    found = program.memory_analysis()
    pointers = 16 * len(trainer.model.variables + trainer.optimizer.variables)
    assert found.output_size_in_bytes - found.alias_size_in_bytes < 4096 + pointers
    return {
        "arguments": found.argument_size_in_bytes,
        "temporary": found.temp_size_in_bytes,
    }


def parameters(bert):
    """Return the number of weights of encoder, pooler and pre-training heads."""
    width, inner = bert.hidden_size, bert.intermediate_size
    rows = bert.vocab_size + bert.max_position_embeddings + bert.type_vocab_size
    block = 4 * width * (width + 1) + 2 * width * inner + inner + width + 4 * width
    heads = 2 * width * (width + 1) + 2 * width + bert.vocab_size + 2 * width + 2
    return rows * width + 2 * width + bert.num_hidden_layers * block + heads


def computed(bert, length, rows=BATCH):
    """Return bytes as `measured` counts them, in float32.

    Arguments are weights and both moments. The most temporary memory is needed when the backward
    pass begins: it will read, of each block, 11 tensors as wide as the model (inputs of products
    and norms, sums), 3 as wide as the feed-forward layer and 5 matrices a head; 10
    tensors as wide as the model before and after the blocks; two tensors of logits; and there is
    the first gradient, the table's. Later the blocks make room for their gradients, which only
    without many tokens need more.
    """
    width, tokens = bert.hidden_size, rows * length
    block = tokens * (11 * width + 3 * bert.intermediate_size)
    block += 5 * rows * bert.num_attention_heads * length**2
    read = bert.num_hidden_layers * block + 10 * tokens * width
    read += 2 * rows * predictions(length) * bert.vocab_size
    most = max(read, parameters(bert)) + bert.vocab_size * width
    return {"arguments": 12 * parameters(bert), "temporary": 4 * most}


def table(known):
    """Return Markdown of GiB: what is in `results/memory.json`, and what is computed."""
    heads = [f"length {length}: {what}" for length in LENGTHS for what in ("XLA", "computed")]
    rows = [["size", *heads, "weights and moments", "of 8 devices, `shard=weights`"]]
    for size in SIZES:
        bert, cells = named_config(size), []
        for length in LENGTHS:
            cells += [known.get(f"{size} {length}"), computed(bert, length)]
        state = 12 * parameters(bert)
        gib = ["" if cell is None else _gib(sum(cell.values())) for cell in cells]
        rows.append([size, *gib, _gib(state), _gib(state / 8)])
    return "\n".join(markdown_table(rows))


def _gib(count):
    return f"{count / 2**30:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    options = parser.parse_args()
    cases = {
        f"{size} {length}": (named_config(size), int(length))
        for length in options.lengths.split(",")
        for size in options.sizes.split(",")
    }
    print(table(kept(RESULTS, cases, lambda case: measured(*cases[case]))))


if __name__ == "__main__":
    main()
