"""The registry of systems beyond the paper: maps from names to "module:object".

Nothing in the core imports a system that is not BERT. Such a system is a folder of its own, and its
`Extension` says which names it adds. A name is looked up where a text holds it: a JSON file, an
option of a command, the `model_type` of another library's folder. Everything else is asked of the
object that was found. Extensions are listed in `experiments/beyond/__init__.py`, and other packages
add theirs by an entry point of the group "official_bert.extensions". Without either the core works
as it is.
"""

import dataclasses
import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError, check_choice, meant

MANIFEST, GROUP = "experiments.beyond", "official_bert.extensions"
Names = Mapping[str, str]
_NONE: Mapping[str, Any] = {}


@dataclasses.dataclass(frozen=True)
class Extension:
    """The names that a system adds; each map is {name: "module:object"}.

    Attributes:
      name: of the system.
      configs: a mark in a `bert_config.json` (a field, or a value of `attention_direction`) -> the
        subclass of `BertConfig`.
      sizes: name of a size -> its fields, a dictionary.
      objectives: name -> subclass of `objectives.protocol.Objective`.
      flops: name of an objective -> function of the FLOPs of its heads (`flops.objective_flops`).
      heads: name of a head, or a field that is true in its `model.json` -> an object whose
        `class_of(description)` returns the class of the head, or whose `load(folder, settings)`
        returns the whole `LoadedModel` where it is not a network of tokens.
      members: `model_type` of Hugging Face -> `checkpoints.member.Member`.
      tokenizers: kind -> subclass of `tokenization.Tokenizer`.
      graphs: kind of a tokeniser -> its twin inside a TensorFlow graph.
      learners: kind of a tokeniser -> function that learns its vocabulary from text.
      tasks: name -> subclass of `data_prep.tasks.task.Task`.
      options: "pretrain.", "finetune." or "export.", then a field on the command line (for the
        first two also in `config.json`) -> the dataclass that has it.
      starts: name, pattern of a file or type of a configuration -> kind of start of a training.
      cells: kind of cell of a table -> function that does its work.
      measures: name of a measure -> function of sums over examples that gives a metric.
      optimizers: an option that BERT's optimiser has not -> the optimiser that has it.
      schedules: name -> learning rate of a step.
      served: name of a head -> the model that is exported.
      verbs: name of a method of `predict.Model` -> function of the model.
      keras: name in a `.keras` file -> its class.
      commands: name -> module of a command, "module:main".
      recipes: name of a configuration -> "module:get_config".
      rows: name of a table -> function (table, scale) -> table with further rows.
    """

    name: str
    configs: Names = dataclasses.field(default_factory=dict)
    sizes: Names = dataclasses.field(default_factory=dict)
    objectives: Names = dataclasses.field(default_factory=dict)
    flops: Names = dataclasses.field(default_factory=dict)
    heads: Names = dataclasses.field(default_factory=dict)
    members: Names = dataclasses.field(default_factory=dict)
    tokenizers: Names = dataclasses.field(default_factory=dict)
    graphs: Names = dataclasses.field(default_factory=dict)
    learners: Names = dataclasses.field(default_factory=dict)
    tasks: Names = dataclasses.field(default_factory=dict)
    options: Names = dataclasses.field(default_factory=dict)
    starts: Names = dataclasses.field(default_factory=dict)
    cells: Names = dataclasses.field(default_factory=dict)
    measures: Names = dataclasses.field(default_factory=dict)
    optimizers: Names = dataclasses.field(default_factory=dict)
    schedules: Names = dataclasses.field(default_factory=dict)
    served: Names = dataclasses.field(default_factory=dict)
    verbs: Names = dataclasses.field(default_factory=dict)
    keras: Names = dataclasses.field(default_factory=dict)
    commands: Names = dataclasses.field(default_factory=dict)
    recipes: Names = dataclasses.field(default_factory=dict)
    rows: Names = dataclasses.field(default_factory=dict)


@functools.cache
def extensions() -> tuple[Extension, ...]:
    """Return the extensions of this project and of other packages, in the order of their lists.

    Raises:
      UserError: two extensions give the same name.
    """
    import importlib.metadata  # half as slow as all else that `import official_bert` does

    found = list(_manifest())
    points = importlib.metadata.entry_points(group=GROUP)
    found += [point.load() for point in sorted(points, key=lambda point: point.name)]
    for kind in KINDS:
        givers: dict[str, str] = {}
        for one in found:
            for name in getattr(one, kind):
                if name in givers:
                    raise UserError(f"{kind}: {name} is of {givers[name]} and of {one.name}")
                givers[name] = one.name
    return tuple(found)


def object_paths(kind: str) -> dict[str, str]:
    """Return {name: "module:object"} of a kind, a field of `Extension`; imports none of them."""
    return {name: at for one in extensions() for name, at in getattr(one, kind).items()}


def names(kind: str) -> list[str]:
    """Return the names of a kind; imports none of what they name."""
    return list(object_paths(kind))


def find(kind: str, name: str, own: Mapping[str, Any] = _NONE, source: str = "") -> Any:
    """Return the object that a name stands for.

    Args:
      kind: a field of `Extension`.
      name: looked up among the core's names first.
      own: the core's {name: object, or "module:object"}.
      source: where the name stood; begins the message.

    Raises:
      UserError: nobody gives that name; the message lists all and the nearest.
    """
    check_name(kind, name, own, source)
    at = own[name] if name in own else object_paths(kind)[name]
    return load(at) if isinstance(at, str) else at


def check_name(kind: str, name: str, own: Iterable[str] = (), source: str = "") -> None:
    """Check a name as `find` does, without importing what it stands for.

    Raises:
      UserError: as `find`.
    """
    known = [*own, *names(kind)]
    if name not in known:
        near = meant(str(name), known) + _hidden()
        try:
            check_choice(kind.removesuffix("s"), name, known, source)
        except UserError as error:
            raise UserError(f"{error}{near}") from None


def load_all(kind: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, object) of all extensions.

    This imports them, so it is only for places where no text names one.
    """
    yield from ((name, load(place)) for name, place in object_paths(kind).items())


def load(place: str) -> Any:
    """Return the object at "module:object"."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


KINDS = tuple(field.name for field in dataclasses.fields(Extension))[1:]


def _manifest() -> tuple[Extension, ...]:
    try:
        return importlib.import_module(MANIFEST).extensions()
    except ModuleNotFoundError as error:
        if error.name not in (MANIFEST, MANIFEST.partition(".")[0]):
            raise
        return ()


def _hidden() -> str:
    """Return a remark where another folder `experiments` hides the one beside this package."""
    try:
        seen = [Path(at).resolve() for at in importlib.import_module("experiments").__path__]
    except (ImportError, AttributeError):
        return ""
    own = Path(__file__).resolve().parents[1] / "experiments"
    if own in seen or not own.is_dir():
        return ""
    return f"; {seen[0] if seen else 'another folder'} hides {own}, whose systems are missing"
