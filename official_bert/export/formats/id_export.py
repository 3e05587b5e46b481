"""Exports of a model folder that take token ids: ONNX and LiteRT.

The folder that `export_ids` writes:

    OUTPUT/model.onnx or model.tflite    inputs and outputs as in `answers`
    OUTPUT/tokenizer.json                for the library `tokenizers` (WordPiece and others)
    OUTPUT/vocab.txt or spiece.model     the vocabulary as the model has it
    OUTPUT/labels.txt, serving.json      what the outputs mean

`tokenizer.json` cuts, joins and pads as in training, so a client has three lines:

    tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
    rows = tokenizer.encode_batch(["a moving film", "dull"])
    batch = {"input_ids": [row.ids for row in rows], "segment_ids": [row.type_ids for row in rows],
             "input_mask": [row.attention_mask for row in rows]}
"""

import dataclasses
import importlib.util
import os
from pathlib import Path

import numpy as np

from official_bert.checkpoints.model_folder import size_of
from official_bert.common.errors import UserError, check_choice
from official_bert.common.files import atomic_folder, write_json
from official_bert.export import exports
from official_bert.tokenization.library.own_json import as_tokenizer_json
from official_bert.tokenization.library.tokenizer_json import padding
from official_bert.window_pooling import token_pooling_fields

_TOKENIZER = "tokenizer.json"
# Format -> {module that it needs: name for pip}.
NEEDS = {
    "onnx": {"onnx": "onnx", "onnxruntime": "onnxruntime"},
    "litert": {"tensorflow": "tensorflow", "ai_edge_litert": "ai-edge-litert"},
}
# Largest difference from the model folder's answers, as a share of the largest answer. int8 changes
# answers by hundredths; a larger change means that the model cannot be quantised so.
FARTHEST = {"float32": 1e-3, "int8": 0.25}


@dataclasses.dataclass(frozen=True)
class IdExport:
    """A file that was exported, and its differences from the model.

    Attributes:
      path: the model's file.
      differences: {output: (largest difference from the model folder's answers, largest answer)}.
      notes: remarks on what the files beside it cannot express.
    """

    path: Path
    differences: dict[str, tuple[float, float]]
    notes: list[str]


def export_ids(
    model_folder: str | os.PathLike,
    output: str | os.PathLike,
    format: str = "onnx",
    head: str | None = None,
    overwrite: bool = False,
    **settings,
) -> IdExport:
    """Write the folder `output`, and compare the file's answers with the model folder's.

    Args:
      model_folder, head, settings: as for `saved_model.export`.
      output: the folder to write.
      format: "onnx" or "litert".

    Raises:
      UserError: the model cannot be exported so, a package is missing, the folder exists, or the
        answers differ by more than the precision explains.
    """
    check_packages(format)
    loaded, source = exports.load(model_folder)
    head, settings = resolve_export(loaded, source, format, head, **settings)
    from official_bert.export.answers import Answers

    if format == "onnx":
        from official_bert.export.formats import onnx_file as file
    else:
        from official_bert.export.formats import litert_file as file
    answers = Answers(loaded, head, settings)
    with atomic_folder(output, overwrite, size_of(loaded.model)) as folder:
        file.write(folder / file.FILE, answers)
        differences = _compare(answers, file, folder / file.FILE)
        exports.write_tokenizer(folder, loaded.tokenizer, settings.labels)
        notes = write_tokenizer_json(folder, loaded.tokenizer, head, settings)
        more = {"format": format, "outputs": list(differences)}
        described = loaded, head, list(answers.inputs), settings
        exports.write_description(folder, "serving.json", *described, **more)
    return IdExport(Path(output) / file.FILE, differences, notes)


def check_packages(format: str) -> None:
    """Raise UserError where a format is unknown or needs what is not installed."""
    check_choice("format", format, NEEDS)
    packages = NEEDS[format].items()
    missing = [name for module, name in packages if importlib.util.find_spec(module) is None]
    if missing:
        raise UserError(
            f"{format} exports need {' and '.join(missing)}: pip install {' '.join(missing)}"
        )


def resolve_export(loaded, source: str, format: str, head: str | None = None, **settings):
    """Return (head, `ServingSettings`) of an export of token ids; see `exports.resolve_export`."""
    head, settings = exports.resolve_export(loaded, source, format, head, **settings)
    if head == "classification" and loaded.settings.get("windows"):
        raise UserError(
            f"{source} reads long texts in windows, which files of token ids do not: a SavedModel "
            "does, and its embedding needs none"
        )
    reads_it = head not in ("embedding", "features", "masked_words")
    pooled = [name for name in token_pooling_fields() if loaded.settings.get(name)]
    if format == "onnx" and reads_it and pooled:
        raise UserError(
            f"{source} classifies with {pooled[0].replace('_', ' ')}, which is not written as "
            "ONNX; litert and saved_model have it"
        )
    if format == "litert" and reads_it and loaded.settings.get("bilstm"):
        raise UserError(
            f"{source} has a BiLSTM, which LiteRT does not run on rows of any length; onnx and "
            "saved_model do"
        )
    return head, settings


def example(answers, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a batch of random tokens for `Answers`, in rows of different lengths."""
    length = min(answers.settings.max_seq_length, 48)
    lengths = np.array([length, max(length // 2, 3), 3, max(length // 3, 3)])
    mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    ids = rng.integers(0, len(answers.loaded.tokenizer.vocab), mask.shape, np.int32)
    segments = (np.arange(length) > length // 2).astype(np.int32)
    batch = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments * mask}
    if answers.head == "multiple_choice":
        batch = {name: array.reshape(2, 2, length) for name, array in batch.items()}
    if answers.head == "masked_words":
        batch["masked_lm_positions"] = np.array([[1, 0], [2, 1], [1, 1], [0, 2]], np.int32)
    return batch


def _compare(answers, file, path: Path) -> dict[str, tuple[float, float]]:
    from keras import ops

    batch = example(answers, np.random.default_rng(0))
    found, differences = file.run(path, batch), {}
    for name, expected in answers(batch).items():
        expected = ops.convert_to_numpy(expected)
        if found[name].shape != expected.shape:
            raise UserError(
                f"{path.name}: {name} has shape {found[name].shape}, not {expected.shape}"
            )
        if name == "token_ids":  # ids have no distance; their probabilities are compared
            continue
        differences[name] = far, most = (
            float(np.abs(found[name] - expected).max()),
            float(np.abs(expected).max()),
        )
        precision = answers.settings.precision
        if not far <= FARTHEST[precision] * most:
            raise UserError(
                f"{path.name}: {name} differs from the model folder's by up to {far:.2g}, where "
                f"the largest is {most:.2g}: more than {precision} explains; nothing was written"
            )
    return differences


def write_tokenizer_json(folder: Path, tokenizer, head: str, settings) -> list[str]:
    """Write `tokenizer.json` if the library has such a tokeniser; return remarks on it.

    Each remark is a sentence on what the file cannot express. Only lengths and truncation of
    `ServingSettings` count.
    """
    path = folder / _TOKENIZER
    if tokenizer.kind == "word_piece":
        contents = as_tokenizer_json(tokenizer)
    elif (contents := tokenizer.to_json()) is None:
        return [
            f"no {_TOKENIZER}: the library tokenizers does not compute this tokeniser, a "
            f"{type(tokenizer).__name__} of {tokenizer.file_name}"
        ]
    truncation, notes = _truncation(tokenizer, head, settings)
    contents = {**contents, "truncation": truncation, "padding": padding(tokenizer)}
    write_json(path, contents, indent=1, own=True)
    return notes


def _truncation(tokenizer, head, settings):
    if settings.truncation == "head+tail":
        return None, [
            f"{_TOKENIZER} does not cut: it cannot keep the beginning and the end of a text"
        ]
    cut = {
        "max_length": settings.max_seq_length,
        "direction": {"head": "Right", "tail": "Left"}[settings.truncation],
        "strategy": "LongestFirst",
        "stride": 0,
    }
    if head == "span":
        # The passage is read in windows; beside the longest question they begin as in training.
        room = settings.max_seq_length - settings.max_query_length - 2 - tokenizer.separators
        overlap = max(room - settings.doc_stride, 0)
        cut |= {"direction": "Right", "strategy": "OnlySecond", "stride": overlap}
    return cut, []
