"""The files of sentence-transformers beside an encoder: how the vectors of texts are made.

`modules.json` lists the modules in order: the Transformer, a pooling, dense layers, normalisation
to length 1. Each has a configuration in a folder of its own; the Transformer's says how texts are
cut.
"""

import contextlib
from pathlib import Path
from typing import Any

from official_bert.checkpoints.hugging_face.huggingface_tensors import open_tensors
from official_bert.checkpoints.integrity import check_finite, check_type
from official_bert.checkpoints.sentence_vectors import (
    ACTIVATIONS,
    NORMALIZE,
    POOLINGS,
    DenseStep,
    SentenceVectors,
    check_prompts,
)
from official_bert.common.errors import UserError
from official_bert.common.files import make_folder, write_json
from official_bert.common.json_files import field, read_json, shorten
from official_bert.common.paths import inside
from official_bert.config import BertConfig

FILE = "modules.json"
# The library's first folders name the Transformer after its family.
_TRANSFORMERS = (
    "Transformer",
    "BERT",
    "RoBERTa",
    "DistilBERT",
    "ALBERT",
    "CamemBERT",
    "XLMRoBERTa",
)
# In the order in which several are joined.
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def encoder_folder(folder: Path) -> Path:
    """Return the folder with the encoder's files: the folder itself, or its first module's."""
    if (folder / "config.json").is_file() or not (folder / FILE).is_file():
        return folder
    modules = _modules(folder)
    path = modules[0][1] if modules else ""
    return inside(folder, path, folder / FILE) if path else folder


def read(folder: Path, config: BertConfig, longest: int) -> tuple[SentenceVectors | None, int]:
    """Return how the folder's vectors are made, and the most tokens of a text.

    Return (None, 0) where it is not a folder of sentence-transformers. `refused` says what cannot
    be computed here.

    Args:
      longest: most tokens of a text, as the tokeniser's files say.
    """
    if not (folder / FILE).is_file():
        return None, 0
    try:
        lower, length = _lengths(encoder_folder(folder))
        length = min(length or longest, config.max_position_embeddings)
    except UserError as error:
        return SentenceVectors(refused=str(error)), 0
    try:
        return _vectors(folder, config, lower), length
    except UserError as error:
        return SentenceVectors(lower_case=lower, refused=str(error)), length


def write(folder: Path, vectors: SentenceVectors, width: int, longest: int) -> None:
    """Write the files that `read` reads, beside the encoder's.

    Args:
      folder: has the encoder's files.
      vectors: without dense layers, and not refused.
      width: of a token's vector.
      longest: most tokens of a text.
    """
    names = ["Transformer", "Pooling", *["Normalize"] * len(vectors.steps)]
    places = [f"{number}_{name}" if number else "" for number, name in enumerate(names)]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": place,
            "type": f"sentence_transformers.models.{name}",
        }
        for number, (name, place) in enumerate(zip(names, places, strict=True))
    ]
    flags: dict[str, Any] = {flag: mode in vectors.poolings for flag, mode in _FLAGS.items()}
    if tuple(mode for flag, mode in _FLAGS.items() if flags[flag]) != vectors.poolings:
        flags = {"pooling_mode": list(vectors.poolings)}  # flags would join them in another order
    pooling = {"word_embedding_dimension": width, **flags, "include_prompt": vectors.include_prompt}
    for place in places[1:]:
        make_folder(folder / place)
    write_json(folder / FILE, modules)
    write_json(folder / places[1] / "config.json", pooling)
    lengths = {"max_seq_length": longest, "do_lower_case": vectors.lower_case}
    write_json(folder / "sentence_bert_config.json", lengths)
    prompts = {"prompts": dict(vectors.prompts), "default_prompt_name": vectors.prompt or None}
    write_json(folder / "config_sentence_transformers.json", prompts)


def _vectors(folder: Path, config: BertConfig, lower: bool) -> SentenceVectors:
    (first, _), *others = _modules(folder) or [("nothing", "")]
    if first not in _TRANSFORMERS:
        raise _unknown(folder, first)
    fields: dict[str, Any] = {"lower_case": lower, **_prompts(folder)}
    steps: list[Any] = []
    width = 0
    for name, path in others:
        if name == "Pooling" and not steps and "poolings" not in fields:
            fields |= _pooling(inside(folder, path, folder / FILE) / "config.json", config)
            width = config.hidden_size * len(fields["poolings"])
        elif "poolings" not in fields or name not in ("Dense", "Normalize", "Dropout"):
            raise _unknown(folder, name)
        elif name == "Dense":
            steps.append(_dense(inside(folder, path, folder / FILE), width))
            width = steps[-1].kernel.shape[1]
        elif name == "Normalize":
            steps.append(NORMALIZE)
    if "poolings" not in fields:
        raise UserError(f"{folder / FILE}: no Pooling among its modules")
    return SentenceVectors(**fields, steps=tuple(steps))


def _modules(folder: Path) -> list[tuple[str, str]]:
    """Return [(class without its package, folder)] of all modules."""
    path, found = folder / FILE, []
    for module in read_json(path, list):
        if not isinstance(module, dict):
            raise UserError(f"{path}: {shorten(module)} is not a module")
        kind = field(module, "type", str, path)
        package, _, name = kind.rpartition(".")
        ours = f"{package}.".startswith("sentence_transformers.")
        found.append((name if ours else kind, field(module, "path", str, path)))
    return found


def _unknown(folder: Path, name: str) -> UserError:
    return UserError(
        f"{folder / FILE}: the module {name} is not computed here in this place; those that are: "
        "Transformer, then Pooling, then Dense, Normalize and Dropout"
    )


def _lengths(folder: Path) -> tuple[bool, int]:
    path = next(iter(sorted(folder.glob("sentence_*_config.json"))), None)
    fields = read_json(path) if path else {}
    task = fields.get("transformer_task", "feature-extraction")
    if task != "feature-extraction":
        raise UserError(f"{path}: transformer_task is {shorten(task)}, not feature-extraction")
    length = fields.get("max_seq_length")
    length = 0 if length is None else field(fields, "max_seq_length", int, path)
    if length < 0:
        raise UserError(f"{path}: max_seq_length is {length}")
    return bool(fields.get("do_lower_case")), length


def _prompts(folder: Path) -> dict[str, Any]:
    path = folder / "config_sentence_transformers.json"
    fields = read_json(path) if path.is_file() else {}
    prompts = field(fields, "prompts", dict, path) if fields.get("prompts") else {}
    default = fields.get("default_prompt_name") or ""
    check_prompts(prompts, default, path)
    return {"prompts": prompts, "prompt": default}


def _pooling(path: Path, config: BertConfig) -> dict[str, Any]:
    fields = read_json(path)
    modes = fields.get("pooling_mode")
    if modes is None:
        unknown = [n for n in fields if n.startswith("pooling_mode_") and n not in _FLAGS]
        if unknown := [name for name in unknown if fields[name]]:
            raise UserError(f"{path}: {', '.join(unknown)} is set, which is not computed here")
        modes = [mode for name, mode in _FLAGS.items() if fields.get(name)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes or not all(mode in POOLINGS for mode in modes):
        raise UserError(f"{path}: pooling_mode {shorten(modes)}; known are {', '.join(POOLINGS)}")
    width = fields.get("embedding_dimension", fields.get("word_embedding_dimension"))
    if width not in (None, config.hidden_size):
        raise UserError(
            f"{path}: for vectors of {shorten(width)}, here they have {config.hidden_size}"
        )
    return {"poolings": tuple(modes), "include_prompt": fields.get("include_prompt", True) is True}


def _dense(folder: Path, width: int) -> DenseStep:
    path = folder / "config.json"
    fields = read_json(path)
    for name in ("module_input_name", "module_output_name"):
        if fields.get(name) not in (None, "sentence_embedding"):
            raise UserError(
                f"{path}: {name} is {shorten(fields[name])}, not the sentence_embedding"
            )
    if fields.get("use_residual"):
        raise UserError(f"{path}: use_residual is set, which is not computed here")
    full = field(fields, "activation_function", str, path)
    name = full.rpartition(".")[2]
    if name not in ACTIVATIONS or not full.startswith("torch.nn."):
        raise UserError(f"{path}: activation_function {full}; known are {', '.join(ACTIVATIONS)}")
    with contextlib.ExitStack() as stack:
        shapes, read = open_tensors(folder, stack)
        outputs = shapes.get("linear.weight", (0,))[:1]
        wanted = {"linear.weight": (*outputs, width)}
        wanted |= {"linear.bias": outputs} if fields.get("bias", True) else {}
        if shapes != wanted:
            raise UserError(f"{folder}: its tensors are {shapes}, expected {wanted}")
        found = {tensor: read(tensor) for tensor in wanted}
    for tensor, array in found.items():
        check_type(array.dtype.name, f"tensor {tensor}", folder)
        found[tensor] = array.astype("float32")
        check_finite(found[tensor], f"tensor {tensor}", folder)
    kernel, *bias = found.values()
    return DenseStep(kernel.T.copy(), bias[0] if bias else None, ACTIVATIONS[name])
