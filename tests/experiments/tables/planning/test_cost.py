"""Cost of a table: dry runs, and the rate that they go by."""

import dataclasses
from types import SimpleNamespace

import pytest

from data_prep.tasks import class_of
from experiments import ablate
from experiments.configs import table5
from experiments.tables.planning import ablation as ablation_parts
from experiments.tables.planning import cost, dry_run, step_rate
from experiments.tables.planning.ablation import RecordSpec
from experiments.tables.planning.plan import plan_table
from experiments.tables.run.grid import Cell
from experiments.training.settings import flops
from experiments.training.settings.config import FinetuneConfig, Phase, PretrainConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.config_values import to_dict
from experiments.training.start import initialization
from experiments.training.step.device_choices import Memory
from official_bert.common.errors import UserError


def test_dry_run_lists_cells_with_work_time_and_disk(tmp_path):
    text = ablate.dry_run([load_config("table5:smoke")], tmp_path, measure=False)
    lines = text.splitlines()
    assert lines[0].split() == ["cell", "state", "work", "time", "disk"]
    row = next(line for line in lines if line.startswith("pretrain/BERT/1"))
    assert "pending" in row and "TFLOP" in row
    assert "28 cells; still to do" in text
    assert (
        "to beat:\n  held-out loss: known after the run\n  SNLI: 32.2\n  SMS spam: 87.3\n" in text
    )
    assert not any(tmp_path.iterdir())


def test_a_dry_run_says_whether_its_times_are_measured(tmp_path, monkeypatch):
    ablation = load_config("table5:smoke")
    assumed = ablate.dry_run([ablation], tmp_path, measure=False)
    assert "at 30.0 GFLOP a second, which two cores reach" in assumed and "measured" not in assumed
    monkeypatch.setattr(step_rate, "measured_rate", lambda *_: 1e9)
    timed = ablate.dry_run([ablation], tmp_path)
    assert "at the rate of a training step measured on this machine (LSTMs: as on" in timed


def test_a_dry_run_says_at_once_what_it_does_and_needs_no_folder(monkeypatch, capsys):
    def asked():
        pytest.fail("the backend is loaded before the data are read")

    monkeypatch.setattr(step_rate, "gpu_memory", asked)

    def read(*_):
        raise UserError(capsys.readouterr().err)  # what was said before the data are read

    ablation = load_config("table5:smoke")
    whole = ablate.dry_run([ablation], measure=False)
    assert "28 cells; still to do" in whole and "trains nothing" in capsys.readouterr().err
    monkeypatch.setattr(dry_run, "plan_table", read)
    with pytest.raises(UserError, match=r"^dry run of table5:smoke: .* times a .*--share=0.4"):
        ablate.dry_run([ablation])


def test_dry_run_at_a_share_of_a_peak(tmp_path):
    ablation = load_config("table5:smoke")
    text = ablate.dry_run([ablation], tmp_path, share=0.2, peak=0.5)
    assert "at 20% of 0.5 TFLOP/s" in text and " of one device" in text
    made = plan_table(ablation)
    one = cost.estimate(made, lambda steps: 1e11)["pretrain/BERT/1"]
    assert one.seconds == pytest.approx(cost.START_SECONDS + one.flops / 1e11)
    assert f"{dry_run._seconds(one.seconds):>10}" in text


def test_estimates_go_by_the_measured_rate_of_each_shape(monkeypatch):
    monkeypatch.setattr(step_rate, "measured_rate", lambda bert, batch, *_: 1e9 * batch)
    ablation = load_config("table5:quickstart")
    found = cost.estimate(plan_table(ablation), step_rate.measured(print))
    tuned = found["finetune/SNLI/BERT/1-1"]
    assert tuned.seconds == pytest.approx(cost.START_SECONDS + tuned.flops / 32e9)
    pretrain, expected, whole = ablation.variant("BERT").pretrain, cost.START_SECONDS, 0.0
    records = {spec.name: spec for spec in ablation.records}
    for phase in pretrain.phases:
        one_phase = dataclasses.replace(pretrain, phases=(phase,))
        [of_phase] = cost.pretraining_steps(one_phase, records)
        whole += of_phase.flops
        expected += of_phase.flops / 1e9 / (phase.train_batch_size or 32)
    assert len({phase.train_batch_size for phase in pretrain.phases}) == 2
    assert found["pretrain/BERT/1"].seconds == pytest.approx(expected)
    assert found["pretrain/BERT/1"].flops == pytest.approx(whole)


def test_a_run_that_goes_on_from_a_trunk_costs_the_steps_behind_it():
    ablation = load_config("series:smoke")
    found = cost.estimate(plan_table(ablation))
    names = ("trunk of 8M", "8M", "trunk of 33M", "33M")
    counted = [found[f"pretrain/BERT, {name}/1"].flops for name in names]
    steps = [23, 30 - 23, 90 - 23, 120 - 90]
    assert [one / counted[0] for one in counted] == pytest.approx([one / 23 for one in steps])


def test_snapshots_of_the_whole_run_may_stand_beyond_a_phase():
    ablation = load_config("table5:quickstart")
    first, *others = ablation.variants
    made = dataclasses.replace(first.pretrain, snapshots=(first.pretrain.num_train_steps,))
    kept = (dataclasses.replace(first, pretrain=made), *others)
    tables = (ablation, dataclasses.replace(ablation, variants=kept))
    one, other = (cost.estimate(plan_table(table)) for table in tables)
    assert one["pretrain/BERT/1"].seconds == other["pretrain/BERT/1"].seconds


def test_a_rate_is_measured_in_a_training_step():
    import tensorflow as tf

    from official_bert.config import BertConfig

    sizes = {"vocab_size": 20, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
             "intermediate_size": 8}  # fmt: skip
    tf.config.run_functions_eagerly(True)  # cheaper than to compile it
    try:
        told = []
        for bert in (BertConfig(**sizes), BertConfig(**sizes, gelu_form="tanh")):
            assert 0 < step_rate.measured_rate(bert, 2, 8, say=told.append) < 1e12
        assert told == ["  times a step: 1 deep, 4 wide, 2 rows of 8 tokens"]
    finally:
        tf.config.run_functions_eagerly(False)


def test_on_a_gpu_a_dry_run_goes_by_whole_steps_of_it(monkeypatch):
    """The paper's run on a GPU that is made up: 25 ms for 16,384 tokens, of 512 a fifth more."""
    asked = []

    def seconds(bert, batch, length, precision, parts, steps):
        asked.append((bert.num_hidden_layers, length, batch, precision, parts, steps))
        return 25e-3 * batch * length / 16_384 * (1.2 if length == 512 else 1)

    gpu = Memory("GPU of 80 GB", 60 * 2**30, (64,))
    monkeypatch.setattr(step_rate, "gpu_memory", lambda: gpu)
    monkeypatch.setattr(step_rate, "seconds_of_a_step", seconds)
    paper = table5.get_config("paper")
    pretrain = dataclasses.replace(paper.variant("BERT").pretrain, distribute="one_device")
    cell = Cell("pretrain/BERT/1", "pretrain", to_dict(pretrain))
    planned = SimpleNamespace(cells=[cell], steps={cell.name: cost.pretraining_steps(pretrain)})
    told = []
    [one] = cost.estimate(planned, step_rate.measured(told.append)).values()
    assert asked == [
        (12, 128, 256, "mixed_bfloat16", 1, 16),
        (12, 512, 256, "mixed_bfloat16", 1, 16),
    ]
    expected = 25e-3 * 256 / 16_384 * (900_000 * 128 + 1.2 * 100_000 * 512)
    # A head of 20 and 77 positions, where the timed steps have 16 in 100.
    assert one.seconds == pytest.approx(expected, rel=0.01)
    assert told[0] == (
        "  times 16 steps on GPU of 80 GB: 12 deep, 768 wide, 256 rows of 128 tokens in 1 "
        "micro-batch"
    )


def test_flops_by_hand():
    ablation = load_config("table5:quickstart")
    bert = ablation.variant("BERT").pretrain.bert
    # 2 layers, H 128, I 512, one sequence of 64: 2 (4 H^2 + 2 H I) + 4 * 64 * H a token and layer.
    per_token = 2 * (4 * 128 * 128 + 2 * 128 * 512) + 4 * 64 * 128
    assert bert.encoder_flops(1, 64) == 2 * 64 * per_token
    assert bert.head_flops(10) == 10 * 2 * 128 * (128 + 4096)
    forward = bert.encoder_flops(1, 64) + bert.head_flops(10)
    step = flops.pretraining_step_flops(bert, ("masked_lm", "next_sentence"), 1, 64, 10)
    assert step == 3 * forward  # and twice as much backward


def test_a_phase_without_a_length_has_that_of_its_records():
    bert = table5.get_config("smoke").variant("BERT").pretrain.bert
    records = {"@here": RecordSpec(max_seq_length=48, max_predictions_per_seq=9)}
    phase = Phase(records="@here", num_train_steps=10, max_seq_length=0)
    config = PretrainConfig(bert=bert, phases=(phase,), train_batch_size=4)
    step = flops.pretraining_step_flops(bert, config.objectives, 4, 48, 9)
    [one] = cost.pretraining_steps(config, records)
    assert (one.rows, one.length, one.flops) == (4, 48, 10 * step)
    with pytest.raises(UserError, match="phase of @here: give max_seq_length"):
        cost.pretraining_steps(config)


def test_all_that_works_beside_a_model_is_counted():
    bert = table5.get_config("smoke").variant("BERT").pretrain.bert
    phases = tuple(Phase("r", length, steps) for length, steps in ((48, 10), (32, 20)))
    config = PretrainConfig(bert=bert, phases=phases, train_batch_size=4)
    records = {"r": RecordSpec(max_seq_length=32, max_predictions_per_seq=5)}
    beside = [lambda rows, length, masked: rows * length, lambda rows, length, masked: masked]
    found = cost.pretraining_steps(config, records, beside)
    assert [one.beside_flops for one in found] == [10 * (4 * 48 + 5), 20 * (4 * 32 + 5)]
    alone = cost.pretraining_steps(config, records)
    assert [one.flops for one in alone] == [one.flops for one in found]
    more = sum(one.beside_flops for one in found) / flops.RATE
    assert cost.seconds(found) == pytest.approx(cost.seconds(alone) + more)


def test_snapshots_and_checkpoints_take_disk():
    table = load_config("table5:quickstart")
    variant = table.variants[0]
    config = dataclasses.replace(variant.pretrain, keep_checkpoints=2, save_every=100)

    def size(**fields):
        changed = dataclasses.replace(variant, pretrain=dataclasses.replace(config, **fields))
        cells = plan_table(dataclasses.replace(table, variants=(changed, *table.variants[1:])))
        [cell] = [cell for cell in cells.cells if cell.name == "pretrain/BERT/1"]
        return cell.bytes / (4 * config.bert.num_parameters)

    assert size() == 1 + 3 * (2 + bool(config.eval_every))
    assert size(snapshots=(10, 20)) == size() + 2
    assert size(eval_every=0) == 1 + 3 * 2
    assert size(save_every=10**6) == size(save_every=0) == 1 + 3  # the last step


def test_costs_of_a_checkpoint_are_those_of_its_sizes():
    table = load_config("table5:smoke")
    variants = [
        ablation_parts.Variant(name, checkpoint=name) for name in ("tiny-wikipedia", "a-base")
    ]
    rows = [ablation_parts.Row(one.name, one.name) for one in variants]
    parts = {"variants": tuple(variants), "rows": tuple(rows), "claims": (), "exports": ()}
    planned = plan_table(dataclasses.replace(table, **parts, columns=(table.column("SNLI"),)))
    berts = [steps.bert for some in planned.steps.values() for steps in some]
    assert [bert.hidden_size for bert in berts] == [128, 768]


def test_models_on_word_vectors_have_a_rate_of_their_own():
    config = FinetuneConfig(task="mrpc")
    lstm = SimpleNamespace(planned_work=lambda *_: [(4e12, 2e10)])
    found = cost.finetuning_steps(config, lstm, None, 10, 5)
    assert cost.seconds(found) == cost.seconds(found, step_rate.measured(print))
    assert cost.seconds(found) == cost.START_SECONDS + 200
    assert cost.seconds(found, lambda one: 4e12) == cost.START_SECONDS + 1


def test_a_dry_run_counts_what_two_names_share_once(tmp_path):
    table = load_config("table5:smoke")
    first = table.variants[0]
    watched = dataclasses.replace(first.pretrain, log_every=7)
    twin = dataclasses.replace(first, name="twin", pretrain=watched)
    rows = [ablation_parts.Row(name, name) for name in ("BERT", "twin")]
    parts = {"variants": (first, twin), "rows": tuple(rows), "claims": (), "exports": ()}
    table = dataclasses.replace(table, **parts, columns=(table.column("SNLI"),))
    text = ablate.dry_run([table], tmp_path, measure=False, workers=5)
    assert len(plan_table(table).cells) == 6 and "4 cells; still to do" in text
    assert "with 5 side by side" in text


def test_a_dry_run_of_two_tables_and_one_seed():
    table = load_config("table5:smoke")
    twice = [dataclasses.replace(v, seeds=(1, 2)) for v in table.variants]
    table = dataclasses.replace(table, variants=tuple(twice))
    other = dataclasses.replace(table, name="other", columns=table.columns[:1], claims=())
    other = dataclasses.replace(other, exports=())
    alone, both = (ablate.dry_run(one, measure=False) for one in ([table], [table, other]))
    assert both.partition("\n\n")[0] == alone.partition("\n\n")[0]  # the cells are the same
    assert "other/smoke: held-out loss: known" in both and "  table5/smoke: SNLI: 32.2\n" in both
    second = ablate.dry_run([table], measure=False, seeds=["2"])
    lines = [line.split()[0] for line in second.partition("\n\n")[0].splitlines()[1:]]
    assert "pretrain/BERT/2" in lines and "vocabulary" in lines and "pretrain/BERT/1" not in lines
    with pytest.raises(UserError, match="seed 3 is not a pre-training seed of the table: 1, 2"):
        ablate.dry_run([table], measure=False, seeds=["3"])
    with pytest.raises(UserError, match="tables: table5/smoke is there twice"):
        ablate.dry_run([table, table])


def test_a_dry_run_of_a_mixture_that_a_cell_makes(tmp_path):
    labels = ("entailment", "neutral", "contradiction")
    rows = [f"p{i // 3}\th{i}\t{labels[i % 3]}\n" for i in range(60)]
    (tmp_path / "dev.tsv").write_text("sentence1\tsentence2\tgold_label\n" + "".join(rows))
    table = load_config("table5:smoke")
    column = table.column("SNLI").changed(data_dir="@nli//data")
    parts = {"columns": (column,), "claims": (), "exports": (), "nli_mixture": ("dev.tsv",)}
    table = dataclasses.replace(table, **parts, data_dir=str(tmp_path))
    text = ablate.dry_run([table], measure=False)
    assert "SNLI: known after the run" in text and "\nnli " in text
    assert sum(plan_table(table).examples["SNLI"]) == 60
    with pytest.raises(UserError, match="column SNLI: folds are of data that are there, not made"):
        plan_table(dataclasses.replace(table, columns=(column.changed(folds=2),)))


def test_what_stands_on_the_encoder_counts():
    bert = table5.get_config("smoke").variant("BERT").pretrain.bert
    config = FinetuneConfig(task="mrpc", max_seq_length=64, num_train_epochs=2.0)
    width, sized = bert.hidden_size, (bert, 10, 5)
    more = dataclasses.replace(config, bilstm=True)
    one = flops.lstm_flops([width], width, 64)
    added = flops.finetune_flops(more, *sized) - flops.finetune_flops(config, *sized)
    assert added == pytest.approx(one * (3 * 2 * 10 + 5))
    tags = FinetuneConfig(task="conll2003", features="last_hidden", max_seq_length=64)
    tags = dataclasses.replace(tags, num_train_epochs=2.0)
    two = flops.bilstm_flops(bert, "last_hidden", 768, 64)
    frozen, tuned = initialization.of(tags).planned_work(tags, *sized)
    assert frozen == (bert.encoder_flops(15, 64), None)
    assert tuned == (pytest.approx(two * (3 * 2 * 10 + 5)), flops.LSTM_RATE)


def test_windows_count_in_the_estimate():
    def windows(task, length=64, **options):
        return class_of(task).mean_windows(length, options)

    assert windows("squad_v1.1", 384) == 1
    assert windows("squad_v2.0", doc_stride=32) == pytest.approx(1 + (157 - 48) / 32)
    assert windows("squad_v1.1", context="answer_sentence") == 1
    assert windows("mrpc") == 1 and windows("text_classification", windows=3) == 3
