"""Splits: a folder's files or a user's, rows of TFDS, and dev splits held out of training files.

Rows of equal first texts are held out together; `text_groups` does so for texts that share words.
"""

import collections
import os
from collections.abc import Callable, Iterator

from data_prep.tasks.files import formats
from data_prep.tasks.files.reading import check_texts, is_held_out, text_hash
from data_prep.tasks.files.table import Table
from data_prep.tasks.task import FileTask, MissingFile, find_file
from official_bert.common.errors import UserError, first_line


class HoldingOut(FileTask):
    """A task that holds out a part of the training file as dev where there is no dev file."""

    unit = "rows"

    def __init__(self, data_dir: str = "", *, dev_fraction: float = 0.0, **options):
        """
        Args:
          dev_fraction: where there is no dev file, hold out this part of the training file. Rows of
            a table with the same first text stay together, and so do the sentences of a document
            (of a file that is one document, single sentences) and the questions of a paragraph.
        """
        super().__init__(data_dir, **options)
        if not 0 <= dev_fraction < 1:
            raise UserError(f"dev_fraction={dev_fraction}; it is at least 0 and below 1")
        self.dev_fraction = dev_fraction

    @property
    def holds_out(self) -> bool:
        """Return whether dev is a part of the training file."""
        return bool(self.dev_fraction) and not self.reads_tfds and not self._has_dev_file()

    def file_of(self, split: str) -> str:
        """Return the split whose file holds the examples of a split."""
        return "train" if split == "dev" and self.holds_out else split

    def _has_dev_file(self) -> bool:
        # If data_dir is a single file, no path below it exists.
        paths = (os.path.join(self.data_dir, name) for name in self._usual_names("dev"))
        return bool(self.files["dev"]) or any(map(os.path.isfile, paths))

    def _path(self, split: str, named: str | None = None) -> str:
        """Return the file of a split, whose name the user may have given."""
        other_way = f" or dev_fraction (0.1, a tenth of its {self.unit})" if split == "dev" else ""
        named = self.files[split] if named is None else named
        return split_file(self.data_dir, named, self._usual_names(split), split, other_way)

    def _usual_names(self, split: str) -> list[str]:
        """Return the names of a split's file that are tried if none is given."""
        raise NotImplementedError

    def _part(self, split: str, units: list, keys: list[str], path: str) -> list:
        """Return the units of the training file that belong to a split, and print their number.

        Args:
          keys: key of each unit; units with equal keys stay together.

        Raises:
          UserError: all units have the same key.
        """
        if split == "test" or not self.holds_out:
            return units
        held_out = _held_out(keys, self.dev_fraction)
        if not held_out:
            raise UserError(
                f"{path}: its {self.unit} ({len(units):,}) cannot be divided into train and dev: "
                "they are of one text, which stays together; set --task_options.dev_file="
            )
        is_dev = split == "dev"
        part = [x for x, key in zip(units, keys, strict=True) if (key in held_out) == is_dev]
        where = "held out as dev" if is_dev else "left to train on"
        formats.announce(f"{path}: {len(part):,} of {len(units):,} {self.unit} {where}")
        return part


def _held_out(keys: list[str], fraction: float) -> set[str]:
    """Return the keys whose units are held out: that share of all units, or a little less.

    Hashes of the keys decide. At least one key is held out and one is not; a single key is not.
    """
    sizes = collections.Counter(keys)
    order = sorted(sizes, key=text_hash)
    room = min(max(1, round(fraction * len(keys))), len(keys) - 1)
    held_out = set()
    for key in order:
        if sizes[key] <= room:
            held_out.add(key)
            room -= sizes[key]
    if not held_out and len(order) > 1:
        held_out.add(min(order, key=sizes.get))
    return held_out


class SplitTask(HoldingOut):
    """A task on tables: train, dev and test files, or one file with a part held out as dev.

    Attributes:
      needed: further columns that train and dev must have.
      optional: columns that are read if they exist.
      endings: endings of the usual file names; .gz may follow.
    """

    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    endings = (".tsv", ".csv", ".jsonl", ".json", ".parquet")

    def __init__(self, data_dir: str = "", **options):
        """
        Args:
          data_dir: folder of train, dev and test files (.tsv, .csv, .jsonl, .json, .parquet, also
            .gz), or one file, which is then the training file.
        """
        super().__init__(data_dir, **options)
        self._held_out_texts: dict[tuple[str, str], set[str]] = {}

    def table(self, split: str) -> Table:
        """Find the format and columns of a split's file."""
        also = {"also": self.needed, "optional": self.optional}
        if split == "test":
            also = {"optional": (*self.needed, *self.optional)}
        path, _ = self.source(split)
        return formats.detect_format(path, self.wanted, **also, names=self.header, hint=self.hint)

    def source(self, split: str) -> tuple[str, bool | None]:
        """Return a split's file, and whether its held-out rows are wanted (None: all rows)."""
        if split in ("train", "dev") and self.holds_out:
            return self._path("train"), split == "dev"
        return self._path(split), None

    def rows(
        self, split: str, table: Table, class_column: str = ""
    ) -> Iterator[tuple[int, dict, str]]:
        """Yield (index, row, its name in errors) of the rows that belong to a split.

        Rows with the same first text stay on one side.

        Args:
          table: the split's.
          class_column: the share of each class in this column is held out; "": of all rows.

        Raises:
          UserError: a wanted column of a row is not text, or no row is left for the split.
        """
        path, part = self.source(split)
        left = False
        is_dev = self._is_dev(path, table, class_column if part is not None else "")
        for index, row, where in _checked(table):
            if part is None or is_dev(row[table.found[0]]) == part:
                left = True
                yield index, row, where
        if not left:
            raise UserError(f"{path}: no row is left for {split}; change dev_fraction")

    def _is_dev(self, path: str, table, class_column: str) -> Callable[[str], bool]:
        """Return a function that tells by a row's first text whether the row is held out."""
        if not class_column or class_column not in table.columns:  # "" may be a column
            return lambda text: is_held_out(text, self.dev_fraction)
        key = path, class_column
        if key not in self._held_out_texts:  # for both splits, so it is read once
            self._held_out_texts[key] = self._of_each_class(table, class_column)
        return self._held_out_texts[key].__contains__

    def _of_each_class(self, table, class_column: str) -> set[str]:
        """Return the first texts that are held out, a share of each class."""
        classes: dict[str, str] = {}
        for _, row, _ in _checked(table):
            classes.setdefault(row[table.found[0]], str(row.get(class_column)))
        texts_of = collections.defaultdict(list)
        for text in sorted(classes, key=text_hash):
            texts_of[classes[text]].append(text)
        held_out: set[str] = set()
        for texts in texts_of.values():
            share = max(1, round(self.dev_fraction * len(texts)))
            held_out.update(texts[: min(share, len(texts) - 1)])
        return held_out

    def _usual_names(self, split: str) -> list[str]:
        names = ["dev", "validation", "val"] if split == "dev" else [split]
        return [f"{name}{end}{gz}" for name in names for end in self.endings for gz in ("", ".gz")]


def split_file(data_dir: str, named: str, usual_names, split: str, other_way: str = "") -> str:
    """Return the file of a split.

    Args:
      data_dir: a folder, or one file, which is then the training file.
      named: the name that the user gave; "": the first of `usual_names` that exists.
      other_way: another remedy beside naming it, for the message.

    Raises:
      MissingFile: there is none.
    """
    is_file = os.path.isfile(data_dir)
    if named:
        return find_file(os.path.dirname(data_dir) if is_file else data_dir, [named], split)
    if is_file and split != "train":
        raise MissingFile(f"{data_dir} is one file, the training file; set {split}_file{other_way}")
    return data_dir if is_file else find_file(data_dir, usual_names, split)


def read_tfds(name: str, split: str, tfds_dir: str, files: str):
    """Return a split of a TFDS dataset, downloaded and prepared if it is not yet.

    Args:
      name: name of dataset and configuration, such as "glue/rte".
      split: TFDS's name of it; "dev" also finds "validation".
      tfds_dir: TFDS's own data folder, "" for its default.
      files: description of an alternative for `data_dir`, for the messages.

    Returns:
      rows: iterable of {feature: NumPy value}, in TFDS's order, which a hash decides.
      features: TFDS's description of the features, with the names of classes.

    Raises:
      UserError: TFDS is not installed, or cannot get the data.
      MissingFile: it has no such split.
    """
    try:
        import tensorflow_datasets as tfds

        builder = tfds.builder(name, data_dir=tfds_dir or None)
        builder.download_and_prepare()
    except Exception as error:  # network errors have many types
        raise UserError(
            f"TFDS could not prepare {name} ({type(error).__name__}: {first_line(error)}); "
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


def _checked(table) -> Iterator[tuple[int, dict, str]]:
    for index, (line, row) in enumerate(table.rows()):
        where = table.where(line)
        check_texts(row, table.found, where)
        yield index, row, where
