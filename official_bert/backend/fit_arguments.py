"""Checks of the arguments of `fit`, `evaluate` and `predict`, before Keras builds graphs.

Inside a compiled step a wrong label is an index error of some operation, or no error at all.
"""

from collections.abc import Mapping

import numpy as np

from official_bert.common.errors import UserError

_BRINGS_ITS_OWN = (
    "{name} brings its own loss and metrics, so compile(optimizer) is all; for others, put a layer "
    "on BertEncoder in a model of your own (docs/library.md shows how)"
)


def check(model, x, y) -> None:
    """Raise UserError where arrays or lists are not inputs and labels of a `ModelWithLosses`;
    datasets and generators pass unseen."""
    check_inputs(x)
    if model.compiled:
        own = model.get_compile_config() or {}
        if any(own.get(name) for name in ("loss", "metrics", "weighted_metrics", "loss_weights")):
            raise UserError(_BRINGS_ITS_OWN.format(name=type(model).__name__))
    named = y if isinstance(y, Mapping) else dict.fromkeys(model.label_names[:1], y)
    for name, values in named.items():
        if isinstance(values, np.ndarray | list | tuple):
            if _holds_texts(values):
                raise UserError(
                    f"{name} are texts; give numbers, such as labels.index(text) for each"
                )
            model.check_labels(name, _array(name, values))


def check_inputs(x) -> None:
    """Raise UserError where arrays or lists hold texts, or where a mask cannot be one."""
    for value in x.values() if isinstance(x, Mapping) else [x]:
        if _holds_texts(value):
            raise UserError(
                "x holds texts; a model reads what its tokenizer makes of them: "
                "fit(loaded.tokenizer(texts, max_length=128, truncation='head'), labels)"
            )
    if not isinstance(x, Mapping) or not isinstance(x.get("input_mask"), np.ndarray | list):
        return
    mask = _array("input_mask", x["input_mask"])
    if not ((mask == 0) | (mask == 1)).all():
        raise UserError(f"input_mask must be 0 or 1, but has {mask.min()} to {mask.max()}")
    # Windows, choices and rows of weight 0 may be empty: they fill the batch.
    if mask.ndim == 2 and "example_weights" not in x and not mask.any(axis=1).all():
        row = int(np.flatnonzero(~mask.any(axis=1))[0])
        raise UserError(f"input_mask: row {row} has no token; there is nothing to answer")


def check_classes(name: str, labels: np.ndarray, rank: int, classes: int, least: int = 0) -> None:
    """Raise UserError unless `labels` are whole numbers from `least` to `classes` - 1."""
    if labels.ndim != rank or labels.dtype.kind not in "iub":
        shape = "[rows]" if rank == 1 else "[rows, tokens]"
        raise UserError(
            f"{name} have the shape {labels.shape} and type {labels.dtype}, expected whole numbers "
            f"{shape}; np.argmax(y, axis=-1) makes them of one-hot rows"
        )
    if labels.size and not least <= labels.min() <= labels.max() < classes:
        raise UserError(
            f"{name} go from {labels.min()} to {labels.max()}, but the model has {classes} classes "
            f"(0 to {classes - 1})"
        )


def _array(name: str, values) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        raise UserError(f"{name}: rows of different lengths; pad them to one length") from None


def _holds_texts(value) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "US" or (
            value.dtype == object and isinstance(next(iter(value.flat), None), str)
        )
    return isinstance(value, list | tuple) and any(isinstance(part, str) for part in value[:1])
