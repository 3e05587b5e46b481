"""Configurations as JSON: in the folders of runs, and as the keys of a table's cells."""

import dataclasses
import json

from data_prep.jobs.output_folder import differing
from experiments.training.config import Phase
from experiments.training.overrides import replace_field
from official_bert.compared.elmo_config import ElmoConfig
from official_bert.config import BertConfig, named_config


def to_dict(config):
    """Plain JSON values of a configuration, nested dataclasses included."""
    if isinstance(config, BertConfig):
        return config.to_dict()
    if dataclasses.is_dataclass(config):
        return {f.name: to_dict(getattr(config, f.name)) for f in dataclasses.fields(config)}
    if isinstance(config, dict):
        return {str(key): to_dict(value) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return [to_dict(value) for value in config]
    return config


def from_dict(kind, values):
    """The configuration that `to_dict` was made of.

    Args:
      kind: the dataclass, for example PretrainConfig.
      values: JSON values; fields that are missing have their defaults.

    Raises:
      UserError: an unknown field.
    """
    config = kind()
    for name, value in values.items():
        if name == "bert" and isinstance(value, dict):
            shape = ElmoConfig if "filters" in value else BertConfig
            value = shape.from_dict(value)
        if name == "phases":
            value = tuple(p if isinstance(p, Phase) else from_dict(Phase, p) for p in value)
        config = replace_field(config, [name], value, name)
    return config


def result_dict(config):
    """`to_dict` without bookkeeping and places: the options that determine the result of a run."""
    values = _without(to_dict(config), config, "bookkeeping", "place")
    if "phases" in values:
        phases = zip(values["phases"], config.phases, strict=True)
        values["phases"] = [_without(values, phase, "place") for values, phase in phases]
    if values["bert"] and isinstance(values["bert"], str):
        values["bert"] = named_config(values["bert"]).to_dict()
    return values


def _without(values, config, *kinds):
    fields = {field.name: field.metadata for field in dataclasses.fields(config)}
    return {n: v for n, v in values.items() if not any(fields[n].get(kind) for kind in kinds)}


def differences(old, new):
    """Lines "field: old -> new" for two dicts of JSON values, nested ones included."""
    return [f"{n}: {json.dumps(a)} -> {json.dumps(b)}" for n, a, b in differing(old, new)]
