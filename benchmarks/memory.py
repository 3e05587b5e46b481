"""Memory of one pre-training step by size and length: measured on this CPU, computed for GPUs.

    python benchmarks/memory.py --sizes=tiny,mini,small,medium,base --lengths=128,512 --batch=8

Measured: the peak resident memory of a process that does three steps, less that of one that only
imported TensorFlow. Computed: weights, gradients and both Adam moments in float32 (16 bytes a
parameter) and the activations that the backward pass reads; TensorFlow's own use and fragmentation
come on top (about 10% on GPUs), so take the next larger card when in doubt.
"""

import argparse
import json
import subprocess
import sys

from official_bert.config import named_config

STEP = """
import json, resource, sys
import tensorflow as tf, keras
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
sys.path.insert(0, "benchmarks/peers")
from turns import random_batch
from official_bert import BertAdamW, BertPretrainer, named_config
base = peak()
size, length, batch, remat, dtype = json.loads(sys.argv[1])
keras.config.set_dtype_policy(dtype)
from official_bert import BertEncoder
model = BertPretrainer(BertEncoder(named_config(size), remat=remat, seed=0), seed=0)
optimizer = BertAdamW(1e-4)
features = {k: tf.constant(v) for k, v in random_batch(batch, length, length * 20 // 128).items()}
@tf.function
def step():
    with tf.GradientTape() as tape:
        outputs = model(features, training=True)
        loss = sum(s / w for s, w in model.loss_terms(features, outputs).values())
    optimizer.apply_reduced(
        tape.gradient(loss, model.trainable_variables), model.trainable_variables)
optimizer.build(model.trainable_variables)
for _ in range(3): step()
print(json.dumps(peak() - base))
"""


def parameters(size: str) -> int:
    """Weights of encoder, pooler and pre-training heads."""
    c = named_config(size)
    width, inner = c.hidden_size, c.intermediate_size
    rows = c.vocab_size + c.max_position_embeddings + c.type_vocab_size
    block = 4 * width * (width + 1) + 2 * width * inner + inner + width + 4 * width
    heads = 2 * width * (width + 1) + 2 * width + c.vocab_size + 2 * width + 2
    return rows * width + 2 * width + c.num_hidden_layers * block + heads


def activations(size: str, length: int, batch: int, bytes_each: int) -> float:
    """Bytes that the backward pass reads: what a block keeps, times the blocks, plus the logits.

    A block keeps about 11 tensors as wide as the model (inputs of the products and norms, dropout
    masks, residual sums), 3 as wide as the feed-forward layer, and 3 attention matrices a head.
    """
    c = named_config(size)
    tokens = batch * length
    block = tokens * (11 * c.hidden_size + 3 * c.intermediate_size)
    block += 3 * batch * c.num_attention_heads * length**2
    logits = 3 * tokens * 20 // 128 * c.vocab_size
    return bytes_each * c.num_hidden_layers * block + 4 * logits


def computed(size: str, length: int, batch: int, dtype: str) -> float:
    """GiB for weights, gradients, moments and activations."""
    each = 2 if dtype == "mixed_bfloat16" else 4
    return (16 * parameters(size) + activations(size, length, batch, each)) / 2**30


def measured(size: str, length: int, batch: int, remat: bool, dtype: str) -> float:
    """GiB of a process of its own."""
    options = json.dumps([size, length, batch, remat, dtype])
    run = subprocess.run(
        [sys.executable, "-c", STEP, options], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="tiny,mini,small,medium,base")
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--dtype", default="float32", choices=["float32", "mixed_bfloat16"])
    parser.add_argument("--remat", action="store_true", help="recompute activations")
    parser.add_argument("--no_measure", action="store_true", help="only compute")
    options = parser.parse_args()
    print(f"GiB, batch {options.batch}, {options.dtype}{', remat' * options.remat}\n")
    print("| size | length | measured | computed |\n|---|---|---|---|")
    for size in options.sizes.split(","):
        for length in map(int, options.lengths.split(",")):
            case = (size, length, options.batch)
            here = (
                "" if options.no_measure else f"{measured(*case, options.remat, options.dtype):.1f}"
            )
            print(f"| {size} | {length} | {here} | {computed(*case, options.dtype):.1f} |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
