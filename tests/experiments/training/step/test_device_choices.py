"""Choices of a run on a GPU, with GPUs that are made up."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_runs

from benchmarks.gpu.steps import OURS, SIZES, shape
from benchmarks.pretraining import sizes
from data_prep.pretraining.reading.record_sets import RecordSet
from experiments.training.settings.config import FinetuneConfig, Phase, PretrainConfig
from experiments.training.step import device_choices
from experiments.training.step.device_choices import Memory, StepShape
from official_bert.common.errors import UserError
from official_bert.config import named_config

GPU = Memory("GPU of 80 GB", 60 * 2**30, (32, 64, 128))
SMALL = dataclasses.replace(GPU, kind="GPU of 16 GB", bytes=12 * 2**30)
ONE = SimpleNamespace(num_replicas_in_sync=1)
MEASURED = Path(__file__).parents[4] / "benchmarks/results/gpu/2026-11-27/steps.json"


def _records(length=512, examples=1000, **options):
    return RecordSet(["a"], [examples], length, length * 3 // 20, manifest={"options": options})


def _config(bert="base", length=512, batch=256, **fields):
    phases = (Phase("records", length, 100),)
    fields = {"precision": "mixed_bfloat16", "train_batch_size": batch, **fields}
    return PretrainConfig(bert=bert, phases=phases, **fields)


def _chosen(config, memory=GPU, records=None, strategy=ONE):
    records = records or _records(config.phases[0].max_seq_length)
    bert = config.bert_config
    return device_choices.choose_for_pretraining(config, bert, [(records, None)], strategy, memory)


def test_the_estimate_is_near_the_peaks_that_were_measured():
    runs = json.loads(MEASURED.read_text())["runs"]
    seen = 0
    for part, run in runs.items():
        size, length, *more = part.partition(":")[0].replace(",", "").split()
        if not part.endswith(OURS):
            continue
        tokens = run["rows"] * int(length)
        *layers, rows, length, predictions = shape(size, int(length), tokens)
        bert = named_config("base", **sizes(*layers))
        step = StepShape(rows, length, predictions)
        found = device_choices.step_bytes(bert, step, "mixed_bfloat16", GPU.widths)
        assert found / 2**30 == pytest.approx(run["peak_gib"], rel=0.08), part
        seen += 1
    assert seen == 2 * len(SIZES) + 2


def test_a_batch_of_the_paper_fits_one_gpu_of_80_gb():
    config, step, message = _chosen(_config())
    assert config.gradient_accumulation == 1 and step == {"steps_of_a_call": 16}
    assert message == (
        "GPU of 80 GB, 60.0 GiB: 1 micro-batch a step, 16 steps a compiled call, records on the "
        "device"
    )
    config, _, message = _chosen(_config("large"))
    assert config.gradient_accumulation == 4 and "4 micro-batches a step" in message
    config, _, _ = _chosen(_config("large"), SMALL)
    assert config.gradient_accumulation == 32
    config, _, _ = _chosen(_config("large", remat=True), SMALL)
    assert 1 < config.gradient_accumulation < 32


def test_half_the_memory_is_needed_in_half_precision_and_by_one_kernel():
    bert, shape = named_config("base"), StepShape(32, 512, 77)
    sizes = [
        device_choices.step_bytes(bert, shape, *how)
        for how in (("mixed_bfloat16", GPU.widths), ("mixed_bfloat16", ()), ("float32", ()))
    ]
    assert sizes[0] < 0.6 * sizes[1] < 0.6 * sizes[2]


def test_what_a_configuration_asks_for_stands():
    config, _, _ = _chosen(_config("large", gradient_accumulation=4, records_on_device=False))
    assert config.gradient_accumulation == 4 and not config.records_on_device
    config, _, _ = _chosen(_config(records_on_device=True), records=_records(examples=10**9))
    assert config.records_on_device


def test_without_a_gpu_nothing_is_chosen():
    config = _config()
    assert _chosen(config, None) == (config, {}, "")


def test_devices_share_a_batch():
    eight = SimpleNamespace(num_replicas_in_sync=8)
    config, _, _ = _chosen(_config("large"), strategy=eight)
    assert config.gradient_accumulation == 1
    config, _, _ = _chosen(_config("large"), SMALL, strategy=eight)
    assert config.gradient_accumulation == 4


def test_one_row_that_does_not_fit_is_refused_with_the_sizes():
    one_row = _config("large", 512, 1, precision="float32", remat=False)
    assert _chosen(one_row, SMALL)[0].gradient_accumulation == 1
    message = (
        r"GPU of 16 GB: the smallest micro-batch \(rows of tokens: 1 of 512\) needs about "
        r"\d+\.\d GiB, and a step may take 1.8 of the 2.0 there are; set"
    )
    with pytest.raises(UserError, match=message):
        _chosen(_config("large"), dataclasses.replace(SMALL, bytes=2 * 2**30))


@pytest.mark.parametrize(
    ("records", "on_device"),
    [
        (_records(), True),
        (_records(examples=25_601), False),  # more than the run reads
        (_records(do_whole_word_mask=True), False),
    ],
)
def test_records_lie_on_the_device_where_all_are_read(records, on_device):
    config, _, _ = _chosen(_config("tiny"), records=records)
    assert config.records_on_device == on_device


def test_records_lie_on_the_device_where_they_fit():
    read = [(_records(), 1000)]
    assert device_choices.records_fit(read, dataclasses.replace(GPU, bytes=10**8))
    assert not device_choices.records_fit(read, dataclasses.replace(GPU, bytes=5 * 10**7))


def test_small_models_take_more_steps_a_call():
    steps = {
        size: _chosen(_config(size, 128, 128))[1]["steps_of_a_call"]
        for size in ("tiny", "mini", "small", "base", "large")
    }
    assert steps == {"tiny": 64, "mini": 64, "small": 16, "base": 16, "large": 16}


def test_a_fine_tuning_is_divided_too():
    config = FinetuneConfig(model="m", max_seq_length=512, train_batch_size=32)
    batches = SimpleNamespace(rows=4 * 32)
    bert = named_config("large")
    chosen, message = device_choices.choose_for_finetuning(config, bert, batches, ONE, GPU)
    assert chosen.gradient_accumulation == 8
    assert message == "GPU of 80 GB, 60.0 GiB: 8 micro-batches a step"
    batches = SimpleNamespace(rows=32)
    chosen, _ = device_choices.choose_for_finetuning(config, bert, batches, ONE, GPU)
    assert chosen.gradient_accumulation == 2
    frozen = dataclasses.replace(config, features="last_hidden")
    assert device_choices.choose_for_finetuning(frozen, bert, batches, ONE, GPU) == (frozen, "")


def test_a_model_that_is_counted_otherwise_is_left_alone():
    class Other(type(tiny_runs.bert())):
        def encoder_flops(self, sequences, length):
            return 0.0

    assert device_choices.micro_batches(_config(), Other(), [StepShape(1, 1, 0)], SMALL) == 1
