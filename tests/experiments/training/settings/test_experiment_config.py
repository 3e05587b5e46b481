"""Configurations: files, scales, typed overrides, and errors that help."""

import dataclasses
import functools
import json
import os
import subprocess
import sys
import types

import pytest

from data_prep.jobs.locks import LOCK_FILE, exclusive
from experiments.training.folder.run_folder import RunFolder, begin
from experiments.training.settings import config_files, config_help, flops
from experiments.training.settings.config import FinetuneConfig, Phase, PretrainConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.config_values import from_dict, override, result_dict, to_dict
from experiments.training.settings.options import names_for
from official_bert.common.errors import UserError
from official_bert.common.files import write_text
from official_bert.config import BertConfig, named_config


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from experiments.training.settings.config import Phase, PretrainConfig\n"
        "def get_config(scale='small'):\n"
        "    phases = (Phase(), Phase('b', 512))\n"
        "    return PretrainConfig(bert='tiny', seed=len(scale), phases=phases)\n"
    )
    return path


def test_file_scale_and_overrides(config_file):
    given = "learning_rate=3e-5 num_warmup_steps=1e3 objectives=masked_lm snapshots=10,20 "
    given += "phases.1.records=a,b.tfrecord bert.hidden_dropout_prob=0"
    config = load_config(f"{config_file}:full", given.split())
    assert config.seed == len("full")
    assert config.learning_rate == 3e-5 and config.num_warmup_steps == 1000
    assert config.objectives == ("masked_lm",)
    assert config.phases[1] == Phase("a,b.tfrecord", 512)
    assert config.bert == dataclasses.replace(named_config("tiny"), hidden_dropout_prob=0.0)
    assert config.snapshots == (10, 20)
    assert load_config(str(config_file)).seed == len("small")


@pytest.mark.parametrize("order", [1, -1])
def test_overrides_count_together_in_any_order(order):
    given = ["bert=mini", "bert.vocab_size=99", "bert.hidden_size=96", "bert.num_attention_heads=3",
             "shard=weights", "distribute=tpu", "snapshots=1,2", "snapshots.0=5"]  # fmt: skip
    config = override(PretrainConfig(), given[::order])
    assert (config.bert.num_hidden_layers, config.bert.vocab_size) == (4, 99)
    assert (config.bert.hidden_size, config.bert.num_attention_heads) == (96, 3)
    assert (config.shard, config.distribute, config.snapshots) == ("weights", "tpu", (5, 2))


def test_dictionaries_take_keys_and_json():
    config = override(FinetuneConfig(), ["task_options.dev_fraction=0.2", "task_options.a=x"])
    assert config.task_options == {"dev_fraction": 0.2, "a": "x"}
    config = override(config, ['task_options={"labels": ["p", "q"]}'])
    assert config.task_options == {"labels": ["p", "q"]}
    with pytest.raises(UserError, match="--config.task_options: expected a JSON object, not "):
        override(config, ['task_options=["pq"]'])


@pytest.mark.parametrize(
    "change, message",
    [
        ("learnin_rate=1", r'unknown field "learnin_rate" \(did you mean "learning_rate"\?\)'),
        ("use_nsp=false", 'unknown field "use_nsp".* objectives, '),
        ("objectives=", "objectives is empty"),
        ("objectives=next_sentence,masked_lm", "objectives: masked_lm must stand first, and once"),
        ("nothing=1", "valid fields: seed, .*bert, vocab, "),
        ("learning_rate=fast", "learning_rate=fast: expected a number"),
        ("phases.0.pairs=maybe", "expected true or false"),
        ("seed=1.5", "expected a whole number"),
        ("phases.2.records=x", "is not a position among 1"),
        ("phases.0.lenght=3", r'did you mean "max_seq_length"|unknown field "lenght"'),
        ("seed=1e999", "expected a whole number"),
        ("seed.x=1", "--config.seed.x: --config.seed=12345 has no parts"),
        ("seed", "has no value"),
        ("distribute=horovod", "distribute='horovod'; it is one of one_device, mirrored"),
        ("train_batch_size=0", "must be > 0"),
        ("log_every=-2", "log_every is -2; it must not be negative"),
        ("num_decay_steps=-2", "num_decay_steps is -2; it must not be negative"),
        ("clip_norm=-1", "clip_norm is -1.0; it must not be negative"),
        ("weight_decay=nan", "weight_decay is nan; it must not be negative or infinite"),
        ("adam_beta_2=1.5", "adam_beta_2 is 1.5; .* between 0 and 1"),
        ("phases.0.num_train_steps=-5", "num_train_steps is -5; it must not be negative"),
        ("snapshots=5,2000", "snapshots: 2000 is none of the 1000 steps"),
        ("bert.hidden_size=-1", "hidden_size must be positive"),
        ("bert= bert.hidden_size=8", "bert.hidden_size: --config.bert= has no parts"),
    ],
)
def test_wrong_overrides_say_what_to_do(change, message):
    with pytest.raises(UserError, match=message):
        override(PretrainConfig(), change.split())


@pytest.mark.parametrize(
    "source, message",
    [
        ("no_such_config", "files in experiments/configs: .*glue"),
        ("README.md", "no such Python file README.md"),
        ("experiments/results/PLAN.md:smoke", "no such Python file experiments/results/PLAN.md"),
        ("table_5:cpu", r'no such Python file table_5 \(did you mean "table5"\?\)'),
        ("glue:nope", 'no scale "nope" in this configuration; valid: paper'),
    ],
)
def test_wrong_files_and_scales(source, message):
    with pytest.raises(UserError, match=message):
        load_config(source)


@pytest.mark.parametrize(
    "code, message",
    [
        (
            "return dataclasses.replace(PretrainConfig(),\n                  lerning_rate=1)",
            r'line 6: PretrainConfig: unknown field "lerning_rate" \(did you mean "learning_rate"',
        ),
        ("return Phase(recods='x')", 'line 6: Phase: unknown field "recods".*"records"'),
        ("phase = Phase()\n    return dataclasses.replace(phase, x=1)", "line 7: Phase: .*recor"),
        ("return PretrainConfg()", "line 6: NameError: name 'PretrainConfg' is not defined"),
        ("return Phase().step", "line 6: AttributeError: 'Phase' object has no attribute"),
        ("return open('no.txt')", r"line 6: FileNotFoundError: .*'no.txt'$"),
        ("return (", "line 6: SyntaxError: '\\(' was never closed"),
        ("return PretrainConfig(train_batch_size=0)", "line 6: train_batch_size is 0; it must be"),
    ],
)
def test_a_mistake_in_a_file_of_ones_own_is_one_line(tmp_path, code, message):
    head = "import dataclasses\n"
    head += "from experiments.training.settings.config import Phase, PretrainConfig\n\n\n"
    (tmp_path / "own.py").write_text(f"{head}def get_config():\n    {code}\n")
    with pytest.raises(UserError, match=message) as caught:
        load_config(str(tmp_path / "own.py"))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'own.py'} line ")


def test_a_file_of_ones_own_may_have_dataclasses(tmp_path):
    (tmp_path / "own.py").write_text(
        "from __future__ import annotations\nimport dataclasses\n"
        "from experiments.training.settings.config import PretrainConfig\n"
        "@dataclasses.dataclass(frozen=True)\nclass Own(PretrainConfig):\n    share: float = 1.0\n"
        "get_config = Own\n"
    )
    assert load_config(str(tmp_path / "own.py"), ["share=2"]).share == 2.0


OWN = {  # configurations of one's own data, and their scales
    "text_classification": ("base", "small", "smoke"),
    "ner": ("own", "own_small"),
    "squad": ("own_v1", "own_v2", "own_small_v1", "own_small_v2"),
}


def test_every_configuration_and_scale_loads():
    for name, scales in {
        "pretrain": ("base", "large", "mini", "tiny", "smoke", "continue"),
        "glue": ("paper", "large", "small", "smoke"),
        "squad": ("v1", "v2", "v1_smoke", "v2_smoke"),
        "swag": ("paper", "smoke"),
        "ner": ("paper", "smoke"),
        "ner_features": ("embeddings", "concat_last_four", "weighted_sum_all"),
        "text_classification": (),
    }.items():
        for scale in (*scales, *OWN.get(name, ())):
            config = load_config(f"{name}:{scale}")
            kind = PretrainConfig if name == "pretrain" else FinetuneConfig
            assert isinstance(config, kind)
            assert from_dict(kind, json.loads(json.dumps(to_dict(config)))) == config


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (PretrainConfig, {"phases": [3]}, "here: a Phase must be a JSON object, not 3"),
        (PretrainConfig, {"phases": [{"bert": {}}]}, "here: unknown field bert"),
        (PretrainConfig, {"phases": {}}, "here: .*phases"),
        (FinetuneConfig, {"phases": []}, "here: unknown field phases"),
        (FinetuneConfig, {"bert": {"filtres": []}}, "unknown field filtres"),
        (PretrainConfig, {"bert": []}, "here: .*bert"),
    ],
)
def test_stored_values_of_another_kind_are_refused(kind, values, message):
    with pytest.raises(UserError, match=message):
        from_dict(kind, values, "here")


def test_adams_bias_is_corrected_on_own_data_alone():
    for name, scales in OWN.items():
        for scale in scales:
            config = load_config(f"{name}:{scale}")
            rate = 3e-4 if "small" in scale or scale == "smoke" else 1e-4
            assert (config.bias_correction, config.learning_rate) == (True, rate)
    for name in ("glue:paper", "glue:small", "squad:v1", "squad:v2", "swag", "ner"):
        assert not load_config(name).bias_correction


def test_papers_hyper_parameters():
    squad = load_config("squad:v2")
    assert (squad.train_batch_size, squad.learning_rate, squad.num_train_epochs) == (48, 5e-5, 2)
    assert (squad.max_seq_length, squad.task_options["doc_stride"]) == (384, 128)
    swag = load_config("swag")
    assert (swag.train_batch_size, swag.learning_rate, swag.num_train_epochs) == (16, 2e-5, 3)
    base = load_config("pretrain:base")
    assert base.num_train_steps == 1_000_000
    assert base.phases[0].num_train_steps == 0.9 * base.num_train_steps


def test_results_do_not_depend_on_bookkeeping_and_names_of_sizes():
    base = PretrainConfig(bert="tiny")
    same = dataclasses.replace(base, bert=named_config("tiny"), log_every=7, save_every=3)
    other = dataclasses.replace(base, seed=1)
    assert result_dict(base) == result_dict(same) != result_dict(other)


def test_other_options_in_a_folder_are_listed(tmp_path, capsys):
    base, home = PretrainConfig(bert=BertConfig(hidden_size=12)), tmp_path
    tmp_path = home / "run"
    RunFolder(tmp_path, base)
    RunFolder(tmp_path, dataclasses.replace(base, seed=2))  # never began
    RunFolder(tmp_path, base)
    write_text(tmp_path / "metrics.jsonl", "")
    RunFolder(tmp_path, dataclasses.replace(base, log_every=1))
    phase = Phase("moved", num_train_steps=7)  # its records are compared by content (`inputs`)
    changed = dataclasses.replace(base, seed=1, bert=BertConfig(hidden_size=24), phases=(phase,))
    with pytest.raises(UserError) as error:
        RunFolder(tmp_path, changed)
    differences = "seed: 12345 -> 1", "bert.hidden_size: 12 -> 24", "num_train_steps: 1000 -> 7"
    assert all(told in str(error.value) for told in (*differences, "--overwrite"))
    assert "moved" not in str(error.value)
    (tmp_path / "mine.txt").write_text("not of the run")
    write_text(tmp_path / "results.json", "{}")
    assert not capsys.readouterr().err
    with exclusive(tmp_path) as lock:
        begin(tmp_path, True, lock)
        RunFolder(tmp_path, changed, lock=lock)
    assert capsys.readouterr().err == f"{tmp_path} is renamed to run.~1~\n"
    assert (home / "run.~1~" / "mine.txt").exists() and (home / "run.~1~" / "results.json").exists()
    assert sorted(os.listdir(tmp_path)) == [LOCK_FILE, "config.json"]


def test_a_run_of_another_kind_or_version_is_refused(tmp_path):
    RunFolder(tmp_path, PretrainConfig())
    write_text(tmp_path / "metrics.jsonl", "")
    with pytest.raises(UserError, match="holds a run of PretrainConfig, this is FinetuneConfig"):
        RunFolder(tmp_path, FinetuneConfig())
    path = tmp_path / "config.json"
    write_text(path, path.read_text().replace('"pairs"', '"use_nsp"'), own=True)
    with pytest.raises(UserError, match="json: unknown field use_nsp; .*; choose another --workd"):
        RunFolder(tmp_path, PretrainConfig())


def test_metrics_of_steps_taken_again_are_dropped(tmp_path):
    folder = RunFolder(tmp_path, PretrainConfig())
    lines = [json.dumps({"step": step}) for step in (1, 5, 9)]
    write_text(tmp_path / "metrics.jsonl", "\n".join([*lines, "7", '{"step": 1']) + "\n")
    with open(tmp_path / "metrics.jsonl", "ab") as file:
        file.write(b'{"step": 2\xff}\n')
    folder.forget_metrics_after(5)
    assert (tmp_path / "metrics.jsonl").read_text() == "\n".join(lines[:2]) + "\n"


def test_help_lists_fields_options_and_what_differs_among_several():
    name = "text_classification:small"
    shown = config_help.help_of(load_config(name), name)
    for told in (
        "--config.learning_rate=0.0003  (a number)\n",
        "  --config.task_options.text_column=  (a text)\n      names of the text columns;",
        "--config.task_options.dev_fraction=0.1  (a number)",
        "--config.patience=0  (a whole number)\n      Evaluations in a row without a new best",
    ):
        assert told in shown
    own = {field.name for field in dataclasses.fields(FinetuneConfig)} - {"model_options"}
    for name in (*own, *names_for(FinetuneConfig)):
        assert f"--config.{name}" in shown
    phases = (Phase("a"), Phase("a", num_train_steps=7))
    shown = config_help.help_of(PretrainConfig(bert=BertConfig(), phases=phases), "mine.py")
    assert "--config.bert.hidden_size=768  (a whole number)" in shown
    assert "--config.phases.0.records=a  (a text)" in shown
    assert "--config.phases.1.num_train_steps=7" in shown
    assert "--config.phases.1.records" not in shown
    table = config_help.help_of(load_config("table5:smoke"), "table5:smoke")
    assert "--config.columns.1.finetune.task_options." in table
    assert "--config.variants.0.pretrain.phases.0.num_train_steps=" in table


def test_help_follows_the_command_line(monkeypatch):
    main = types.SimpleNamespace(__doc__="A command.")
    monkeypatch.setitem(sys.modules, "__main__", main)
    config_help.add_to_help(["--config=glue", "--config.task=stsb"])
    assert main.__doc__ == "A command."  # no help was asked for
    arguments = ["--config", "glue", "--config.task=stsb", "--config.seed", "5", "--help"]
    config_help.add_to_help(arguments)
    assert main.__doc__.startswith("A command.\nfields of --config=glue")
    assert "--config.task=stsb " in main.__doc__ and "--config.seed=5 " in main.__doc__
    config_help.add_to_help(["--help", "--config=glue", "--config.sead=5"])
    assert 'error: --config.sead: unknown field "sead"' in main.__doc__


def test_commands_explain_themselves_and_their_mistakes(tmp_path):
    """Every call is a process without TensorFlow."""

    def run(command, *arguments):
        call = [sys.executable, "-X", "importtime", "-m", f"experiments.{command}", *arguments]
        places = {"PYTHONPATH": str(config_files.CONFIGS.parents[1]), "PATH": "/usr/bin"}
        done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, env=places)
        imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
        messages = [line for line in done.stderr.splitlines() if not line.startswith("import ")]
        assert imported.isdisjoint({"tensorflow", "keras", "matplotlib"})
        return done.returncode, done.stdout + "\n".join(messages)

    flags = {"pretrain": "--workdir", "finetune": "--search", "evaluate": "--records"}
    flags |= {"predict": "--input", "ablate": "--seeds", "report": "--workdir"}
    for command, flag in flags.items():
        _, told = run(command, "--help")
        assert flag in told and "python -m experiments." in told
    _, told = run("pretrain", "--config=pretrain:continue", "--help")
    assert "--config.phases.0.max_seq_length=0  (a whole number)" in told
    for arguments, message in (
        ("pretrain --config=pretrain:tiny --config.sead=1", 'did you mean "seed"?'),
        ("finetune", "--config is missing"),
        ("finetune --config=pretrain:tiny --config.task=rte", "this command needs FinetuneConfig"),
    ):
        code, told = run(*arguments.split(), "--workdir=w")
        assert code == 2 and message in told
    assert not (tmp_path / "w").exists()


def test_objectives_are_bert_s_unless_they_are_named():
    config = PretrainConfig()
    assert config.objectives == ("masked_lm", "next_sentence")
    assert override(config, ["objectives=masked_lm,next_sentence"]) == config
    weighted = ["objectives=masked_lm,next_sentence", "objectives.0.weight=2.0"]
    masked = {"name": "masked_lm", "weight": 2.0}
    assert override(config, weighted).objectives == (masked, "next_sentence")
    written = {"name": "next_token", "fraction": 0.5}
    chosen = dataclasses.replace(config, objectives=(written,))
    assert from_dict(PretrainConfig, to_dict(chosen)) == chosen
    with pytest.raises(UserError, match="objective='next'; it is one of"):
        dataclasses.replace(config, objectives=("next",))


def test_flops_count_what_objectives_add():
    bert = BertConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, vocab_size=100)
    step = functools.partial(flops.pretraining_step_flops, bert, sequences=2, length=32, masked=5)
    plain = step(("masked_lm",))
    assert plain == 3 * (bert.encoder_flops(2, 32) + bert.head_flops(10))
    assert plain == step(("masked_lm", "next_sentence"))
    assert step(("next_token",)) == 3 * (bert.encoder_flops(2, 32) + bert.head_flops(2 * 31))
