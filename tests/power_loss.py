"""Cuts a program off at every point, as a kill or a loss of power would, and keeps what is left.

Python's calls that change names (rename, mkdir, unlink, ...) or wait for the disk (fsync) are
recorded. Before each of them, and at the end, the folder may be found in one of four states:

1. as it is: the process was killed;
2. with what was written since the last call half there: it was killed within a write;
3. with nothing but what had been synced, names and contents: the power failed;
4. with all names but only the contents that had been synced: the power failed after the file
   system had written its journal.
"""

import contextlib
import os
import shutil
from pathlib import Path

from official_bert.common import system

_CALLS = ("fsync", "link", "replace", "rename", "mkdir", "rmdir", "unlink", "remove")


class Recorder:
    """Records what happens to a folder.

    Attributes:
      points: how many calls were recorded.
      states: the different states in which the folder could have been left; each a frozenset of
        (path, bytes), (path, None) for folders.
      on_disk: what was synced at the end, by path.
    """

    def __init__(self, root: Path):
        self.root = root
        self.points = 0
        self.states: dict[frozenset, str] = {}
        self.on_disk: dict[str, bytes | None] = {}
        self._held: dict[int, int] = {}  # open files: the number of a removed one is not used again
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._last: dict[int, bytes | None] = {}
        for path in [root, *root.rglob("*")]:
            self._synced(path)
            self._last[self._number(path)] = None if path.is_dir() else path.read_bytes()

    @contextlib.contextmanager
    def recording(self, monkeypatch):
        with monkeypatch.context() as patch:
            for name in _CALLS:
                patch.setattr(os, name, self._recorded(name, getattr(os, name)))
            patch.setattr(system, "_rename", self._recorded("renameat2", system._rename))
            yield self
        self._cut("the end")
        self.on_disk = dict(self._on_disk(self._number(self.root), ""))
        for handle in self._held.values():
            os.close(handle)

    def restore(self, state: frozenset) -> None:
        """Make the folder what it would have been found to be."""
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, content in sorted(state, key=lambda item: item[0]):
            path = self.root / name
            path.mkdir(parents=True) if content is None else path.write_bytes(content)

    def _recorded(self, name, call):
        def recorded(*args, **options):
            self._cut(f"before call {self.points}, {name}")
            self.points += 1
            result = call(*args, **options)
            if name == "fsync":
                self._synced(Path(os.readlink(f"/proc/self/fd/{args[0]}")))
            return result

        return recorded

    def _number(self, path: Path) -> int:
        number = path.stat().st_ino
        if number not in self._held:
            self._held[number] = os.open(path, os.O_RDONLY)
        return number

    def _synced(self, path: Path) -> None:
        if path.is_dir():
            self._names[self._number(path)] = {p.name: self._number(p) for p in path.iterdir()}
        elif path.exists():
            self._contents[self._number(path)] = path.read_bytes()

    def _cut(self, where: str) -> None:
        paths = sorted(self.root.rglob("*"))
        names = {str(path.relative_to(self.root)): path for path in paths}
        now = {n: None if p.is_dir() else p.read_bytes() for n, p in names.items()}
        written = {name: self._number(path) for name, path in names.items()}
        torn = {name: self._torn(written[name], content) for name, content in now.items()}
        unsynced = {n: None if p.is_dir() else self._contents.get(self._number(p), b"")
                    for n, p in names.items()}  # fmt: skip
        for state in (now, torn, dict(self._on_disk(self._number(self.root), "")), unsynced):
            self.states.setdefault(frozenset(state.items()), where)
        self._last = {written[name]: content for name, content in now.items()}

    def _torn(self, number: int, content: bytes | None) -> bytes | None:
        """Half of what was written since the last call; what was there before an end was added
        stays."""
        last = self._last.get(number)
        if content is None or content == last:
            return content
        kept = len(last) if last and content.startswith(last) else 0
        return content[: kept + (len(content) - kept) // 2]

    def _on_disk(self, folder: int, above: str):
        for name, number in self._names.get(folder, {}).items():
            is_folder = Path(f"/proc/self/fd/{self._held[number]}").is_dir()
            yield f"{above}{name}", None if is_folder else self._contents.get(number, b"")
            if is_folder:
                yield from self._on_disk(number, f"{above}{name}/")
