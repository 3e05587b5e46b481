"""Files of a split, and rows of it, for folders and single files of the user."""

import os
from collections.abc import Callable, Iterator

from data_prep.tasks.reading import check_texts, is_held_out
from data_prep.tasks.task import MissingFile, find_file
from official_bert.common.errors import UserError


class SplitFiles:
    """Train, dev and test files in a folder, or one file with a part held out as dev."""

    def __init__(self, data_dir: str, files: dict[str, str], dev_fraction: float, endings):
        """
        Args:
          data_dir: a folder, or one file, which is then the training file.
          files: {split: name in `data_dir`}, "" for the usual names.
          dev_fraction: where there is no dev file, dev is this part of the training file.
          endings: of the usual names, as (".tsv", ".csv"); each may have .gz behind it.
        """
        if not 0 <= dev_fraction < 1:
            raise UserError(f"dev_fraction={dev_fraction}; it is at least 0 and below 1")
        self.data_dir, self.files, self.dev_fraction = data_dir, files, dev_fraction
        self._endings = [ending + gz for ending in endings for gz in ("", ".gz")]

    def source(self, split: str) -> tuple[str, bool | None]:
        """The file of a split, and whether its held-out rows are wanted (None: all rows)."""
        if split in ("train", "dev") and self.dev_fraction and not self._has_dev_file():
            return self._path("train"), split == "dev"
        return self._path(split), None

    def rows(self, split: str, look: Callable) -> Iterator[tuple[int, dict, str]]:
        """(index, row, what errors call it) of the rows that belong to a split.

        Rows of one first text stay on one side.

        Args:
          look: makes the `look.Table` of a path.

        Raises:
          UserError: a wanted column of a row is no text, or no row is left for the split.
        """
        path, part = self.source(split)
        table, left = look(path), False
        for index, (line, row) in enumerate(table.rows()):
            where = table.where(line)
            check_texts(row, table.found, where)
            if part is None or is_held_out(row[table.found[0]], self.dev_fraction) == part:
                left = True
                yield index, row, where
        if not left:
            raise UserError(f"{path}: no row is left for {split}; change dev_fraction")

    def _has_dev_file(self) -> bool:
        # Below a single file there is none.
        paths = (os.path.join(self.data_dir, name) for name in self._usual_names("dev"))
        return bool(self.files["dev"]) or any(map(os.path.isfile, paths))

    def _path(self, split: str) -> str:
        other_way = " or dev_fraction (0.1, a tenth of its rows)" if split == "dev" else ""
        names = self._usual_names(split)
        return split_file(self.data_dir, self.files[split], names, split, other_way)

    def _usual_names(self, split: str) -> list[str]:
        names = ["dev", "validation", "val"] if split == "dev" else [split]
        return [name + ending for name in names for ending in self._endings]


def split_file(data_dir: str, named: str, usual_names, split: str, other_way: str = "") -> str:
    """The file of a split.

    Args:
      data_dir: a folder, or one file, which is then the training file.
      named: the name that the user gave, "" for the first of `usual_names` that is there.
      other_way: what would serve besides naming it, for the message.

    Raises:
      MissingFile: there is none.
    """
    is_file = os.path.isfile(data_dir)
    if named:
        return find_file(os.path.dirname(data_dir) if is_file else data_dir, [named], split)
    if is_file and split != "train":
        raise MissingFile(f"{data_dir} is one file, the training file; set {split}_file{other_way}")
    return data_dir if is_file else find_file(data_dir, usual_names, split)
