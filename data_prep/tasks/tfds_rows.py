"""Rows of the benchmarks that TFDS has, for tasks whose `data_dir` is empty."""

from data_prep.tasks.task import MissingFile
from official_bert.common.errors import UserError


def read(name: str, split: str, tfds_dir: str, files: str):
    """A split of a TFDS dataset, downloaded and prepared where it is not yet.

    Args:
      name: of dataset and configuration, such as "glue/rte".
      split: as TFDS calls it; "dev" is also found where TFDS calls it "validation".
      tfds_dir: TFDS's own data folder, "" for its default.
      files: what `data_dir` may be set to instead, for the messages.

    Returns:
      rows: iterable of {feature: NumPy value}, in TFDS's order, which is that of a hash.
      features: TFDS's description of them, which has the names of classes.

    Raises:
      UserError: TFDS is not installed, or cannot get the data.
      MissingFile: it has no such split.
    """
    try:
        import tensorflow_datasets as tfds

        builder = tfds.builder(name, data_dir=tfds_dir or None)
        builder.download_and_prepare()
    except Exception as error:  # the network's errors are of many kinds
        reason = (str(error).splitlines() or [""])[0]
        raise UserError(
            f"TFDS could not prepare {name} ({type(error).__name__}: {reason}); "
            f"set data_dir to {files}"
        ) from error
    if split == "dev" and split not in builder.info.splits:
        split = "validation"
    if split not in builder.info.splits:
        raise MissingFile(
            f"TFDS has no split {split} of {name}, only {', '.join(builder.info.splits)}; "
            f"set data_dir to {files}"
        )
    return tfds.as_numpy(builder.as_dataset(split)), builder.info.features
