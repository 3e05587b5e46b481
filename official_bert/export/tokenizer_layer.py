"""A tokeniser as a Keras layer, inside a TensorFlow graph: from texts to the encoder's inputs."""

import os
from pathlib import Path

import keras
import tensorflow as tf

from official_bert.common.errors import UserError, check_choice
from official_bert.extension import find, names
from official_bert.tokenization import Tokenizer, load_tokenizer, tokenizer_class
from official_bert.tokenization.graph import in_graph_packing as packing
from official_bert.tokenization.graph.in_graph import InGraphTokenizer
from official_bert.tokenization.graph.in_graph_foreign import InGraphWordPieces
from official_bert.tokenization.sequences import TRUNCATIONS


@keras.saving.register_keras_serializable("official_bert")
class TokenizerLayer(keras.layers.Layer):
    """Tokenises texts as `tokenizer` does, for `tf.data` and inside models.

        layer = official_bert.TokenizerLayer(model.tokenizer, max_length=128)
        dataset = dataset.map(lambda text, label: (layer(text), label))

    It computes with TensorFlow, under Keras' JAX and PyTorch backends too (there in `dataset.map`
    alone). A `.keras` file keeps the vocabulary.

    Args:
      tokenizer: a `tokenization.Tokenizer`, as `LoadedModel.tokenizer`.
      max_length: tokens of a row with [CLS] and [SEP]; what is longer is cut.
      truncation: which part of a too long text is kept: "head", "tail" or "head+tail".

    Call arguments:
      inputs: texts: a string tensor [B] or [], a Python text or a list; or a tuple of two of these,
        the first and second texts of pairs.

    Returns:
      {"input_ids", "input_mask", "segment_ids"}, int32 [B, max_length]; of one text [max_length].

    Raises:
      UserError: an option is wrong, or TensorFlow cannot compute this tokeniser.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | None = None,
        max_length: int = 128,
        truncation: str = "head",
        **kwargs,
    ):
        rules = kwargs.pop("rules", {})
        super().__init__(**kwargs)
        check_choice("truncation", truncation, TRUNCATIONS)
        if max_length < 8:
            raise UserError(f"max_length={max_length} leaves no room for text; use at least 8")
        self.max_length, self.truncation, self._rules = max_length, truncation, rules
        # Keras must not convert texts to tensors of the backend.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True
        self.tokenizer = None
        if tokenizer is not None:
            self._set_tokenizer(tokenizer)

    def call(self, inputs):
        if self.tokenizer is None:
            raise UserError("the layer has no tokeniser: TokenizerLayer(tokenizer)")
        texts = list(inputs) if isinstance(inputs, tuple) else [inputs]
        if len(texts) > 2:
            raise UserError(f"{len(texts)} inputs; give texts, or a pair of them")
        texts = [tf.convert_to_tensor(one, tf.string) for one in texts]
        scalar = texts[0].shape.rank == 0
        ids = [self._in_graph(tf.reshape(one, [-1])) for one in texts]
        own, length = self.tokenizer, self.max_length
        packed = packing.of_texts(ids, own, length, self.truncation)

        def rows(values, padding=0):
            ragged = tf.RaggedTensor.from_row_lengths(values, packed.row_lengths, validate=False)
            found = ragged.to_tensor(tf.cast(padding, values.dtype), shape=[None, length])
            return found[0] if scalar else found

        return {
            "input_ids": rows(packed.ids, own.pad_id),
            "input_mask": rows(tf.ones_like(packed.ids)),
            "segment_ids": rows(packed.segments),
        }

    def compute_output_spec(self, inputs):
        first = inputs[0] if isinstance(inputs, tuple) else inputs
        shape = (*first.shape, self.max_length)
        names = ("input_ids", "input_mask", "segment_ids")
        return {name: keras.KerasTensor(shape, "int32") for name in names}

    def get_config(self):
        own = self.tokenizer
        rules = {**own.options, "do_lower_case": own.do_lower_case, "kind": own.kind} if own else {}
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "truncation": self.truncation,
            "rules": rules,
        }

    def save_assets(self, folder: str | os.PathLike) -> None:
        if self.tokenizer is not None:
            self.tokenizer.write(Path(folder))

    def load_assets(self, folder: str | os.PathLike) -> None:
        rules = dict(self._rules)
        if kind := rules.pop("kind", None):
            self._set_tokenizer(
                load_tokenizer(Path(folder, tokenizer_class(kind).file_name), **rules)
            )

    def _set_tokenizer(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._in_graph = in_graph_tokenizer(tokenizer)


def in_graph_tokenizer(tokenizer):
    """Return a tokeniser as TensorFlow operations.

    Raises:
      UserError: TensorFlow cannot compute it.
    """
    # Building it takes half of an export's time, so exports of one vocabulary share it.
    key = tokenizer.digest()
    if (made := _made.get(key)) is None:
        kind = tokenizer.kind
        if kind == "tokenizer_json":
            kind = tokenizer.contents["model"].get("type")
        if kind not in (*_IN_GRAPH, *names("graphs")):
            raise UserError(
                f"a TensorFlow graph cannot compute this tokeniser's model, {kind}; export token "
                "ids instead (experiments.export --format=onnx)"
            )
        with tf.init_scope():  # a graph's own tensors would end with it
            made = find("graphs", kind, _IN_GRAPH)(tokenizer)
        _made.clear()
        _made[key] = made
    return made


# Kinds of tokenisers, and models of foreign tokenizer.json files; extensions add further ones.
_IN_GRAPH = {"word_piece": InGraphTokenizer, "WordPiece": InGraphWordPieces}
_made: dict = {}  # the last one, by its digest
