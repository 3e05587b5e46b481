"""Low-rank updates of an encoder's products, and the plain model that they end in.

Each kernel W [N, M] stays as it is and gets an update of rank r (Hu et al. 2021, equation 3):

    W + alpha / r * A B,    A [N, r] random, B [r, M] zero at first

Keras' own `enable_lora` adds A and B to a dense layer, whose attribute `kernel` is the sum.
"""

import contextlib
from collections.abc import Iterator

import keras

from official_bert.backend.variables import named_arrays, named_variables
from official_bert.checkpoints import model_folder
from official_bert.common.errors import UserError
from official_bert.layers import TransformerBlock


def adapt(encoder, rank: int, alpha: float | None = None, seed: int | None = None) -> None:
    """Give an encoder updates of a rank, and freeze all else of it but the pooler.

    Blocks that are frozen already get none. A is uniform within 1 / sqrt(N), as in peft.

    Args:
      encoder: a `BertEncoder`; it computes what it did.
      alpha: the scale of the updates, times the rank; None: the rank.
      seed: of A.

    Raises:
      UserError: the encoder is not a Transformer, or has updates already.
    """
    if not all(isinstance(block, TransformerBlock) for block in encoder.blocks):
        raise UserError(
            "--config.lora_rank updates the products of attention and feed-forward; this encoder "
            "has no such blocks"
        )
    if any(layer.lora_enabled for layer in _products(encoder)):
        raise UserError("this encoder has low-rank updates already; merge them first (`merged`)")
    generator = keras.random.SeedGenerator(seed)
    normal = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform", seed=generator)
    pooler = {id(variable) for variable in encoder.pooler.weights} if encoder.pooler else ()
    for variable in encoder.weights:
        variable.trainable = variable.trainable and id(variable) in pooler
    for block in encoder.blocks:
        for layer in _products_of(block) if block.trainable else ():
            # A layer opens its own scope alone, and paths name the arrays of checkpoints.
            *scopes, _, _ = layer.kernel.path.split("/")
            with contextlib.ExitStack() as stack:
                for scope in scopes:
                    stack.enter_context(keras.name_scope(scope))
                layer.enable_lora(rank, alpha, a_initializer=normal)


def merged(model):
    """Return a plain model of the same kind, which holds the sums in place of the updates.

    Args:
      model: a `BertEncoder`, or a model of `official_bert.heads` on one; it stays as it is.
    """
    head, settings = model_folder.describe(model)
    encoder = getattr(model, "encoder", model)
    _, plain = model_folder.build(encoder.config, {**settings, "head": head}, seed=0)
    arrays = named_arrays(model)
    for name in [name for name in arrays if name.endswith("/lora_kernel_a")]:
        stem = name.removesuffix("lora_kernel_a")
        a, b = arrays.pop(name), arrays.pop(f"{stem}lora_kernel_b")
        kernel = arrays[f"{stem}kernel"]
        arrays[f"{stem}kernel"] = kernel + _scale(encoder) * (a @ b)
    for name, variable in named_variables(plain).items():
        variable.assign(arrays[name])
    return plain


def _scale(encoder) -> float:
    layer = next(layer for layer in _products(encoder) if layer.lora_enabled)
    return layer.lora_alpha / layer.lora_rank


def _products(encoder) -> Iterator[keras.layers.Dense]:
    for block in encoder.blocks:
        yield from _products_of(block)


def _products_of(block: TransformerBlock) -> tuple[keras.layers.Dense, ...]:
    attention = block.attention
    own = (block.intermediate, block.output_dense)
    return attention.query, attention.key, attention.value, attention.output_dense, *own
