"""The warm-up file of TensorFlow Serving: requests that it sends itself before it takes others.

The first call of a signature optimises its graph, which takes seconds; the file moves that before
the first user. It is a TFRecord of `tensorflow_serving.apis.PredictionLog` messages. Their classes
come with tensorflow-serving-api, which nothing else here needs, so the few bytes around the tensors
are written by hand; a test reads them back with the real classes.
"""

import numpy as np

# One short text and two of different length: the graph is optimised once, memory is touched twice.
_TEXTS = ("A short text.", "Another text, somewhat longer than the first, to warm the memory up.")


def write(path, model_name: str, model) -> None:
    """Writes requests for all signatures of a `ServedModel`."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in _requests(model):
            writer.write(prediction_log(model_name, signature, inputs))


def prediction_log(model_name: str, signature: str, inputs: dict[str, np.ndarray]) -> bytes:
    """A serialised `PredictionLog` with one `PredictRequest`."""
    import tensorflow as tf

    model_spec = _field(1, model_name.encode()) + _field(3, signature.encode())
    request = _field(1, model_spec)
    for name, value in inputs.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, tensor))  # a map entry
    return _field(6, _field(1, request))  # PredictionLog.predict_log, PredictLog.request


def _requests(model):
    texts = {
        name: np.array(_TEXTS if len(shape) == 1 else [_TEXTS, _TEXTS], dtype=object)
        for name, shape in model.text_inputs.items()
    }
    yield "serving_default", texts
    ids = np.full([1, 1, 8][-model.ids_rank :], model.cls_id, np.int32)
    yield (
        "token_ids",
        {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)},
    )
    examples = [_example(texts, row) for row in range(len(_TEXTS))]
    yield "serving_examples", {"examples": np.array(examples, dtype=object)}


def _example(texts, row) -> bytes:
    import tensorflow as tf

    features = {
        name: tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[t.encode() for t in np.atleast_1d(values[row])])
        )
        for name, values in texts.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _field(number: int, payload: bytes) -> bytes:
    """A length-delimited field of a protocol buffer."""
    size, length = len(payload), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + payload
