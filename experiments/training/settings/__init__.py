"""Configurations of a run: their fields, JSON, files and flags, and what a run costs.

Begin with `config`: every field of `PretrainConfig` and `FinetuneConfig`, with the paper's values
as defaults. `config_files` loads a configuration by its name, and `config_values` replaces fields
and turns it into JSON and back. `config_flags` does both for a command, `config_help` lists the
fields in its `--help`. `options` are fields of systems beyond the paper, `flops` counts the work of
a configuration. Everything in `experiments` uses this room.
"""
