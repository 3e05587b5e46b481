"""Advice in messages names options that exist, in every command that may give the advice."""

import ast
import dataclasses
import functools
import importlib
import operator
import re

from data_prep import tasks
from data_prep.jobs import command_flags
from experiments.tables.planning.ablation import Ablation
from experiments.training.settings import config_flags
from experiments.training.settings.config import FinetuneConfig, PretrainConfig
from experiments.training.settings.options import names_for
from tests import guests
from tests.test_architecture import FILES, imported_modules, parsed

# Absl's own, and options of other programs.
_OTHERS = {"help", "helpshort", "helpfull", "name", "always", "abbrev", "dirty"}
_OTHERS |= {"xla_gpu_deterministic_ops"}
# Modules that many commands share, whose advice depends on what the command gave them.
_ONLY_WHERE_IT_IS = {
    ("data_prep.corpus.text_files", "invalid_utf8"): "said to who passes that option's value",
    ("data_prep.corpus.input_look", "accept_input"): "said by `check` with max_tokens",
    ("data_prep.corpus.shares", "accept_loss"): "`featurize` takes a number from it",
    ("data_prep.corpus.shares", "strip_accents"): "said to who makes vocabularies or records",
    ("data_prep.jobs.processes", "num_workers"): "`featurize` catches WorkerDied",
    ("data_prep.jobs.storage", "overwrite"): "only commands with --overwrite name an output",
    ("data_prep.jobs.output_folder", "overwrite"): "reports and readers make no output folder",
    ("data_prep.tasks.files.formats", "format"): "said to who passes `texts` or `format`: predict",
    ("experiments.tables.run.grid", "cells"): "reports run no cells",
    ("experiments.training.folder.checkpointing", "overwrite"): "only runs restore checkpoints",
    ("experiments.training.folder.checkpointing", "workdir"): "only runs restore checkpoints",
    ("experiments.training.folder.inputs", "overwrite"): "only runs check what they read",
    ("experiments.training.answers.predictor", "split"): "predict asks for one, of a file",
    ("experiments.training.answers.predictor", "task_options"): "export and serve set none",
    ("experiments.training.folder.run_folder", "overwrite"): "reports, evaluations begin no runs",
    ("experiments.training.folder.run_folder", "workdir"): "evaluations begin no runs",
    ("official_bert.common.files", "overwrite"): "only commands with --overwrite call `check_free`",
    ("official_bert.export.formats.onnx_file", "precision"): "serve writes no ONNX files",
    **guests.added("facts", "ONLY_WHERE_IT_IS", {}),
}
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z_0-9]*)(?:\.(\w+))?")
_OTHER_COMMAND = re.compile(r"\b(?:data_prep|experiments)\.(\w+)|[Rr]ecords|GLUE|run it again with")


@functools.cache
def reached(command):
    """All modules that a command imports, at once or later."""
    seen, todo = set(), [command]
    while todo:
        if (module := todo.pop()) not in seen:
            seen.add(module)
            todo += imported_modules(FILES[module])
    return seen


def calls(module):
    found = [node for node in ast.walk(parsed(FILES[module])) if isinstance(node, ast.Call)]
    first = [call.args[0] if call.args else None for call in found]
    names = [each.value if isinstance(each, ast.Constant) else None for each in first]
    return {(ast.unparse(call.func), name) for call, name in zip(found, names, strict=True)}


@functools.cache
def options(command):
    """Return the names of the flags of a command."""
    found = calls(command)
    names = {name for function, name in found if ".DEFINE_" in function}
    if ("define_flags", None) in found:
        names |= {"config", "workdir", "task_options"}
    for node in ast.walk(parsed(FILES[command])):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called in ("command_flags.define", "define_flags") and node.args:
            get = operator.attrgetter(ast.unparse(node.args[0]))
            function = get(importlib.import_module(command))
            skipped = map(ast.literal_eval, node.args[1:2])
            if called == "define_flags":
                skipped = [config_flags._SET_BY_COMMANDS]
            names |= {one.name for one in command_flags.parameters(function, *skipped)}
    if ("define_task_options", None) in found:
        names.add("task_options")
    return names


COMMANDS = [module for module in FILES if ("commands.run", None) in calls(module)]


def messages(module):
    """Return (line, text) of a module's strings but docstrings; the parts of one together."""
    docs, parts = set(), set()
    for node in ast.walk(parsed(FILES[module])):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            whole = [each.value for each in node.values if isinstance(each, ast.Constant)]
            parts.update(id(each) for each in node.values)
            yield node.lineno, "{}".join(whole)
    for node in ast.walk(parsed(FILES[module])):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in docs | parts:
            yield node.lineno, text


def test_the_commands_are_found():
    assert {"data_prep.vocab", "experiments.finetune", "experiments.predict"} <= set(COMMANDS)
    assert "invalid_utf8" in options("data_prep.sentences") - options("experiments.finetune")
    assert "task_options" in options("experiments.predict") & options("experiments.finetune")
    assert sum(len(_OPTION.findall(text)) for m in FILES for _, text in messages(m)) > 150


def test_every_option_in_a_message_exists():
    configs = (FinetuneConfig, PretrainConfig, Ablation)
    fields = {field.name for config in configs for field in dataclasses.fields(config)}
    fields |= {name for config in (FinetuneConfig, PretrainConfig) for name in names_for(config)}
    of_tasks = {name for task in tasks.task_names() for name in tasks.options_of(task)}
    everywhere = set().union(*map(options, COMMANDS))
    lacking, unused = [], set(_ONLY_WHERE_IT_IS)
    for module in FILES:
        users = [command for command in COMMANDS if module in reached(command)]
        for line, text in messages(module):
            for option, field in _OPTION.findall(text):
                where = f"{module}:{line} --{option}{field and '.' + field}"
                known = {"config": fields, "task_options": of_tasks}.get(option, {field})
                if field and not field.isupper() and field not in known:
                    lacking.append(where)
                if option in _OTHERS or option == "config":  # whose fields say what it is for
                    continue
                if option not in everywhere and not _OTHER_COMMAND.search(text):
                    lacking.append(f"{where}: no command has it")
                without = [command for command in users if option not in options(command)]
                if (module, option) in _ONLY_WHERE_IT_IS:
                    unused.discard((module, option))
                elif without and not _OTHER_COMMAND.search(text):
                    lacking.append(f"{where}: {', '.join(without)} lack it")
    assert not lacking, "\n".join(lacking)
    assert not unused
