"""Heads on the encoder for fine-tuning (paper, section 4 and Figure 4).

Every head is one new layer on the encoder: a classifier on the pooled vector, start and end scores
for each token, one score vector for multiple choice, a classifier on each token. It computes in
float32 under every dtype policy. `bilstm=True` adds the randomly initialised BiLSTM of Table 5's
last row between encoder and head.
"""

from typing import Any

import keras
from keras import ops

from official_bert.backend.fit_arguments import check_classes
from official_bert.bilstm import BiLSTM
from official_bert.common.errors import UserError, check_choice
from official_bert.config import PROBLEMS
from official_bert.encoder import BertEncoder, complete_inputs, input_specs
from official_bert.extension import find, names
from official_bert.layers import dense
from official_bert.losses import (
    ModelWithLosses,
    binary_cross_entropy,
    correct,
    cross_entropy,
    row_weights,
    weighted_sum,
)
from official_bert.randomness import HEAD_DROPOUT, dropout, fold_in
from official_bert.window_pooling import POOLINGS, pool


def build_head(encoder: BertEncoder, head: dict, **options):
    """Return the encoder with the head that a description asks for, whose weights are new.

    Args:
      encoder: a `BertEncoder`.
      head: {"head": "classification", "span", "multiple_choice", "tagging" or "text"}, with
        "num_labels" where the head has labels, "problem", "windows" and "mean_pooling" where it
        classifies, and what an extension's head adds; a true field may mark such a head.
      **options: bilstm and seed of the head.

    Raises:
      UserError: there is no such head.
    """
    own = {cls.head_name: cls for cls in (BertClassifier, BertSpan, BertMultipleChoice, BertTagger)}
    name, cls = head["head"], _marked(head)
    if cls is None:
        cls = own[name] if name in own else find("heads", name, own).class_of(head)
    if name not in own:
        options.pop("bilstm", None)
    return cls(encoder, **{n: head[n] for n in cls.options if n in head}, **options)


def _marked(fields: dict) -> Any:
    """Return the class of an extension's head that a true field marks, or None."""
    marks = [name for name in names("heads") if fields.get(name)]
    return find("heads", marks[0]).class_of(fields) if marks else None


class FineTuned(ModelWithLosses):
    """An encoder, an optional BiLSTM, and one dense layer.

    Attributes:
      head_name: its name in `model.json`.
      options: further arguments, beside encoder, bilstm and seed; each is an attribute too.
    """

    head_name = ""
    options: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ("label_ids",)
    mean_pooling = False

    def __init__(self, encoder: BertEncoder, outputs: int, bilstm=False, seed=None, **kwargs):
        super().__init__(dtype=kwargs.pop("dtype", encoder.dtype_policy), **kwargs)
        config = encoder.config
        self.encoder = encoder
        self.seed = seed
        self.dropout_rate = config.hidden_dropout_prob
        self.seed_generator = keras.random.SeedGenerator(seed)
        policy = self.dtype_policy
        with keras.name_scope(self.name):
            self.bilstm = BiLSTM(config.hidden_size, seed, dtype=policy) if bilstm else None
            width = self.below(policy)
            normal = keras.initializers.TruncatedNormal(stddev=config.initializer_range, seed=seed)
            # In bfloat16, 384 start scores would have only 300 different values.
            self.head = dense(width, outputs, normal, "float32", "head", keras.layers.Dense)
        self.built = True

    def below(self, policy) -> int:
        """Make the layers between the vector and the head; return the width that the head reads."""
        return self.encoder.config.hidden_size

    def input_specs(self):
        return input_specs(self._rank)

    @property
    def _rank(self) -> int:
        return 2

    def begin_as(self, arrays: dict) -> None:
        """Start the head from what it can use of a pre-trained model, {path: array}."""

    def call(self, batch, training=False, seed=None):
        """Return the head's outputs, those of `answer`, for the encoder's inputs."""
        seed = self.step_seed(training, seed)
        rows = self.rows(batch)
        return self.answer(batch, rows, self.encoder(rows, training=training, seed=seed), seed)

    def rows(self, batch):
        """Return the batch as the encoder reads it: all inputs, int32 [N, L] each."""
        return complete_inputs(batch, self.encoder.config)

    def answer(self, batch, rows, encoded, seed=None) -> dict:
        """Return the head's outputs.

        Args:
          batch: as `call` was given it.
          rows: the result of `rows`.
          encoded: the encoder's outputs for them.
          seed: int32 [2] in training, else None.
        """
        raise NotImplementedError

    def sequence(self, rows, encoded):
        """Return [N, L, H]: the encoder's last layer, or the output of the BiLSTM on it."""
        sequence = encoded["sequence_output"]
        return sequence if self.bilstm is None else self.bilstm(sequence, rows["input_mask"])

    def vector(self, rows, encoded):
        """Return the vector [N, H] of each row."""
        return self.summary(self.sequence(rows, encoded), rows, encoded)

    def summary(self, sequence, rows, encoded):
        """Return the vector [N, H] of each row, given the result of `sequence`."""
        mask = rows["input_mask"]
        if self.mean_pooling:
            vector = pool(sequence, mask > 0, "mean")
            pooler = None if self.bilstm else self.encoder.pooler
            return pooler(vector) if pooler else vector
        if self.bilstm is None:
            return encoded["pooled_output"]
        # The classifier reads the BiLSTM's output at the summary token.
        return self.encoder.summary_token(sequence, mask)

    def dropped(self, x, seed):
        """Apply dropout to what the head reads."""
        return dropout(x, self.dropout_rate, fold_in(seed, HEAD_DROPOUT))

    def label_weights(self, batch):
        """Return the weight of each row, float32 [B]; in a tagger of each token, [B, L]."""
        return row_weights(batch, batch[self.label_names[0]])

    def loss_terms(self, batch, outputs):
        """Return {"label_loss": (sum, weight)}.

        Labels are `label_ids`, int32 [B]; in a tagger [B, L], with -1 for no label.
        """
        losses = cross_entropy(outputs["logits"], ops.maximum(batch["label_ids"], 0))
        return {"label_loss": weighted_sum(losses, self.label_weights(batch))}

    def metric_terms(self, batch, outputs):
        hits = correct(outputs["logits"], ops.maximum(batch["label_ids"], 0))
        return {"accuracy": weighted_sum(hits, self.label_weights(batch))}

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "bilstm": self.bilstm is not None,
            "seed": self.seed,
            **{name: getattr(self, name) for name in self.options},
        }

    @classmethod
    def from_config(cls, config):
        # False is an option's default. A file may hold false options that this version has not.
        config = {n: v for n, v in config.items() if v or n in ("seed", "trainable")}
        marked = _marked(config) or cls
        return super(FineTuned, marked).from_config(config)


@keras.saving.register_keras_serializable("official_bert")
class BertClassifier(FineTuned):
    """Classification or regression of a sentence or a sentence pair (Figure 4 a, b).

    Args:
      encoder: the (pre-trained) encoder.
      num_labels: number of classes; 1 for regression.
      problem: "single_label" (softmax), "multi_label" (a sigmoid each), "regression" (squared
        error on one number).
      bilstm: put a BiLSTM between encoder and classifier.
      windows: how the vectors of a text's several rows are pooled (`window_pooling`); "": a text is
        one row.
      mean_pooling: the pooler reads the mean over all tokens in place of [CLS], or in place of the
        last token in a left-to-right model.
      seed: seed of the new weights.

    Examples:
      >>> import numpy as np
      >>> from official_bert import BertAdamW, named_config
      >>> model = BertClassifier(BertEncoder(named_config("tiny", vocab_size=100)), num_labels=3)
      >>> model.compile(BertAdamW(1e-4))
      >>> ids = np.random.default_rng(0).integers(5, 100, (8, 6))
      >>> history = model.fit({"input_ids": ids}, np.arange(8) % 3, verbose=0).history
      >>> sorted(history)
      ['accuracy', 'label_loss', 'loss']
    """

    head_name = "classification"
    options = ("num_labels", "problem", "windows", "mean_pooling")

    def __init__(
        self,
        encoder,
        num_labels,
        problem="single_label",
        bilstm=False,
        windows="",
        mean_pooling=False,
        **kwargs,
    ):
        check_choice("problem", problem, PROBLEMS)
        if windows:
            check_choice("windows", windows, POOLINGS)
        if problem == "regression" and num_labels != 1:
            raise UserError(f"regression has 1 output, not num_labels={num_labels}")
        self.mean_pooling = mean_pooling
        super().__init__(encoder, num_labels, bilstm, **{"name": "classifier", **kwargs})
        self.num_labels = num_labels
        self.problem = problem
        self.windows = windows
        self._declare_means("label_loss", *(["accuracy"] if problem != "regression" else []))

    @property
    def _rank(self):
        return 3 if self.windows else 2

    def rows(self, batch):
        if not self.windows:
            return super().rows(batch)
        batch = complete_inputs(batch, self.encoder.config)
        if len(batch["input_ids"].shape) != 3:
            raise UserError("this classifier pools windows: it reads [texts, windows, tokens]")
        return _flat(batch)

    def answer(self, batch, rows, encoded, seed=None):
        """Map encoder inputs, int32 [B, L], [B, W, L] with windows, to {"logits": [B, num_labels]}.

        An empty window, one whose mask is zero, does not count.
        """
        vectors = self.vector(rows, encoded)
        if self.windows:
            texts, count, _ = ops.shape(complete_inputs(batch, self.encoder.config)["input_ids"])
            real = ops.reshape(ops.any(rows["input_mask"] > 0, axis=-1), (texts, count))
            vectors = ops.reshape(vectors, (texts, count, vectors.shape[-1]))
            vectors = pool(vectors, real, self.windows)
        return {"logits": self.head(self.dropped(vectors, seed))}

    def loss_terms(self, batch, outputs):
        """Return {"label_loss": (sum, weight)}; labels are `batch["label_ids"]`.

        They are int32 [B] (single_label), float32 [B, num_labels] of 0 and 1 (multi_label), or
        float32 [B] (regression).
        """
        logits, labels = ops.cast(outputs["logits"], "float32"), batch["label_ids"]
        if self.problem == "single_label":
            losses = cross_entropy(logits, labels)
        elif self.problem == "multi_label":
            losses = ops.mean(binary_cross_entropy(logits, labels), axis=-1)
        else:
            losses = ops.square(logits[:, 0] - ops.cast(labels, "float32"))
        return {"label_loss": weighted_sum(losses, row_weights(batch, labels))}

    def check_labels(self, name, labels):
        if self.problem == "single_label" and name == "label_ids":
            check_classes(name, labels, 1, self.num_labels)

    def metric_terms(self, batch, outputs):
        labels = batch["label_ids"]
        if self.problem == "regression":
            return {}
        if self.problem == "single_label":
            hits = correct(outputs["logits"], labels)
        else:
            agree = ops.equal(outputs["logits"] > 0, ops.cast(labels, "float32") > 0.5)
            hits = ops.mean(ops.cast(agree, "float32"), axis=-1)
        return {"accuracy": weighted_sum(hits, row_weights(batch, labels))}


@keras.saving.register_keras_serializable("official_bert")
class BertSpan(FineTuned):
    """Start and end of the answer in a passage (section 4.2, Figure 4 c)."""

    head_name = "span"
    label_names = ("start_positions", "end_positions")

    def __init__(self, encoder, bilstm=False, **kwargs):
        super().__init__(encoder, 2, bilstm, **{"name": "span", **kwargs})
        self._declare_means("start_loss", "end_loss", "start_accuracy", "end_accuracy")

    def answer(self, batch, rows, encoded, seed=None):
        """Map encoder inputs, int32 [B, L] each, to {"start_logits", "end_logits"}: [B, L]."""
        logits = self.head(self.sequence(rows, encoded))  # [B, L, 2]
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def loss_terms(self, batch, outputs):
        """Return {"start_loss", "end_loss"}; labels are `start_positions`, `end_positions` int32
        [B].

        The loss is the mean of both, as in google-research/bert, so each is halved.
        """
        weights = self.label_weights(batch)
        return {
            f"{side}_loss": weighted_sum(
                0.5 * cross_entropy(outputs[f"{side}_logits"], batch[f"{side}_positions"]), weights
            )
            for side in ("start", "end")
        }

    def metric_terms(self, batch, outputs):
        weights = self.label_weights(batch)
        return {
            f"{side}_accuracy": weighted_sum(
                correct(outputs[f"{side}_logits"], batch[f"{side}_positions"]), weights
            )
            for side in ("start", "end")
        }


@keras.saving.register_keras_serializable("official_bert")
class BertMultipleChoice(FineTuned):
    """One score for each of C continuations; a softmax over them chooses (section 4.4)."""

    head_name = "multiple_choice"

    def __init__(self, encoder, bilstm=False, **kwargs):
        super().__init__(encoder, 1, bilstm, **{"name": "multiple_choice", **kwargs})
        self._declare_means("label_loss", "accuracy")

    @property
    def _rank(self):
        return 3

    def rows(self, batch):
        return _flat(complete_inputs(batch, self.encoder.config))

    def answer(self, batch, rows, encoded, seed=None):
        """Map encoder inputs, int32 [B, C, L] each, to {"logits": [B, C]}."""
        choices = ops.shape(complete_inputs(batch, self.encoder.config)["input_ids"])[1]
        scores = self.head(self.dropped(self.vector(rows, encoded), seed))  # [B * C, 1]
        return {"logits": ops.reshape(scores, (-1, choices))}


@keras.saving.register_keras_serializable("official_bert")
class BertTagger(FineTuned):
    """A label for each token (section 5.3, Figure 4 d); no CRF."""

    head_name, options = "tagging", ("num_labels",)

    def __init__(self, encoder, num_labels, bilstm=False, **kwargs):
        super().__init__(encoder, num_labels, bilstm, **{"name": "tagger", **kwargs})
        self.num_labels = num_labels
        self._declare_means("label_loss", "accuracy")

    def answer(self, batch, rows, encoded, seed=None):
        """Map encoder inputs, int32 [B, L] each, to {"logits": [B, L, num_labels]}."""
        return {"logits": self.head(self.dropped(self.sequence(rows, encoded), seed))}

    def label_weights(self, batch):
        weights = row_weights(batch, batch["label_ids"])
        weights = weights if len(weights.shape) == 2 else weights[:, None]
        return ops.cast(batch["label_ids"] >= 0, "float32") * weights

    def check_labels(self, name, labels):
        if name == "label_ids":
            check_classes(name, labels, 2, self.num_labels, least=-1)


def _flat(batch):
    """Flatten the encoder's inputs to rows: [..., L] -> [N, L]."""
    names = ("input_ids", "input_mask", "segment_ids")
    length = ops.shape(batch["input_ids"])[-1]
    return {name: ops.reshape(batch[name], (-1, length)) for name in names}
