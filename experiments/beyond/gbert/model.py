"""G-BERT (Shang et al. 2019): BERT of medical codes, whose table is computed from their ontology.

A visit is two sets of codes without positions, diagnoses and medications, `[CLS] codes` each, which
one encoder reads apart; the first vector stands for a set. Pre-training asks either vector of
single visits for both sets. Then the medications of a visit are predicted from its diagnoses and
from what earlier visits had. The authors' published code cuts a patient's rows in half where it
means to divide diagnoses from medications, so that it reads answers; here it is equation 10.
"""

import keras
import numpy as np
from keras import ops

from official_bert.config import BertConfig
from official_bert.layers import LayerNorm, TransformerBlock, bias_of, dense
from official_bert.losses import ModelWithLosses, binary_cross_entropy, weighted_sum
from official_bert.randomness import FEATURE_DROPOUT, dropout, fold_in

PAD, CLS, MASK = 0, 1, 2  # rows of the table; codes follow
SPECIAL = 3


class GraphAttention(keras.layers.Layer):
    """Every node becomes a mean of itself and its neighbours (Velickovic et al. 2018).

    Args:
      width: of a node; divisible by heads.
      seed: of the initial weights, Glorot's.
    """

    slope = 0.2  # of the leaky rectifier

    def __init__(self, width: int, heads: int, seed=None, **kwargs):
        super().__init__(**kwargs)
        initializer, head = keras.initializers.GlorotUniform(seed), (heads, width // heads)
        self.kernel = self.add_weight(name="kernel", shape=(width, width), initializer=initializer)
        self.of_target = self.add_weight(name="of_target", shape=head, initializer=initializer)
        self.of_source = self.add_weight(name="of_source", shape=head, initializer=initializer)
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")
        self.built = True

    def call(self, nodes, sources=None, targets=None):
        """Map [V, H] and the ends of edges, int32 [E] each -> [V, H]; every node has an edge to
        itself among them."""
        count, width = nodes.shape
        x = ops.reshape(ops.matmul(nodes, self.kernel), (count, *self.of_source.shape))
        scores = ops.take(ops.sum(x * self.of_target, axis=-1), targets, axis=0)
        scores += ops.take(ops.sum(x * self.of_source, axis=-1), sources, axis=0)  # [E, heads]
        scores = ops.leaky_relu(scores, self.slope)
        highest = ops.segment_max(scores, targets, num_segments=count)
        shares = ops.exp(scores - ops.take(ops.stop_gradient(highest), targets, axis=0))
        total = ops.segment_sum(shares, targets, num_segments=count)
        shares = shares / ops.take(total, targets, axis=0)
        taken = ops.take(x, sources, axis=0) * shares[..., None]
        summed = ops.segment_sum(taken, targets, num_segments=count)
        return ops.reshape(summed, (count, width)) + self.bias


class CodeTable(keras.layers.Layer):
    """A row for each code: learnt, or made of the rows of all codes and of what is above them.

    The same attention runs twice: from the bottom up a parent takes from its children, then from
    the top down a code takes from all that is above it.

    Args:
      parents: of each code, below `SPECIAL` and above: the row of what it belongs to, -1 at a root.
      config: whose width and heads are taken.
      graph: False: rows are learnt as they are.
    """

    def __init__(self, parents, config: BertConfig, graph: bool = True, seed=None, **kwargs):
        super().__init__(**kwargs)
        width, initializer = config.hidden_size, keras.initializers.GlorotUniform(seed)
        self.rows = self.add_weight(
            name="rows", shape=(len(parents), width), initializer=initializer
        )
        self.attention = None
        if graph:
            with keras.name_scope(self.name):
                self.attention = GraphAttention(
                    width, config.num_attention_heads, seed, name="attention"
                )
            self.up, self.down = edges(parents)
        self.built = True

    def call(self, training=False):
        """Return the rows, [V, H]."""
        if self.attention is None:
            return ops.convert_to_tensor(self.rows)
        x = ops.convert_to_tensor(self.rows)
        for sources, targets in (self.up, self.down):
            x = self.attention(x, sources=sources, targets=targets)
        return x


def edges(parents) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return (sources, targets) of both stages, int32 [E] each; loops come first."""
    loops, inner = [(i, i) for i in range(len(parents))], {p for p in parents if p >= 0}
    up = [(code, parent) for code, parent in enumerate(parents) if parent >= 0]
    down = []
    for leaf in range(len(parents)):
        above = parents[leaf]
        while leaf not in inner and above >= 0:
            down.append((above, leaf))
            above = parents[above]
    return tuple(tuple(np.array([*loops, *found], "int32").T) for found in (up, down))


class SetEncoder(keras.layers.Layer):
    """One vector of each set of codes: int32 [N, L], [CLS] first, padded by 0 -> [N, H]."""

    def __init__(self, config: BertConfig, parents, graph=True, seed=None, **kwargs):
        super().__init__(**{"name": "set_encoder", **kwargs})
        self.dropout_rate = config.hidden_dropout_prob
        normal = keras.initializers.RandomNormal(
            stddev=config.initializer_range, seed=keras.random.SeedGenerator(seed)
        )
        with keras.name_scope(self.name):
            self.table = CodeTable(parents, config, graph, seed, name="table")
            self.norm = LayerNorm(config, name="norm")
            self.blocks = [
                TransformerBlock(config, normal, name=f"layer_{i}")
                for i in range(config.num_hidden_layers)
            ]
        self.built = True

    def call(self, ids, rows=None, seed=None):
        """Embed codes; `rows` are the table's, where several calls share them, made of all
        codes."""
        rows = self.table() if rows is None else rows
        x = self.norm(ops.take(rows, ids, axis=0))
        x = dropout(x, self.dropout_rate, fold_in(seed, 0))
        bias = bias_of(ids[:, None, None, :] > PAD, x.dtype)
        for number, block in enumerate(self.blocks):
            x = block(x, bias, seed=fold_in(seed, 1 + 3 * number))
        return x[:, 0]


class _OfSets(ModelWithLosses):
    """A model on a `SetEncoder`."""

    def __init__(self, encoder: SetEncoder, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.seed_generator = keras.random.SeedGenerator(seed)
        self._initializer = keras.initializers.RandomNormal(stddev=0.02, seed=seed)

    def _dense(self, inputs, units, name, activation=None):
        options = {"cls": keras.layers.Dense, "activation": activation}
        return dense(inputs, units, self._initializer, self.dtype_policy, name, **options)


class VisitPretrainer(_OfSets):
    """Self and dual prediction: both sets of a visit from either one, corrupted.

    Args:
      sizes: how many {"diagnoses", "medications"} are told apart.

    Batches: "diagnoses" and "medications" int32 [B, L]; for each, float 0 and 1 in
    "NAME_labels" [B, size].
    """

    def __init__(self, encoder, width: int, sizes: dict[str, int], seed=None):
        super().__init__(encoder, seed, name="visit_pretrainer")
        self.sizes = sizes
        with keras.name_scope(self.name):
            for source in sizes:
                for target, size in sizes.items():
                    inner = self._dense(width, width, f"{source}_{target}_inner", "relu")
                    outer = self._dense(width, size, f"{source}_{target}")
                    setattr(self, inner.name, inner)
                    setattr(self, outer.name, outer)
        self._declare_means(*self.loss_names())
        self.built = True

    def loss_names(self):
        return [f"{target}_of_{source}_loss" for source in self.sizes for target in self.sizes]

    def call(self, batch, training=False, seed=None):
        seed, rows = self.step_seed(training, seed), self.encoder.table()
        found = {}
        for number, source in enumerate(self.sizes):
            own = fold_in(seed, FEATURE_DROPOUT + number)
            vector = self.encoder(batch[source], rows=rows, seed=own)
            for target in self.sizes:
                inner = getattr(self, f"{source}_{target}_inner")(vector)
                found[f"{target}_of_{source}_loss"] = getattr(self, f"{source}_{target}")(inner)
        return found

    def loss_terms(self, batch, outputs):
        """Return the mean binary cross entropy over codes of each of the four questions."""
        terms = {}
        for source in self.sizes:
            for target in self.sizes:
                name = f"{target}_of_{source}_loss"
                losses = binary_cross_entropy(outputs[name], batch[f"{target}_labels"])
                losses = ops.mean(losses, axis=-1)
                terms[name] = weighted_sum(losses, ops.ones_like(losses))
        return terms


class MedicationModel(_OfSets):
    """The medications of a visit from its diagnoses and both sets of all visits before.

    Batches: "diagnoses" int32 [B, T, L], "medications" int32 [B, T, L'], "labels" float
    [B, T, size], "asked" float [B, T], 1 at real visits but the first.
    """

    def __init__(self, encoder, width: int, size: int, seed=None):
        super().__init__(encoder, seed, name="medication_model")
        with keras.name_scope(self.name):
            self.of_diagnoses = self._dense(width, width, "of_diagnoses", "relu")
            self.of_medications = self._dense(width, width, "of_medications", "relu")
            self.inner = self._dense(3 * width, 2 * width, "inner", "relu")
            self.head = self._dense(2 * width, size, "head")
        self._declare_means("label_loss")
        self.built = True

    def call(self, batch, training=False, seed=None):
        """Return {"logits": [B, T, size]}; before the first visit there are zeros."""
        seed, table = self.step_seed(training, seed), self.encoder.table()
        sets = (
            (batch["diagnoses"], self.of_diagnoses),
            (batch["medications"], self.of_medications),
        )
        vectors = []
        for number, (ids, read) in enumerate(sets):
            rows, visits, length = ops.shape(ids)
            own = fold_in(seed, FEATURE_DROPOUT + number)
            x = self.encoder(ops.reshape(ids, (-1, length)), rows=table, seed=own)
            vectors.append(ops.reshape(read(x), (rows, visits, x.shape[-1])))
        # Visits 0 to t - 1, so neither the answer nor anything behind it is read.
        before = [ops.cumsum(ops.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0))), axis=1) for x in vectors]
        count = ops.cast(ops.maximum(ops.arange(vectors[0].shape[1]), 1), "float32")[:, None]
        means = [ops.divide(x, count) for x in before]  # in float32, whatever the policy
        x = ops.concatenate([*means, vectors[0]], axis=-1)
        return {"logits": self.head(self.inner(x))}

    def loss_terms(self, batch, outputs):
        losses = ops.mean(binary_cross_entropy(outputs["logits"], batch["labels"]), axis=-1)
        return {"label_loss": weighted_sum(losses, batch["asked"])}
