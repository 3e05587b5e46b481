"""KerasHub's BertBackbone with its MaskedLMHead and stock AdamW; it has no next-sentence head."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import keras_hub
import tensorflow as tf
from turns import arguments, random_batch, take_turns

(layers, width, heads, batch, length, predictions), _, precision = arguments()
keras.config.set_dtype_policy("mixed_bfloat16" if precision == "bfloat16" else "float32")
backbone = keras_hub.models.BertBackbone(
    vocabulary_size=30522,
    num_layers=layers,
    num_heads=heads,
    hidden_dim=width,
    intermediate_dim=4 * width,
    dropout=0.1,
    max_sequence_length=512,
)
head = keras_hub.layers.MaskedLMHead(
    token_embedding=backbone.token_embedding, intermediate_activation="gelu"
)
raw = {k: tf.constant(v) for k, v in random_batch(batch, length, predictions).items()}
features = {
    "token_ids": raw["input_ids"],
    "segment_ids": raw["segment_ids"],
    "padding_mask": raw["input_mask"],
}
optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)


def forward():
    sequence = backbone(features, training=True)["sequence_output"]
    return head(sequence, raw["masked_lm_positions"])


# In a graph: an eager call of the head fails under mixed_bfloat16.
tf.function(forward)()
variables = backbone.trainable_variables + [
    v for v in head.trainable_variables if v is not backbone.token_embedding.embeddings
]
optimizer.build(variables)


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        losses = keras.losses.sparse_categorical_crossentropy(
            raw["masked_lm_ids"], tf.cast(forward(), tf.float32), from_logits=True
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, [v.value for v in variables])
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss


take_turns(lambda: float(train_step()))
