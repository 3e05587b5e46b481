"""GLUE's baselines (Wang et al. 2018, section 5): one or two texts from the vectors of their words.

A text is the mean of its vectors (CBOW), or what a BiLSTM makes of them, the largest number of each
dimension. Two texts u and v become [u; v; |u - v|; u * v]. Between the words of two texts BiLSTMs
have attention: every word gets the mean of the other text's words that are like it, and a second
BiLSTM reads both.
"""

import keras
from keras import ops

from official_bert.bilstm import BidirectionalLSTM
from official_bert.features import LayerCombination
from official_bert.heads import BertClassifier
from official_bert.layers import dense, softmax
from official_bert.losses import ModelWithLosses
from official_bert.randomness import FEATURE_DROPOUT, HEAD_DROPOUT, dropout, fold_in
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS
from official_bert.window_pooling import pool

_UNKNOWN = SPECIAL_TOKENS.index("[UNK]")


class TextClassifier(ModelWithLosses):
    """A text encoder and a dense layer with tanh below the classes; the base of both baselines.

    Args:
      width: of the vector of a text.
      head: {"num_labels", "problem"} as for `BertClassifier`.
      pairs: whether a row is two texts.
      rate: dropout of words and of what is classified.
      classifier_width: of the dense layer.
      seed: of the initial weights.
    """

    label_names = ("label_ids",)

    def __init__(self, width, head, pairs, rate=0.2, classifier_width=512, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.num_labels, self.problem = head["num_labels"], head["problem"]
        self.pairs, self.dropout_rate = pairs, rate
        self.seed_generator = keras.random.SeedGenerator(seed)
        glorot = keras.initializers.GlorotUniform
        with keras.name_scope(self.name):
            self.hidden = dense(
                4 * width if pairs else width, classifier_width, glorot(seed), self.dtype_policy,
                "hidden", keras.layers.Dense, activation="tanh",
            )  # fmt: skip
            of_head = glorot(seed), "float32", "head", keras.layers.Dense
            self.head = dense(classifier_width, self.num_labels, *of_head)
        self._declare_means("label_loss", *(["accuracy"] if self.problem != "regression" else []))

    def call(self, batch, training=False, seed=None):
        """Return vectors of words -> {"logits": [B, num_labels]}.

        Args:
          batch: input_ids (of a `WordTokenizer`), input_mask and segment_ids int32 [B, L], and
            "vectors" float [B, L, D].
        """
        seed = self.step_seed(training, seed)
        ids, real = ops.cast(batch["input_ids"], "int32"), batch["input_mask"] > 0
        is_word = ops.logical_or(ids >= len(SPECIAL_TOKENS), ids == _UNKNOWN)
        segments = range(2 if self.pairs else 1)
        masks = [ops.logical_and(ops.logical_and(real, is_word), batch["segment_ids"] == segment)
                 for segment in segments]  # fmt: skip
        words = dropout(self.words(batch), self.dropout_rate, fold_in(seed, FEATURE_DROPOUT))
        texts = self.texts(words, masks, ids == _UNKNOWN, fold_in(seed, FEATURE_DROPOUT + 1))
        if self.pairs:
            u, v = texts
            texts = [u, v, ops.abs(u - v), u * v]
        x = ops.concatenate(texts, axis=-1)
        x = self.hidden(dropout(x, self.dropout_rate, fold_in(seed, HEAD_DROPOUT)))
        return {"logits": self.head(dropout(x, self.dropout_rate, fold_in(seed, HEAD_DROPOUT + 1)))}

    def words(self, batch):
        """Return the vectors that are read, [B, L, D]."""
        return ops.cast(batch["vectors"], self.compute_dtype)

    def texts(self, words, masks, unknown, seed) -> list:
        """Return one vector [B, width] for each text.

        Args:
          words: [B, L, D].
          masks: one a text, bool [B, L]: its words.
          unknown: bool [B, L], words without vectors.
          seed: int32 [2] in training, else None.
        """
        raise NotImplementedError

    loss_terms = BertClassifier.loss_terms
    metric_terms = BertClassifier.metric_terms
    check_labels = BertClassifier.check_labels


class CBOW(TextClassifier):
    """The mean of the vectors of the words that have one; zeros for a text without any."""

    def __init__(self, inputs, head, pairs, **kwargs):
        super().__init__(inputs, head, pairs, **{"name": "cbow", **kwargs})
        self.built = True

    def texts(self, words, masks, unknown, seed):
        known = [ops.logical_and(mask, ops.logical_not(unknown)) for mask in masks]
        return [pool(words, mask, "mean") for mask in known]


class BiLSTMAttention(TextClassifier):
    """Two BiLSTMs on top of each other, maxima over the words; attention between two texts.

    Args:
      inputs: width of the vectors; 0: there are none, ELMo's states stand in their place.
      width: of a BiLSTM's output, both directions together.
      head, pairs: of `TextClassifier`.
      elmo: ElmoConfig of a model whose states are read beside the vectors; None: of none.
    """

    def __init__(self, inputs, width, head, pairs, elmo=None, seed=None, **kwargs):
        super().__init__(width, head, pairs, seed=seed, **{"name": "bilstm_attention", **kwargs})
        self.mix = None
        self.has_folder = elmo is None  # an ELMo is a folder of its own
        if elmo is not None:
            layers = elmo.num_hidden_layers + 1
            self.mix = LayerCombination("elmo", layers, dtype=self.dtype_policy, name="mix")
            inputs += elmo.hidden_size
        widths = {"first": inputs, "second": width} | ({"third": 2 * width} if pairs else {})
        with keras.name_scope(self.name):
            for number, (name, read) in enumerate(widths.items()):
                layer_seed = None if seed is None else seed + 10 * number
                lstm = BidirectionalLSTM(width, layer_seed, self.dtype_policy)
                # cuDNN wants texts to begin where the row does; the second of a pair does not.
                lstm.forward_layer.use_cudnn = lstm.backward_layer.use_cudnn = False
                with keras.name_scope(name):
                    lstm.build((None, None, read))
                setattr(self, name, lstm)
        self.built = True

    def words(self, batch):
        """Return the vectors and, of "states" [B, L, layers, E], the sum with learnt weights."""
        words = super().words(batch)
        if self.mix is None:
            return words
        states = ops.cast(batch["states"], self.compute_dtype)
        mixed = self.mix([states[:, :, i] for i in range(self.mix.num_layers)])
        return ops.concatenate([words, mixed], axis=-1)

    def texts(self, words, masks, unknown, seed):
        # All texts below each other, so that each LSTM runs once.
        mask, count = ops.concatenate(masks), len(masks)
        x = self.first(ops.concatenate([words] * count), mask=mask)
        x = self.second(dropout(x, self.dropout_rate, seed), mask=mask)
        if self.pairs:
            alike = self._alike(x, ops.concatenate(masks[::-1]))
            both = ops.concatenate([x, alike], axis=-1)
            x = self.third(dropout(both, self.dropout_rate, fold_in(seed, 1)), mask=mask)
        return ops.split(_maximum(x, mask), count)

    def _alike(self, own, in_other):
        """Return for each word the mean of the other text's words, weighted by similarity."""
        other = ops.concatenate(ops.split(own, 2)[::-1])
        scores = ops.matmul(own, ops.transpose(other, (0, 2, 1)))  # [2 B, L, L]
        scores = ops.where(in_other[:, None, :], scores, ops.cast(-1e4, scores.dtype))
        return ops.matmul(softmax(scores), other)


def _maximum(words, mask):
    """Map [B, L, D] -> [B, D]; zeros for a text without words."""
    found = pool(words, mask, "max")
    return ops.where(ops.any(mask, axis=1)[:, None], found, ops.zeros_like(found))
