"""Answers of a model to token ids: what exports of ids to numbers are made of and held to.

ONNX and LiteRT files hold no tokeniser. Inputs are int32 `input_ids`, `input_mask`, `segment_ids`
[B, L] ([B, C, L] for multiple choice), and `masked_lm_positions` [B, P] of masked words. Outputs
are float32 where nothing else is said; what belongs to a token is zero at padding:

classification: `logits`, `probabilities` [B, C]; of a regression `values` [B].
span: `start_logits`, `end_logits` [B, L].
multiple_choice: `logits`, `probabilities` [B, C].
tagging: `logits` [B, L, C].
masked_words: `probabilities` and `token_ids` (int32) [B, P, k], the best first.
embedding: `embedding` [B, D].
features: `features` [B, L, D], `pooled_output` [B, H].
"""

import numpy as np
from keras import ops

from official_bert.export.settings import LAYERS
from official_bert.layers import gather_positions

IDS = ("input_ids", "input_mask", "segment_ids")


class IdModel:
    """A head of `exports.HEADS`, computed by Keras; `model(batch)` gives {output: tensor}.

    Args:
      loaded: `LoadedModel`.
      head: what to answer.
      settings: `ServingSettings`.

    Attributes:
      inputs: {name: dimensions}.
    """

    def __init__(self, loaded, head: str, settings):
        self.loaded, self.head, self.settings = loaded, head, settings
        self.model, self.config = loaded.model, loaded.config
        self.inputs = dict.fromkeys(IDS, 3 if head == "multiple_choice" else 2)
        if head == "masked_words":
            self.inputs["masked_lm_positions"] = 2

    def __call__(self, batch: dict) -> dict:
        flat = {name: ops.reshape(batch[name], (-1, ops.shape(batch[name])[-1])) for name in IDS}
        answer = getattr(self, f"_{self.head}")(batch, flat["input_mask"], self.encode(flat))
        return {
            name: x if name == "token_ids" else ops.cast(x, "float32") for name, x in answer.items()
        }

    def encode(self, batch: dict) -> dict:
        """{"sequence_output", "pooled_output", "hidden_states"}, as `BertEncoder` gives them."""
        return self.loaded.encoder(batch)

    def word_scores(self, vectors):
        """[B, P, H] -> [B, P, V], by the masked-LM head."""
        table = self.loaded.encoder.embeddings.word_embeddings
        return self.model.masked_lm(vectors, table)

    def example(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """A batch of random tokens in rows of different lengths."""
        length = min(self.settings.max_seq_length, 48)
        lengths = np.array([length, max(length // 2, 3), 3, max(length // 3, 3)])
        mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
        ids = rng.integers(0, len(self.loaded.tokenizer.vocab), mask.shape, np.int32)
        segments = (np.arange(length) > length // 2).astype(np.int32)
        batch = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments * mask}
        if self.head == "multiple_choice":
            batch = {name: array.reshape(2, 2, length) for name, array in batch.items()}
        if self.head == "masked_words":
            batch["masked_lm_positions"] = np.array([[1, 0], [2, 1], [1, 1], [0, 2]], np.int32)
        return batch

    def _classification(self, batch, mask, encoded):
        logits = self.model.head(self._summary(mask, encoded))
        problem = self.model.problem
        if problem == "regression":
            return {"values": logits[:, 0]}
        squash = ops.softmax if problem == "single_label" else ops.sigmoid
        return {"logits": logits, "probabilities": squash(logits)}

    def _multiple_choice(self, batch, mask, encoded):
        scores = self.model.head(self._summary(mask, encoded))
        logits = ops.reshape(scores, (-1, ops.shape(batch["input_ids"])[1]))
        return {"logits": logits, "probabilities": ops.softmax(logits)}

    def _span(self, batch, mask, encoded):
        logits = _of_tokens(self.model.head(self._sequence(mask, encoded)), mask)
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def _tagging(self, batch, mask, encoded):
        return {"logits": _of_tokens(self.model.head(self._sequence(mask, encoded)), mask)}

    def _masked_words(self, batch, mask, encoded):
        sequence = encoded["sequence_output"]
        scores = self.word_scores(gather_positions(sequence, batch["masked_lm_positions"]))
        entries = len(self.loaded.tokenizer.vocab)  # a padded table has rows that are no words
        probabilities = ops.softmax(ops.cast(scores, "float32")[..., :entries])
        probabilities, ids = ops.top_k(probabilities, k=min(self.settings.top_k, entries))
        return {"probabilities": probabilities, "token_ids": ops.cast(ids, "int32")}

    def _embedding(self, batch, mask, encoded):
        vectors = self._joined_layers(encoded)
        if self.settings.pooling == "cls":
            vectors = self.loaded.encoder.summary_token(vectors, mask)
        else:
            count = ops.sum(ops.cast(mask, vectors.dtype), axis=1, keepdims=True)
            vectors = ops.sum(_of_tokens(vectors, mask), axis=1) / count
        if self.settings.normalize:
            squares = ops.sum(vectors * vectors, axis=1, keepdims=True)
            vectors = vectors * ops.rsqrt(ops.maximum(squares, 1e-12))
        return {"embedding": vectors}

    def _features(self, batch, mask, encoded):
        vectors = _of_tokens(self._joined_layers(encoded), mask)
        return {"features": vectors, "pooled_output": encoded["pooled_output"]}

    def _joined_layers(self, encoded):
        selected, join = LAYERS[self.settings.layers]
        layers = list(encoded["hidden_states"])[selected]
        return ops.concatenate(layers, axis=-1) if join == "concat" else sum(layers) / len(layers)

    def _sequence(self, mask, encoded):
        return self.model.sequence({"input_mask": mask}, encoded)

    def _summary(self, mask, encoded):
        return self.model.vector({"input_mask": mask}, encoded)


def _of_tokens(x, mask):
    """[B, L, ...] with zeros at padding."""
    return x * ops.expand_dims(ops.cast(mask, x.dtype), -1)
