"""The result of a check, and the registry of checks."""

import dataclasses
import importlib.util
import os
from collections.abc import Callable, Iterator


@dataclasses.dataclass(frozen=True)
class Result:
    """One line of the parity table.

    Attributes:
      what: what was compared, with sizes.
      against: the independent implementation.
      figure: the measured difference, or another figure (see `at_least`).
      bound: what the figure may reach.
      at_least: True where the bound is a lower one (a similarity, an accuracy).
    """

    what: str
    against: str
    figure: float
    bound: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        # Written so that NaN does not hold.
        return self.figure >= self.bound if self.at_least else self.figure <= self.bound


Results = Iterator[Result]


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    run: Callable[..., Results]
    packages: tuple[str, ...]
    needs_data: bool
    slow: bool


CHECKS: dict[str, Check] = {}
_SLOW = os.environ.get("BERT_SLOW") == "1"


def check(*packages: str, needs_data: bool = False, slow: bool = False):
    """Register a function that yields `Result`s.

    Args:
      *packages: what must be installed.
      needs_data: the function takes the folder of the real data.
      slow: it takes minutes, and runs only where BERT_SLOW=1 is set.
    """

    def register(function):
        name = function.__name__
        CHECKS[name] = Check(name, function, packages, needs_data, slow)
        return function

    return register


def some(few, every):
    """Return `every` with BERT_SLOW=1, else `few`: the number of cases that a check tries."""
    return every if _SLOW else few


def why_not(one: Check, data_dir) -> str:
    """Why a check cannot run here; empty if it can."""
    if one.slow and not _SLOW:
        return "takes minutes: set BERT_SLOW=1"
    for package in one.packages:
        if importlib.util.find_spec(package) is None:
            return f"needs the package {package} (extra `peers`)"
    if one.needs_data and data_dir is None:
        return "needs real data: set BERT_DATA_DIR to its folder"
    return ""
