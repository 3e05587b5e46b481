"""Options that systems beyond the paper add to a configuration, and their part in a run.

An extension lists each as "pretrain.NAME" or "finetune.NAME" among its `options`. On the command
line, in `config.json` and in the keys of cells their fields stand beside the configuration's own;
in Python they are objects in `model_options`.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

from official_bert.common.errors import UserError, meant
from official_bert.extension import find, names


def bookkeeping(default):
    """Return a field that changes how a run is watched or stored, never its result."""
    return dataclasses.field(default=default, metadata={"bookkeeping": True})


def path_field(kind="folder"):
    """Return a field that names a file or folder: its content counts, not its path (`inputs`)."""
    return dataclasses.field(default="", metadata={"path": kind})


class RunHooks:
    """The part of an option in one run; by default it does nothing.

    Attributes:
      key: hashable; all of it that decides the compiled step.
    """

    key: Any = None

    def objectives(self, objectives):
        """Return the objectives of a pre-training, which it may change."""
        return objectives

    def begin(self, model) -> None:
        """Change the first weights of a `BertPretrainer`."""

    def wrap(self, model, start, config, head, seed):
        """Return the model to fine-tune, to which it may add a loss or, in place, weights.

        Args:
          model: of `official_bert.heads`.
          start: its InitialState.
          config: FinetuneConfig.
          head: `Task.head` with the fields of `Options.head`.
          seed: of new weights.
        """
        return model

    def kept(self, model):
        """Return the fine-tuned model that is saved; `model`: what `ModelWithLosses.kept` gives."""
        return model

    def pretraining_results(self, batches) -> dict:
        """Return further results of a pre-training; `batches`: its
        `pretrain_batches.PretrainingBatches`."""
        return {}

    def finetuning_results(self, state, config) -> dict:
        """Return further results of a fine-tuning; `state`: the `loop.TrainingState` at its end."""
        return {}


@dataclasses.dataclass(frozen=True)
class Options(RunHooks):
    """Options of one system: a subclass is a frozen dataclass whose fields are the options.

    The fields have the metadata of `config`.

    Attributes:
      of_a_start: whether it is only for the kinds of start that name its class in `takes`.
      adds_loss: whether the `wrap` of its `prepare` adds a loss; a run may have one such option.
    """

    of_a_start: ClassVar[bool] = False
    adds_loss: ClassVar[bool] = False

    @classmethod
    def of(cls, config):
        """Return the options of this class in a configuration; the defaults where it sets none."""
        return next((one for one in config.model_options if type(one) is cls), cls())

    @property
    def key(self):
        return self

    def check_pretraining(self, config, bert, tokenizer) -> None:
        """Raise UserError where a PretrainConfig or its model does not fit.

        Args:
          bert, tokenizer: of the model; None where they are not known yet.
        """

    def check_finetuning(self, config, task, tokenizer) -> None:
        """Raise UserError where a FinetuneConfig, its task or tokeniser does not fit."""

    def check_model(self, config, task, bert) -> None:
        """Raise UserError where task or model (None where it is not known) do not fit."""

    def head(self) -> dict[str, Any]:
        """Return the fields that it changes in the description of a head."""
        return {}

    def step(self, steps_per_epoch: float) -> dict[str, Any]:
        """Return the fields that it changes in the `StepOptions` of a fine-tuning."""
        return {}

    def weights(self, arrays: list, encoder, start) -> list:
        """Return the arrays that a new encoder begins with.

        Args:
          arrays: of the InitialState `start`.
          encoder: with random weights.
        """
        return arrays

    def planned(self, config, model_of: Callable) -> tuple["Options", Callable | None]:
        """Return the options of a table's pre-training cell, and the work beside its model.

        Args:
          config: PretrainConfig of the cell.
          model_of: function of a field and its value that returns (folder, BertConfig) of the model
            that it names; "@NAME" is the table's own variant NAME with the same seed.

        Returns: (options with the folders, function of a step's (rows, length, masked) that gives
          its FLOPs beside those of the model, or None).
        """
        return self, None

    def prepare(self, config, start, head) -> RunHooks:
        """Return its `RunHooks` in a run that begins.

        Args:
          config: PretrainConfig or FinetuneConfig.
          start: its InitialState.
          head: `Task.head` of a fine-tuning, None in a pre-training.
        """
        return self


def changes(config) -> dict[str, Any]:
    """Return {field: value} of a dataclass's fields that differ from their defaults."""
    default = type(config)()
    return {n: v for n, v in vars(config).items() if v != getattr(default, n)}


def run_hooks(config, start, head=None) -> list[RunHooks]:
    """Return the parts of a configuration's options in a run; arguments as for `prepare`."""
    return [one.prepare(config, start, head) for one in config.model_options]


def names_for(kind) -> list[str]:
    """Return the names of the options for a class of configurations, without importing any."""
    start = f"{getattr(kind, 'training', '-')}."
    return [name.removeprefix(start) for name in names("options") if name.startswith(start)]


def class_of(kind, name: str) -> type[Options]:
    """Return the class that has an option (one of `names_for`) of a class of configurations."""
    return find("options", f"{kind.training}.{name}")


def by_class(kind, values: dict) -> dict[type[Options], dict]:
    """Return {class of options: its values} of those `values` that are options of a `kind`."""
    found: dict[type[Options], dict] = {}
    for name in values.keys() & {*names_for(kind)}:
        found.setdefault(class_of(kind, name), {})[name] = values[name]
    return found


def classes_for(kind) -> list[type[Options]]:
    """Return the classes of all options for a class of configurations, each once."""
    return list(dict.fromkeys(class_of(kind, name) for name in names_for(kind)))


def flat(config) -> dict[str, tuple[dataclasses.Field, Any]]:
    """Return {name: (field, value)} of a configuration, its options among its own fields."""
    parts = (config, *getattr(config, "model_options", ()))
    fields = ((part, field) for part in parts for field in dataclasses.fields(part))
    return {f.name: (f, getattr(p, f.name)) for p, f in fields if f.name != "model_options"}


def value_of(config, name: str):
    """Return the value of a field or option of a configuration; an unset option has its default."""
    known = flat(config)
    return known[name][1] if name in known else getattr(class_of(type(config), name)(), name)


def replaced(config, **changed):
    """Return a configuration with fields or options replaced, by their names.

    It is `dataclasses.replace` for both.

    Raises:
      UserError: there is no such field.
    """
    own, options = {field.name for field in dataclasses.fields(config)}, {*names_for(type(config))}
    if unknown := changed.keys() - own - options:
        raise UserError(f"configuration: {unknown_field(type(config), min(unknown))}")
    found = {type(one): one for one in getattr(config, "model_options", ())}
    fields = {name: value for name, value in changed.items() if name in own}
    grouped = by_class(type(config), {n: x for n, x in changed.items() if n not in own})
    for kind, values in grouped.items():
        found[kind] = dataclasses.replace(found.get(kind, kind()), **values)
    if grouped:
        fields["model_options"] = tuple(found.values())
    return dataclasses.replace(config, **fields)


def unknown_field(kind, name: str) -> str:
    """Return the message about a field that a class of configurations lacks."""
    own = [field.name for field in dataclasses.fields(kind) if field.name != "model_options"]
    valid = [*own, *names_for(kind)]
    return f'unknown field "{name}"{meant(name, valid)}; valid fields: {", ".join(valid)}'


def check_positive(config, *names) -> None:
    """Raise UserError where one of the fields is not above 0."""
    for name in names:
        if not getattr(config, name) > 0:
            raise UserError(f"configuration: {name} is {getattr(config, name)}; it must be > 0")


def check_numbers(config) -> None:
    """Raise UserError where a number is infinite, or below 0 and below its default (-1)."""
    for field in dataclasses.fields(config):
        value, default = getattr(config, field.name), field.default
        is_number = isinstance(value, (int, float)) and isinstance(default, (int, float))
        if is_number and not min(0, default) <= value < math.inf:
            what = f"configuration: {field.name} is {value}"
            raise UserError(f"{what}; it must not be negative or infinite")


def check_share(config, name: str, what: str) -> None:
    """Raise UserError where a field is not between 0 and 1; `what`: the reason, for the message."""
    if not 0 <= getattr(config, name) <= 1:
        raise UserError(
            f"configuration: {name} is {getattr(config, name)}; {what}, between 0 and 1"
        )
