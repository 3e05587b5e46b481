"""Loss, metric and writing of the models that read a text and write another.

The written text begins and ends as the read one does, with [CLS] and [SEP] in BERT's vocabulary.
"""

import keras
from keras import ops

from experiments.beyond.common.beam_search import search
from experiments.beyond.seq2seq.head import check_writing
from official_bert.common.errors import UserError
from official_bert.encoder import complete_inputs, input_specs
from official_bert.losses import ModelWithLosses, correct, cross_entropy, row_weights, weighted_sum


class TextToText(ModelWithLosses):
    """A model that writes, from an `encoder` with a BertConfig in `config`.

    Subclasses define `read`, `scores`, `begin` and `step`.

    Args:
      encoder: what reads.
      decoder: the name of what writes, in `head.DECODERS` or `head.RNN_DECODERS`.
      longest: tokens that are written at most, the last one among them.
      beams, length_penalty: of `beam_search.search`.
      seed: of new weights, and of dropout where a call gives none.
    """

    label_names = ("label_ids",)
    options = ("decoder", "longest", "beams", "length_penalty")  # as `heads.FineTuned` has them
    call_options = ("beams", "length_penalty")

    def __init__(
        self, encoder, decoder, longest=64, beams=1, length_penalty=1.0, seed=None, dtype=None,
        **kwargs,
    ):  # fmt: skip
        check_writing(longest=longest, beams=beams, length_penalty=length_penalty)
        super().__init__(dtype=dtype or encoder.dtype_policy, **{"name": "text_to_text", **kwargs})
        self.encoder, self.form = encoder, decoder
        self.longest, self.beams, self.length_penalty = longest, beams, length_penalty
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self._declare_means("label_loss", "accuracy")

    def described(self) -> tuple[str, dict]:
        """Return the name of the head and the fields of `model.json` that rebuild it."""
        own = {name: getattr(self, name) for name in ("longest", "beams", "length_penalty")}
        return "text", {"decoder": self.form, **own}

    def read(self, batch, seed=None):
        """Return the decoder's inputs from the source: nested tensors whose first axis is the
        batch's."""
        raise NotImplementedError

    def scores(self, memory, ids, seed=None):
        """Score the token after each: what `read` gave, int32 [B, T] -> [B, T, V]."""
        raise NotImplementedError

    def begin(self, memory, rows, longest: int):
        """Return the decoder's state before the first token."""
        raise NotImplementedError

    def step(self, memory, tokens, place, state):
        """Take one step of `beam_search.search`, with the result of `read`."""
        raise NotImplementedError

    def input_specs(self):
        return input_specs(2)

    def call(self, batch, training=False, seed=None, beams=None, length_penalty=None):
        """Return encoder inputs, int32 [B, L] each; `beams` and `length_penalty`, if not the
        model's.

        Returns:
          With the whole target in "label_ids", int32 [B, T], first and last token included and -1
          behind it, {"logits": [B, T - 1, V]}. Without, {"output_ids": int32 [B, longest]}, -1
          from the end on.
        """
        batch = complete_inputs(batch, self.encoder.config)
        seed = self.step_seed(training, seed)
        memory = self.read(batch, seed)
        if "label_ids" in batch:
            return {"logits": self.scores(memory, _ids(batch)[:, :-1], seed)}
        last = ops.sum(ops.cast(batch["input_mask"], "int32"), axis=1, keepdims=True) - 1
        end = ops.take_along_axis(batch["input_ids"], last, axis=1)[:, 0]
        beams = beams or self.beams
        penalty = self.length_penalty if length_penalty is None else length_penalty
        memory = keras.tree.map_structure(lambda x: ops.repeat(x, beams, axis=0), memory)
        rows = ops.shape(end)[0] * beams
        ids = search(
            lambda *now: self.step(memory, *now),
            self.begin(memory, rows, self.longest),
            batch["input_ids"][:, 0],
            end,
            self.longest,
            beams,
            penalty,
        )
        return {"output_ids": ids}

    def loss_terms(self, batch, outputs):
        """Return {"label_loss": (sum, weight)} over the tokens of the targets."""
        if "logits" not in outputs:
            raise UserError("the target is read too: give label_ids among the inputs")
        losses = cross_entropy(outputs["logits"], _ids(batch)[:, 1:])
        return {"label_loss": weighted_sum(losses, self._weights(batch))}

    def metric_terms(self, batch, outputs):
        hits = correct(outputs["logits"], _ids(batch)[:, 1:])
        return {"accuracy": weighted_sum(hits, self._weights(batch))}

    def _weights(self, batch):
        labels = batch["label_ids"]
        real = ops.cast(labels[:, 1:] >= 0, "float32")
        return real * row_weights(batch, labels)[:, None]

    def get_config(self):
        names = ("longest", "beams", "length_penalty", "seed")
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {
            **super().get_config(),
            "encoder": encoder,
            **{name: getattr(self, name) for name in names},
        }


def _ids(batch):
    return ops.maximum(ops.cast(batch["label_ids"], "int32"), 0)
