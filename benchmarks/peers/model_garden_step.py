"""TensorFlow Model Garden's BertPretrainerV2 with its own AdamW, in an environment of its own."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf
import tf_keras
from official.nlp import optimization
from official.nlp.modeling import models, networks
from turns import arguments, random_batch, take_turns

(layers, width, heads, batch, length, predictions), _, precision = arguments()
if precision == "bfloat16":
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
encoder = networks.BertEncoder(
    vocab_size=30522,
    hidden_size=width,
    num_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * width,
    dropout_rate=0.1,
    attention_dropout_rate=0.1,
    max_sequence_length=512,
    type_vocab_size=2,
    dict_outputs=True,
)
from official.nlp.modeling.layers import ClassificationHead  # noqa: E402

model = models.BertPretrainerV2(
    encoder_network=encoder,
    classification_heads=[ClassificationHead(inner_dim=width, num_classes=2, name="next_sentence")],
    mlm_activation=tf_keras.activations.gelu,
)
optimizer = optimization.create_optimizer(1e-4, 1_000_000, 10_000)
raw = {k: tf.constant(v) for k, v in random_batch(batch, length, predictions).items()}
features = {
    "input_word_ids": raw["input_ids"],
    "input_mask": raw["input_mask"],
    "input_type_ids": raw["segment_ids"],
    "masked_lm_positions": raw["masked_lm_positions"],
}


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        outputs = model(features, training=True)
        masked = tf_keras.losses.sparse_categorical_crossentropy(
            raw["masked_lm_ids"], tf.cast(outputs["mlm_logits"], tf.float32), from_logits=True
        )
        weights = raw["masked_lm_weights"]
        following = tf_keras.losses.sparse_categorical_crossentropy(
            raw["next_sentence_labels"],
            tf.cast(outputs["next_sentence"], tf.float32),
            from_logits=True,
        )
        loss = tf.math.divide_no_nan(tf.reduce_sum(masked * weights), tf.reduce_sum(weights))
        loss += tf.reduce_mean(following)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


take_turns(lambda: float(train_step()))
