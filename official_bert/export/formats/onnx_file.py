"""ONNX files of models: the heads of `answers` as ONNX operators, and ONNX Runtime's answers."""

from pathlib import Path

import numpy as np
from onnx import TensorProto

from official_bert.backend.variables import array
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write
from official_bert.export.formats.onnx_graph import (
    DenseNodes,
    Graph,
    OnnxRows,
    activation,
    hidden_states,
    norm,
)
from official_bert.export.settings import LAYERS

# Keras has its LSTM's gates in the order input, forget, cell, output; ONNX input, output, forget,
# cell.
_GATES = [0, 3, 1, 2]

FILE = "model.onnx"
_MOST_BYTES = 2**31 - 1  # of a protocol buffer


def write(path: Path, answers) -> None:
    """Write `Answers` as `path`.

    Raises:
      UserError: it is larger than an ONNX file can be.
    """
    model = build(answers, int8=answers.settings.precision == "int8")
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size > _MOST_BYTES:
        raise UserError(
            f"the model has {size / 1e9:.1f} GB of weights, an ONNX file 2.1 at most; "
            "--precision=int8 takes a quarter"
        )
    with atomic_write(path, "wb") as file:
        file.write(model.SerializeToString())


def run(path: Path, batch: dict) -> dict:
    """Return ONNX Runtime's answer to a batch: {output: array}."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, batch), strict=True))


def build(answers, int8: bool):
    """Return the `onnx.ModelProto` of `Answers`."""
    head = _Heads(answers, Graph(int8))
    outputs = {}
    for name, (tensor, shape) in getattr(head, answers.head)().items():
        head.graph.name(tensor, name)
        dtype = TensorProto.INT32 if name == "token_ids" else TensorProto.FLOAT
        outputs[name] = dtype, shape
    last = {"input_ids": "length", "masked_lm_positions": "masks"}
    inputs = {
        name: ["batch", "choices", "length"][-dimensions:]
        if dimensions == 3
        else ["batch", last.get(name, "length")]
        for name, dimensions in answers.inputs.items()
    }
    return head.graph.model(inputs, outputs)


class _Heads:
    """A method for each head, which returns {output: (name of the tensor, shape)}."""

    def __init__(self, answers, graph: Graph):
        self.graph, self.settings = graph, answers.settings
        self.loaded, self.model, self.config = answers.loaded, answers.model, answers.config
        self.direction = self.config.attention_direction
        ids = dict.fromkeys(answers.inputs)
        for name in ids:
            is_flat = answers.inputs[name] == 2
            ids[name] = name if is_flat else self._without_choices(name)
        self.rows = OnnxRows(graph, ids["input_mask"])
        self.states = hidden_states(
            graph, self.loaded.encoder, self.rows, ids["input_ids"], ids["segment_ids"]
        )

    def classification(self):
        logits, problem = self._dense(self._summary()), self.model.problem
        if problem == "regression":
            return {"values": (self.graph.op("Squeeze", logits, [1]), ["batch"])}
        squash = {"single_label": "Softmax", "multi_label": "Sigmoid"}[problem]
        shape = ["batch", self.model.num_labels]
        return {"logits": (logits, shape), "probabilities": (self.graph.op(squash, logits), shape)}

    def multiple_choice(self):
        op, shape = self.graph.op, ["batch", "choices"]
        given = op("Shape", "input_ids", end=2)
        logits = op("Reshape", self._dense(self._summary()), given)
        return {"logits": (logits, shape), "probabilities": (op("Softmax", logits), shape)}

    def span(self):
        logits = self.rows.to_padded(self._dense(self._sequence()))
        starts, ends = self.graph.op("Split", logits, outputs=2, axis=2, num_outputs=2)
        return {
            f"{side}_logits": (self.graph.op("Squeeze", tensor, [2]), ["batch", "length"])
            for side, tensor in (("start", starts), ("end", ends))
        }

    def tagging(self):
        logits = self.rows.to_padded(self._dense(self._sequence()))
        return {"logits": (logits, ["batch", "length", self.model.num_labels])}

    def masked_words(self):
        op, head, graph = self.graph.op, self.model.masked_lm, self.graph
        entries = len(self.loaded.tokenizer.vocab)
        count = min(self.settings.top_k, entries)
        places = op("GatherElements", self.rows.places, "masked_lm_positions", axis=1)
        x = op("Gather", self.states[-1], op("Reshape", places, [-1]))
        x = activation(graph, DenseNodes.from_layer(graph, head.transform)(x), self.config)
        table = array(self.loaded.encoder.embeddings.word_embeddings)
        scores = DenseNodes(graph, table, array(head.bias), transposed=True)(
            norm(graph, x, head.norm)
        )
        if entries < len(table):  # a padded table has rows that are not words
            scores = op("Slice", scores, [0], [entries], [1])
        probabilities, ids = op("TopK", op("Softmax", scores), [count], outputs=2)
        shape = op("Concat", op("Shape", "masked_lm_positions"), [count], axis=0)
        ids = op("Cast", op("Reshape", ids, shape), to=TensorProto.INT32)
        axes = ["batch", "masks", count]
        return {
            "probabilities": (op("Reshape", probabilities, shape), axes),
            "token_ids": (ids, axes),
        }

    def embedding(self):
        op = self.graph.op
        vectors, width = self._joined_layers()
        if self.settings.pooling == "cls":
            vectors = self.rows.summary_token(vectors, self.direction)
        else:
            count = op("Cast", self.rows.mask, to=TensorProto.FLOAT)
            total = op("ReduceSum", self.rows.to_padded(vectors), [1], keepdims=0)
            vectors = op("Div", total, op("ReduceSum", count, [1], keepdims=1))
        if self.settings.normalize:
            length = op("ReduceL2", vectors, [1], keepdims=1)
            vectors = op("Div", vectors, op("Max", length, 1e-6))
        return {"embedding": (vectors, ["batch", width])}

    def features(self):
        vectors, width = self._joined_layers()
        return {
            "features": (self.rows.to_padded(vectors), ["batch", "length", width]),
            "pooled_output": (self._pooled(), ["batch", self.config.hidden_size]),
        }

    def _without_choices(self, name: str) -> str:
        """Map [B, C, L] -> [B * C, L]."""
        op = self.graph.op
        length = op("Shape", name, start=2)
        return op("Reshape", name, op("Concat", [-1], length, axis=0))

    def _dense(self, x: str) -> str:
        """Apply the head's own layer, in float32 even where the encoder is int8.

        The layer is small, and it decides the answer.
        """
        layer = self.model.head
        return self.graph.op("Gemm", x, array(layer.kernel), array(layer.bias))

    def _joined_layers(self):
        selected, join = LAYERS[self.settings.layers]
        layers, width = self.states[selected], self.config.hidden_size
        if len(layers) == 1:
            return layers[0], width
        if join == "concat":
            return self.graph.op("Concat", *layers, axis=1), width * len(layers)
        return self.graph.op("Mean", *layers), width

    def _pooled(self) -> str:
        summary = self.rows.summary_token(self.states[-1], self.direction)
        if self.loaded.encoder.pooler is None:
            return summary
        kinds = {"tanh": "Tanh", "relu": "Relu", "gelu": "Gelu"}
        pooled = DenseNodes.from_layer(self.graph, self.loaded.encoder.pooler)(summary)
        return self.graph.op(kinds[self.loaded.encoder.pooler.activation.__name__], pooled)

    def _summary(self) -> str:
        """Return the vectors that classifiers read, [B, H]."""
        if self.model.bilstm is None:
            return self._pooled()
        return self.rows.summary_token(self._sequence(), self.direction)

    def _sequence(self) -> str:
        """Return [N, H]: the last layer, or the output of Table 5's BiLSTM on it."""
        if self.model.bilstm is None:
            return self.states[-1]
        op, both = self.graph.op, self.model.bilstm.layers_both
        cells = [layer.cell for layer in (both.forward_layer, both.backward_layer)]
        weights = [
            np.stack([_gates(array(getattr(cell, name))) for cell in cells])
            for name in ("kernel", "recurrent_kernel", "bias")
        ]
        # ONNX has a second bias, of the recurrent product.
        weights[2] = np.concatenate([weights[2], np.zeros_like(weights[2])], axis=1)
        lengths = op("ReduceSum", op("Cast", self.rows.mask, to=TensorProto.INT32), [1], keepdims=0)
        x = op("Transpose", self.rows.spread(self.states[-1]), perm=[1, 0, 2])  # [L, B, H]
        width = self.config.hidden_size
        options = {"direction": "bidirectional", "hidden_size": width // 2}
        read = op("LSTM", x, *weights, lengths, outputs=3, **options)[0]  # [L, 2, B, H / 2]
        read = op("Transpose", read, perm=[2, 0, 1, 3])
        return self.rows.collect(op("Reshape", read, [-1, width]))


def _gates(weights: np.ndarray) -> np.ndarray:
    """Convert Keras' [in, 4 * units] or [4 * units] to ONNX's [4 * units, in] or [4 * units]."""
    parts = np.split(weights.T, 4)
    return np.concatenate([parts[index] for index in _GATES])
