"""This project's step, as `experiments/training/step/train_step.py` compiles it for one device."""

import keras
import tensorflow as tf
from turns import arguments, random_batch, sizes, take_turns

from official_bert import BertAdamW, BertPretrainer, WarmupLinearDecay, named_config
from official_bert.randomness import make_seed

(layers, width, heads, batch, length, predictions), _, precision = arguments()
keras.config.set_dtype_policy("mixed_bfloat16" if precision == "bfloat16" else "float32")
config = named_config("base", **sizes(layers, width, heads))
model = BertPretrainer(config, seed=0)
optimizer = BertAdamW(WarmupLinearDecay(1e-4, 10_000, 1_000_000))
optimizer.build(model.trainable_variables)
features = {k: tf.constant(v) for k, v in random_batch(batch, length, predictions).items()}


@tf.function
def train_step(features):
    seed = make_seed(0, tf.cast(optimizer.iterations.value, tf.int32))
    with tf.GradientTape() as tape:
        outputs = model(features, training=True, seed=seed)
        terms = model.loss_terms(features, outputs).values()
        loss = sum(total / weight for total, weight in terms)
    optimizer.apply_reduced(
        tape.gradient(loss, model.trainable_variables), model.trainable_variables
    )
    return loss


take_turns(lambda: float(train_step(features)))
