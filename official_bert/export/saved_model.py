"""Export of a model folder to a SavedModel that holds everything.

The folder that `export` writes is what TensorFlow Serving expects:

    OUTPUT/1/saved_model.pb, variables/
    OUTPUT/1/assets/vocab.txt (or tokenizer.json, spiece.model), labels.txt
    OUTPUT/1/assets.extra/tf_serving_warmup_requests   sent to every signature when a server starts
    OUTPUT/1/assets.extra/serving.json                 what kind of model this is, for clients

Signatures: `serving_default` takes text, `token_ids` takes input_ids, input_mask and segment_ids
(int32 [B, L]; [B, C, L] for multiple choice), `serving_examples` takes serialised tf.Example with
the text inputs as bytes features. The module of each head documents what they return. Batch size
and lengths are free. Read it with `tf.saved_model.load` after `import tensorflow_text`, with
`official_bert.export.load`, or with TensorFlow Serving.
"""

import os
from pathlib import Path

import numpy as np

from official_bert.checkpoints.model_folder import size_of
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, scratch
from official_bert.common.protocol_buffers import field
from official_bert.export import exports
from official_bert.export.client import DESCRIPTION
from official_bert.export.settings import ServingSettings
from official_bert.extension import find

# One short text, then two of different lengths: the graph is optimised once, memory touched twice.
_TEXTS = ("A short text.", "Another text, somewhat longer than the first, to warm the memory up.")


def export(
    model_folder: str | os.PathLike,
    output: str | os.PathLike,
    head: str | None = None,
    version: int = 1,
    overwrite: bool = False,
    **settings,
) -> Path:
    """Write `output`/`version`, a SavedModel that needs only tensorflow and tensorflow-text.

    Args:
      model_folder: a model folder, or a loaded model (`official_bert.load`).
      output: the folder that holds the versions; its name is the model's name for TensorFlow
        Serving.
      head: the head to serve, of `exports.HEADS`; None: the model's own, or else sentence
        embeddings.
      version: name of the sub-folder.
      overwrite: rename that version to VERSION.~1~ first, if it exists.
      **settings: fields of `ServingSettings`, instead of those of the model folder.

    Returns:
      The path of the SavedModel.

    Raises:
      UserError: the model cannot be served that way, or the version exists.
    """
    _check_backend()
    import tensorflow as tf

    loaded, source = exports.load(model_folder)
    head, settings, target = resolve_export(loaded, source, output, head, version, **settings)
    with (
        atomic_folder(target, overwrite, size_of(loaded.model)) as folder,
        scratch() as assets,
        tf.device("CPU"),
    ):
        model = in_memory(loaded, head, settings)
        model.assets = _assets(assets, loaded.tokenizer, settings.labels)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(model, str(folder), signatures=_signatures(model), options=options)
        extra = folder / "assets.extra"
        extra.mkdir()
        write_warm_up(extra / "tf_serving_warmup_requests", Path(output).resolve().name, model)
        described = loaded, head, list(model.text_inputs), settings
        exports.write_description(folder, DESCRIPTION, *described)
    return target


def in_memory(loaded, head: str, settings: ServingSettings):
    """Return the `ServedModel` that an export saves, with a copy of the current weights.

    Raises:
      UserError: the model cannot be served so.
    """
    _check_backend()
    from official_bert.export import served_model, span, tagging
    from official_bert.export.tokenizer_layer import in_graph_tokenizer

    settings.check_for(head, loaded)
    classes = (
        served_model.ServedClassifier,
        span.ServedSpan,
        tagging.ServedTagger,
        served_model.ServedMultipleChoice,
        served_model.ServedMaskedWords,
        served_model.ServedEmbedding,
        served_model.ServedFeatures,
    )
    cls = find("served", head, {cls.head: cls for cls in classes})
    return cls(loaded, in_graph_tokenizer(loaded.tokenizer), settings)


def resolve_export(loaded, source, output, head=None, version=1, **settings):
    """Return (head, `ServingSettings`, path) of an export, without looking at weights.

    Raises:
      UserError: as for `export`.
    """
    head, settings = exports.resolve_export(loaded, source, "saved_model", head, **settings)
    if version < 1:
        raise UserError(f"version must be a positive number, not {version}")
    return head, settings, Path(output) / str(version)


def _assets(folder: Path, tokenizer, labels) -> list:
    import tensorflow as tf

    exports.write_tokenizer(folder, tokenizer, labels)
    return [tf.saved_model.Asset(str(path)) for path in sorted(folder.iterdir(), reverse=True)]


def _check_backend() -> None:
    import keras

    if keras.backend.backend() != "tensorflow":
        raise UserError("SavedModels need KERAS_BACKEND=tensorflow; ONNX files do not")


def _signatures(model) -> dict:
    """Return {signature: concrete function}, with explicit types and names of inputs."""
    import tensorflow as tf

    strings = {
        name: tf.TensorSpec(shape, tf.string, name=name)
        for name, shape in model.text_inputs.items()
    }
    ids_shape = [None] * model.ids_rank
    ids = {
        name: tf.TensorSpec(ids_shape, tf.int32, name=name)
        for name in ("input_ids", "input_mask", "segment_ids")
    }

    answer_texts = tf.function(model.answer_texts, autograph=False)  # traced once for both

    def answer_examples(examples):
        return answer_texts(**_parse_examples(examples, model.text_inputs))

    wanted = {
        "serving_default": (answer_texts, strings),
        "token_ids": (model.answer_padded_ids, ids),
        "serving_examples": (
            answer_examples,
            {"examples": tf.TensorSpec([None], tf.string, name="examples")},
        ),
        **model.extra_signatures(),
    }
    return {
        name: tf.function(function, autograph=False).get_concrete_function(**specs)
        for name, (function, specs) in wanted.items()
    }


def _parse_examples(examples, text_inputs):
    """Parse tf.Examples [B] to the text inputs; a missing feature is an empty text.

    Examples with different numbers of choices fail when the graph runs.
    """
    import tensorflow as tf

    features = {
        name: tf.io.FixedLenFeature([], tf.string, "")
        if len(shape) == 1
        else tf.io.RaggedFeature(tf.string)
        for name, shape in text_inputs.items()
    }
    parsed = tf.io.parse_example(examples, features)
    for name, value in parsed.items():
        if isinstance(value, tf.RaggedTensor):
            lengths = value.row_lengths()
            alike = tf.reduce_all(lengths == lengths[:1])  # a choice of "" would take a share
            tf.debugging.Assert(alike, [f"{name} must be of one number in all examples"])
            parsed[name] = value.to_tensor("")
    return parsed


def write_warm_up(path, model_name: str, model) -> None:
    """Write requests for all signatures of a `ServedModel`, which TensorFlow Serving sends itself.

    It sends them before it takes others: the first call of a signature optimises its graph, which
    takes seconds.

    The file is a TFRecord of `tensorflow_serving.apis.PredictionLog` messages. Their classes come
    with tensorflow-serving-api, which nothing else here needs, so the few bytes around the tensors
    are written by hand; a test reads them back with the real classes.
    """
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in _requests(model):
            writer.write(prediction_log(model_name, signature, inputs))


def prediction_log(model_name: str, signature: str, inputs: dict[str, np.ndarray]) -> bytes:
    """Return a serialised `PredictionLog` with one `PredictRequest`."""
    import tensorflow as tf

    model_spec = field(1, model_name.encode()) + field(3, signature.encode())
    request = field(1, model_spec)
    for name, value in inputs.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += field(2, field(1, name.encode()) + field(2, tensor))  # a map entry
    return field(6, field(1, request))  # PredictionLog.predict_log, PredictLog.request


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
