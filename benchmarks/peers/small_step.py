"""One step of this project's pre-training or fine-tuning, without dropout, on one batch again and
again."""

import keras
import numpy as np
import tensorflow as tf
from turns import arguments, random_batch, sizes, take_turns

from official_bert import (
    BertAdamW,
    BertClassifier,
    BertEncoder,
    BertPretrainer,
    WarmupLinearDecay,
    named_config,
)

(layers, width, heads, batch, length, predictions, vocabulary), mode, precision = arguments()
keras.config.set_dtype_policy("mixed_bfloat16" if precision == "bfloat16" else "float32")
no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
config = named_config("base", vocab_size=vocabulary, **sizes(layers, width, heads), **no_dropout)
features = random_batch(batch, length, predictions, vocabulary)
if mode == "pre-training":
    model = BertPretrainer(config, seed=0)
else:
    model = BertClassifier(BertEncoder(config, seed=0), 2, seed=0)
    inputs = {name: features[name] for name in ("input_ids", "input_mask", "segment_ids")}
    labels = np.random.default_rng(1).integers(0, 2, batch, dtype="int32")
    features = {**inputs, "label_ids": labels}
features = {name: tf.constant(value) for name, value in features.items()}
optimizer = BertAdamW(WarmupLinearDecay(1e-4, 10_000, 1_000_000))
optimizer.build(model.trainable_variables)


@tf.function
def train_step(features):
    with tf.GradientTape() as tape:
        outputs = model(features, training=True, seed=tf.constant([0, 1]))
        terms = model.loss_terms(features, outputs).values()
        loss = sum(total / weight for total, weight in terms)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_reduced(gradients, model.trainable_variables)
    return loss


take_turns(lambda: float(train_step(features)))
