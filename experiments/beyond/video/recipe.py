"""VideoBERT (Sun et al. 2019): text and clips in one BERT, asked what is done to what.

    official-bert made_videos --output=data/videos
    python -m experiments.finetune --config=video --config.data_dir=data/videos --workdir=runs/video

or a folder of one's own (docs/video.md); --config.model says what is left out:
videobert-language-alone, videobert-random-rows, videobert-no-joint-masks. The table of its ideas,

    python -m experiments.ablate --config=video:cpu --config.data_dir=data --workdir=runs/table

sets them side by side, where data holds `videos`. Scales: finetune (the paper's sizes), cpu (64
wide, three seeds a row, 1.7 minutes of a core a model, 26 in all), smoke (one seed, a few steps).

Expected: see experiments/results/PLAN.md.
"""

import dataclasses

from experiments.beyond.video.start import NAMES
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.claims import Claim, each
from experiments.training.settings.config import FinetuneConfig, choose_scale
from official_bert.config import BertConfig, named_config

FINETUNE = FinetuneConfig(
    task="videos",
    model="videobert",
    bert=named_config("large"),  # but for vocab_size
    max_seq_length=128,
    train_batch_size=128,
    learning_rate=1e-5,
    num_train_epochs=20.0,
    save_model=False,
)
_CPU = dataclasses.replace(
    FINETUNE,
    model="",
    data_dir="videos",
    task_options={"k": 6, "depth": 3},
    bert=BertConfig(
        vocab_size=1,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=48,
        gelu_form="tanh",
    ),
    max_seq_length=40,
    train_batch_size=16,
    learning_rate=2e-3,
    num_train_epochs=12.0,
)
_LABELS = ("VideoBERT", "asked without clips", "random rows", "no masks in joint rows")
_BASELINES = {"linear, visual words": "video-counts", "linear, features": "video-features"}
_FEWER = "an eighth of the videos"
_NEW = {f"{what}, never told": f"new_{what}_top1" for what in ("verb", "noun")}
_COLUMNS = _NEW | {
    "verb, five": "new_verb_top5",
    "noun, five": "new_noun_top5",
    "verb, told": "told_verb_top1",
    "noun, told": "told_noun_top1",
}


def get_config(scale: str = "finetune") -> FinetuneConfig | Ablation:
    made = {
        "finetune": lambda: FINETUNE,
        "cpu": lambda: _table("cpu", _CPU, 3),
        "smoke": lambda: _table("smoke", dataclasses.replace(_CPU, num_train_epochs=0.125), 1),
    }
    return choose_scale(made, scale)


def _table(scale: str, config: FinetuneConfig, seeds: int) -> Ablation:
    whole, alone, random, no_masks = _LABELS
    variants = [
        Variant(label, seeds=tuple(range(1, seeds + 1)), checkpoint=name)
        for label, name in zip(_LABELS, NAMES, strict=True)
    ]
    variants += [Variant(label, checkpoint=name) for label, name in _BASELINES.items()]
    # The same number of steps.
    fewer = {"max_train_examples": 150, "num_train_epochs": 8 * config.num_train_epochs}
    claims = {
        alone: ("clips say more than the language alone", "4.4"),
        _FEWER: ("more videos are better", "4.5"),
        random: ("rows that begin as frozen centroids are better than random ones", "4.3"),
        no_masks: ("rows of text and clips have to be masked", "3.2"),
    }
    return Ablation(
        name="video",
        title="VideoBERT on made videos",
        scale=scale,
        variants=tuple(variants),
        columns=tuple(Column(label, config, metric) for label, metric in _COLUMNS.items()),
        rows=(
            Row(whole, whole),
            Row(alone, alone),
            Row(_FEWER, whole, finetune=fewer),
            Row(random, random),
            Row(no_masks, no_masks),
            *(Row(label, label) for label in _BASELINES),
        ),
        claims=tuple(
            Claim(other, text, section, each(_NEW, whole, other), own=other in (random, no_masks))
            for other, (text, section) in claims.items()
        ),
        notes=(
            "videos are made (official-bert made_videos): features of a verb, a thing and noise; a "
            "quarter of the pairs is never told in words; best.json has the best possible scores",
        ),
    )
