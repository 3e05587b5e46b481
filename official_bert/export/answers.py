"""Answers of each head to rows of token ids, in keras.ops.

`predict` calls them, SavedModels compute them in their graph, and ONNX and LiteRT files are
compared with them. Inputs are int32 `input_ids`, `input_mask`, `segment_ids` [B, L] ([B, C, L] for
multiple choice), and for masked words `masked_lm_positions` [B, P]. Outputs are float32 unless said
otherwise; those of tokens are zero at padding:

classification: `logits`, `probabilities` [B, C]; of a regression `values` [B].
span: `start_logits`, `end_logits` [B, L].
multiple_choice: `logits`, `probabilities` [B, C].
tagging: `logits` [B, L, C].
masked_words: `probabilities` and `token_ids` (int32) [B, P, k], the best first.
embedding: `embedding` [B, D].
features: `features` [B, L, D], `pooled_output` [B, H].
"""

from keras import ops

from official_bert.export.settings import LAYERS
from official_bert.layers import gather_positions
from official_bert.window_pooling import pool

IDS = ("input_ids", "input_mask", "segment_ids")


class Answers:
    """A head of `exports.HEADS`, computed by Keras; `answers(batch)` gives {output: tensor}.

    A subclass computes encoder and layers in another way.

    Args:
      loaded: `LoadedModel`.
      head: the head to answer for.
      settings: `ServingSettings`.

    Attributes:
      inputs: {name: number of dimensions}.
    """

    def __init__(self, loaded, head: str, settings):
        self.loaded, self.head, self.settings = loaded, head, settings
        self.model, self.config = loaded.model, loaded.config
        self.inputs = dict.fromkeys(IDS, 3 if head == "multiple_choice" else 2)
        if head == "masked_words":
            self.inputs["masked_lm_positions"] = 2

    def __call__(self, batch: dict) -> dict:
        flat = {name: ops.reshape(batch[name], (-1, ops.shape(batch[name])[-1])) for name in IDS}
        rows = {**flat, "choices": ops.shape(batch["input_ids"])[1]}
        if self.head == "masked_words":
            rows["masked_lm_positions"] = batch["masked_lm_positions"]
        return self.answer(rows, self.encode(flat))

    def encode(self, batch: dict) -> dict:
        """Return "sequence_output" and "pooled_output" as `BertEncoder` does.

        For embeddings and features "vectors" [B, L, D] are the layers that are asked for.
        """
        encoded = self.loaded.encoder(batch)
        if self.reads_layers:
            encoded["vectors"] = self.joined(encoded["hidden_states"])
        return encoded

    def answer(self, rows: dict, encoded: dict) -> dict:
        """Return the head's outputs, {name: tensor}.

        Args:
          rows: "input_mask", int32 [B, L]; for multiple choice "choices", the number of rows of
            each question; for masked words "masked_lm_positions"; for texts in several windows
            "pool", a function from the windows' vectors to the texts'.
          encoded: the result of `encode`.
        """
        answer = getattr(self, f"_{self.head}")(rows, encoded)
        return {
            name: x if name == "token_ids" else ops.cast(x, "float32") for name, x in answer.items()
        }

    def scores(self, vectors):
        """Apply the head's own layer."""
        return self.model.head(vectors)

    def word_scores(self, vectors):
        """Map [B, P, H] -> [B, P, V], by the masked-LM head."""
        table = self.loaded.encoder.embeddings.word_embeddings
        return self.model.masked_lm(vectors, table)

    def best_words(self, vectors):
        """Map [B, P, H] -> probabilities and ids of the `top_k` best words, [B, P, k]."""
        entries = len(self.loaded.tokenizer.vocab)  # a padded table has rows that are not words
        scores = ops.cast(self.word_scores(vectors), "float32")[..., :entries]
        probabilities, ids = ops.top_k(ops.softmax(scores), k=min(self.settings.top_k, entries))
        return probabilities, ops.cast(ids, "int32")

    @property
    def reads_layers(self) -> bool:
        return self.head in ("embedding", "features")

    def joined(self, hidden_states):
        """Join the layers that `settings.layers` names: all states [..., H] -> [..., D]."""
        selected, join = LAYERS[self.settings.layers]
        layers = list(hidden_states)[selected]
        return ops.concatenate(layers, axis=-1) if join == "concat" else sum(layers) / len(layers)

    def classes(self, vectors) -> dict:
        """Return a classifier's outputs for the vectors of texts."""
        logits = self.scores(vectors)
        problem = self.model.problem
        if problem == "regression":
            return {"values": logits[:, 0]}
        squash = ops.softmax if problem == "single_label" else ops.sigmoid
        return {"logits": logits, "probabilities": squash(logits)}

    def _classification(self, rows, encoded):
        vectors = self.model.vector(rows, encoded)
        return self.classes(rows["pool"](vectors) if "pool" in rows else vectors)

    def _multiple_choice(self, rows, encoded):
        scores = self.scores(self.model.vector(rows, encoded))
        logits = ops.reshape(scores, (-1, rows["choices"]))
        return {"logits": logits, "probabilities": ops.softmax(logits)}

    def _span(self, rows, encoded):
        logits = self._tagging(rows, encoded)["logits"]
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def _tagging(self, rows, encoded):
        logits = self.scores(self.model.sequence(rows, encoded))
        return {"logits": _of_tokens(logits, rows["input_mask"])}

    def _masked_words(self, rows, encoded):
        sequence = encoded["sequence_output"]
        vectors = gather_positions(sequence, rows["masked_lm_positions"])
        probabilities, ids = self.best_words(vectors)
        return {"probabilities": probabilities, "token_ids": ids}

    def _embedding(self, rows, encoded):
        vectors, mask = encoded["vectors"], rows["input_mask"]
        if self.settings.pooling == "cls":
            vectors = self.loaded.encoder.summary_token(vectors, mask)
        else:
            vectors = pool(vectors, mask > 0, "mean")
        if self.settings.normalize:
            squares = ops.sum(vectors * vectors, axis=1, keepdims=True)
            vectors = vectors * ops.rsqrt(ops.maximum(squares, 1e-12))
        return {"embedding": vectors}

    def _features(self, rows, encoded):
        vectors = _of_tokens(encoded["vectors"], rows["input_mask"])
        return {"features": vectors, "pooled_output": encoded["pooled_output"]}


def _of_tokens(x, mask):
    """Return [B, L, ...] with zeros at padding."""
    return x * ops.expand_dims(ops.cast(mask, x.dtype), -1)
