"""The tables of docs/distribution.md that come from benchmarks/results/gpu."""

from benchmarks.gpu.results import read
from benchmarks.gpu.steps import FIRST, OURS, SIZES, THEIRS
from experiments.configs import table5, table6
from experiments.training.settings.config import PretrainConfig
from experiments.training.settings.flops import pretraining_step_flops
from official_bert.config import named_config

RESULTS = "benchmarks/results/gpu"
SITTING = "2026-11-27"  # folder of the figures that the page shows
OTHER = "steps_first_sitting.json"  # of the same day, for what one sitting lacks
PEAK = 989e12  # FLOP/s, of which the shares are
DOLLARS = 3  # of an hour


def steps(root) -> list[list[str]]:
    """Return a line a shape: this project's step, and transformers' of the same sitting.

    Args:
      root: path of the repository.
    """
    runs = _runs(root)
    other = read(root / RESULTS / SITTING / OTHER)["runs"]
    lines = [["tokens a step", "", "length", "ms", "tokens/s", "share", "GiB",
              "transformers: ms", "share", "GiB", "times as fast"]]  # fmt: skip
    for more in ("", ", 65,536 tokens"):
        for size in reversed(FIRST[:1] if more else sorted(SIZES, key=_by_size, reverse=True)):
            for length in (128, 512):
                part = f"{size} {length}{more}: "
                ours, theirs = runs[part + OURS], runs.get(part + THEIRS)
                note = "" if theirs else " (another sitting)"
                theirs = theirs or other[part + THEIRS]
                layers, width, _ = SIZES[size]
                lines.append([
                    f"{ours['rows'] * length:,}", f"{size} ({layers}/{width})", str(length),
                    f"**{ours['step_ms']:.1f}**", f"{ours['tokens_per_s']:,.0f}",
                    f"{ours['share']:.1%}", f"{ours['peak_gib']:.1f}",
                    f"{theirs['step_ms']:.1f}{note}", f"{theirs['share']:.1%}",
                    f"{theirs['peak_gib']:.1f}", f"{theirs['step_ms'] / ours['step_ms']:.2f}",
                ])  # fmt: skip
    return lines


def costs(root) -> list[list[str]]:
    """Return a line a run of the paper: hours of one GPU, and their price."""
    shares = {
        (SIZES[size][1], length): _runs(root)[f"{size} {length}: {OURS}"]["share"]
        for size in ("base", "large")
        for length in (128, 512)
    }
    base = table5.get_config("paper").variants[0].pretrain
    runs = {
        "base, a million steps": [base],
        "large, a million steps": [base.__class__(**{**vars(base), "bert": named_config("large")})],
    }
    for table, description in ((table5, "BERT, No NSP, left to right"), (table6, "six sizes")):
        planned = table.get_config("paper")
        runs[f"`{planned.name}:paper`: {description}"] = [
            one.pretrain for one in planned.variants if not one.random_init
        ]
    lines = [["", "hours of one H200", f"dollars at {DOLLARS} an hour"]]
    for name, configs in runs.items():
        hours = sum(seconds(config, shares) for config in configs) / 3600
        lines.append([name, f"{hours:.0f}", f"{DOLLARS * hours:.0f}"])
    return lines


def seconds(config: PretrainConfig, shares) -> float:
    """Return how long a pre-training takes.

    Args:
      shares: of the peak, {(width, tokens a row): share}.
    """
    bert, total = config.bert_config, 0.0
    for phase in config.phases:
        length = phase.max_seq_length
        masked = {128: 20, 512: 77}[length]  # of the paper's records
        rows = phase.train_batch_size or config.train_batch_size
        flops = pretraining_step_flops(bert, config.objectives, rows, length, masked)
        rate = PEAK * shares[bert.hidden_size, length]
        total += phase.num_train_steps * flops / rate
    return total


def _runs(root):
    return read(root / RESULTS / SITTING / "steps.json")["runs"]


def _by_size(size):
    return SIZES[size][:2]
