"""The encoder as ONNX operators, in the form that ONNX Runtime runs fastest.

It is written node by node instead of by a converter: the encoder is small and fixed, so the graph
is no larger than it must be, and the nodes that run are those below. Operator set 20 has
LayerNormalization and Gelu as one operator each. Like `packed_encoder`, it packs rows: dense layers
and normalisation run over the N real tokens of all rows together; only attention sees rows and
padding.

With int8, tables and matrices are stored as bytes, with a scale for each row of a table and each
column of a matrix. The other side of a product is rounded to 8 bits when it is computed ("dynamic
quantisation"); ONNX Runtime fuses these operators into one.
"""

import hashlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from official_bert.backend.variables import array, query_key_value
from official_bert.layers import MASKED_SCORE

OPSET, IR_VERSION = 20, 9


class Graph:
    """Nodes and constants, in the order in which they are added.

    Args:
      int8: store tables and matrices as int8.
    """

    def __init__(self, int8: bool = False):
        self.int8 = int8
        self.nodes, self.constants, self._names = [], [], {}

    def op(self, kind: str, *inputs, outputs: int = 1, **attributes):
        """Add a node; inputs are names of tensors, numbers, lists of numbers or arrays.

        Returns:
          The name of its output, or a list of them.
        """
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        inputs = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value) -> str:
        """Return the name of a constant; equal constants are stored once.

        Whole numbers are int64, others float32.
        """
        array = np.asarray(value)
        if array.dtype in (np.float64, np.int32):
            array = array.astype(np.float32 if array.dtype == np.float64 else np.int64)
        content = hashlib.sha256(np.ascontiguousarray(array)).digest()
        key = array.dtype.str, array.shape, content
        if key not in self._names:
            self._names[key] = f"constant_{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, self._names[key]))
        return self._names[key]

    def name(self, tensor: str, name: str) -> None:
        """Name an output of the graph."""
        self.nodes.append(helper.make_node("Identity", [tensor], [name]))

    def model(self, inputs: dict[str, list], outputs: dict[str, tuple[int, list]]):
        """Return the finished `onnx.ModelProto`.

        Args:
          inputs: {name: shape} of int32 tensors; a text in a shape names a free dimension.
          outputs: {name: (element type, shape)}.
        """
        made = helper.make_graph(
            self.nodes,
            "official_bert",
            [helper.make_tensor_value_info(n, TensorProto.INT32, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, *kind) for n, kind in outputs.items()],
            self.constants,
        )
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            made, opset_imports=opset, ir_version=IR_VERSION, producer_name="official_bert"
        )


class OnnxRows:
    """Places of the N real tokens of rows [B, L].

    Attributes:
      mask: bool [B, L]; the first token of a row always counts.
      shape: int64 [2], B and L.
    """

    def __init__(self, graph: Graph, input_mask: str):
        self.graph, op = graph, graph.op
        self.shape = op("Shape", input_mask)
        length = op("Gather", self.shape, 1)
        first = op("Equal", op("Range", 0, length, 1), 0)
        self.mask = op("Or", op("Cast", input_mask, to=TensorProto.BOOL), first)
        flat = op("Reshape", self.mask, [-1])
        self._tokens = op("Squeeze", op("NonZero", flat), [0])  # [N], places among the B * L
        self.positions = op("Mod", self._tokens, length)
        # [B, L], places among the N; padding repeats the token before it, and is masked.
        count = op("CumSum", op("Cast", flat, to=TensorProto.INT64), 0)
        self.places = op("Reshape", op("Sub", count, 1), self.shape)

    def collect(self, x: str) -> str:
        """Map [B * L, ...] -> [N, ...]."""
        return self.graph.op("Gather", x, self._tokens)

    def spread(self, x: str) -> str:
        """Map [N, ...] -> [B, L, ...]; what stands at padding has no meaning."""
        return self.graph.op("Gather", x, self.places)

    def to_padded(self, x: str) -> str:
        """Map [N, D] -> [B, L, D], zeros at padding."""
        mask = self.graph.op("Unsqueeze", self.mask, [2])
        return self.graph.op("Where", mask, self.spread(x), 0.0)

    def summary_token(self, x: str, direction: str) -> str:
        """Map [N, H] -> [B, H]: [CLS]; in a left-to-right model the last token."""
        column = 0 if direction == "bidirectional" else -1
        return self.graph.op("Gather", x, self.graph.op("Gather", self.places, column, axis=1))

    def attention_bias(self, direction: str) -> str:
        """Return float32 [B, 1, 1 or L, L], 0 where a token may look."""
        op = self.graph.op
        allowed = op("Unsqueeze", self.mask, [1, 2])
        if direction == "left_to_right":
            place = op("Range", 0, op("Gather", self.shape, 1), 1)
            before = op("LessOrEqual", place, op("Unsqueeze", place, [1]))
            allowed = op("And", allowed, before)
        return op("Where", allowed, 0.0, MASKED_SCORE)


def hidden_states(
    graph: Graph, encoder, rows: OnnxRows, input_ids: str, segment_ids: str
) -> list[str]:
    """Return the `num_hidden_layers` + 1 states, [N, H] each.

    Args:
      encoder: a `BertEncoder`, whose weights are copied.
      rows: where tokens stand in `input_ids` and `segment_ids`, int32 [B, L].
    """
    config, parts, op = encoder.config, encoder.embeddings, graph.op
    x = lookup(graph, parts.word_embeddings, rows.collect(op("Reshape", input_ids, [-1])))
    segments = parts.token_type_embeddings
    if config.type_vocab_size == 1:
        x = op("Add", x, array(segments)[0])
    elif config.type_vocab_size:
        kinds = rows.collect(op("Reshape", segment_ids, [-1]))
        x = op("Add", x, op("Gather", array(segments), kinds))
    x = op("Add", x, lookup(graph, parts.position_embeddings, rows.positions))
    x = norm(graph, x, parts.norm) if parts.norm else x
    states = [DenseNodes.from_layer(graph, parts.projection)(x) if parts.projection else x]
    bias = rows.attention_bias(config.attention_direction)
    blocks = [_Block(graph, block, config) for block in encoder.blocks]
    for layer in range(config.num_hidden_layers):
        states.append(blocks[config.block_of(layer)](states[-1], rows, bias))
    return states


class _Block:
    """Self-attention and feed-forward; a block that runs several times has its weights once."""

    def __init__(self, graph: Graph, block, config):
        self.graph, self.config = graph, config
        attention, heads = block.attention, config.num_attention_heads
        self.heads, self.width = heads, config.hidden_size // heads
        self.qkv = DenseNodes(graph, *query_key_value(attention))
        self.attention_output = DenseNodes.from_layer(graph, attention.output_dense)
        self.intermediate = DenseNodes.from_layer(graph, block.intermediate)
        self.output = DenseNodes.from_layer(graph, block.output_dense)
        self.attention_norm, self.output_norm = block.attention_norm, block.output_norm

    def __call__(self, x: str, rows: OnnxRows, bias: str) -> str:
        op = self.graph.op
        attended = self.attention_output(self._attend(x, rows, bias))
        x = norm(self.graph, op("Add", x, attended), self.attention_norm)
        inner = activation(self.graph, self.intermediate(x), self.config)
        return norm(self.graph, op("Add", x, self.output(inner)), self.output_norm)

    def _attend(self, x, rows, bias):
        op, width = self.graph.op, self.heads * self.width
        parts = op("Split", rows.spread(self.qkv(x)), [width] * 3, outputs=3, axis=2)
        query, key, value = (
            op("Transpose", op("Reshape", part, [0, 0, self.heads, self.width]), perm=order)
            for part, order in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = op("Add", op("MatMul", query, key), bias)  # [B, A, L, L]
        context = op("MatMul", op("Softmax", scores, axis=-1), value)
        context = op("Transpose", context, perm=[0, 2, 1, 3])
        return rows.collect(op("Reshape", context, [-1, width]))


class DenseNodes:
    """A dense layer: [N, in] -> [N, out].

    Args:
      kernel: float32 [in, out], or, where it is a table that is looked up as well, [out, in].
      bias: float32 [out].
    """

    def __init__(self, graph: Graph, kernel: np.ndarray, bias: np.ndarray, transposed=False):
        self.graph, self.bias = graph, graph.constant(bias)
        if graph.int8:
            kernel, scales = to_int8(kernel, axis=int(transposed))
            self.scales = graph.constant(scales.ravel())
        # ONNX Runtime transposes a constant when it loads the model.
        self.kernel = graph.op("Transpose", kernel) if transposed else graph.constant(kernel)

    @classmethod
    def from_layer(cls, graph: Graph, layer) -> "DenseNodes":
        return cls(graph, array(layer.kernel), array(layer.bias))

    def __call__(self, x: str) -> str:
        op = self.graph.op
        if not self.graph.int8:
            return op("Gemm", x, self.kernel, self.bias)
        rounded, scale, zero = op("DynamicQuantizeLinear", x, outputs=3)
        product = op("MatMulInteger", rounded, self.kernel, zero, np.int8(0))
        product = op("Cast", product, to=TensorProto.FLOAT)
        return op("Add", op("Mul", product, op("Mul", scale, self.scales)), self.bias)


def lookup(graph: Graph, table, ids: str) -> str:
    """Look rows of a table up: [V, E], int [N] -> [N, E]."""
    if not graph.int8:
        return graph.op("Gather", array(table), ids)
    rounded, scales = to_int8(array(table), axis=1)
    rows = graph.op("Cast", graph.op("Gather", rounded, ids), to=TensorProto.FLOAT)
    return graph.op("Mul", rows, graph.op("Gather", scales, ids))


def norm(graph: Graph, x: str, layer) -> str:
    """Apply layer normalisation over the last axis."""
    weights = array(layer.gamma), array(layer.beta)
    return graph.op("LayerNormalization", x, *weights, axis=-1, epsilon=layer.epsilon)


def activation(graph: Graph, x: str, config) -> str:
    """Apply the activation that `hidden_act` and `gelu_form` name."""
    if config.hidden_act == "gelu":
        form = {"erf": "none", "tanh": "tanh"}[config.gelu_form]
        return graph.op("Gelu", x, approximate=form)
    kinds = {"relu": "Relu", "tanh": "Tanh", "linear": "Identity"}
    return graph.op(kinds[config.hidden_act], x)


def to_int8(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 values and float32 scales whose product is nearest to `values`; zero stays zero.

    Args:
      axis: along which values share a scale.
    """
    scales = np.abs(values).max(axis=axis, keepdims=True) / LARGEST
    scales = np.where(scales == 0, 1, scales).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales


# Seven bits of eight are used: older CPUs add two products in 16 bits, which eight would overflow.
LARGEST = 63
