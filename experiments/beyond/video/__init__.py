"""VideoBERT: text and clips in one BERT."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "video",
    tasks={
        "videos": "experiments.beyond.video.task:Videos",
    },
    options={
        "finetune.init_from": "experiments.beyond.video.options:VideoOptions",
    },
    starts={
        "videobert": "experiments.beyond.video.start:VideoBert",
        "videobert-language-alone": "experiments.beyond.video.start:VideoBert",
        "videobert-random-rows": "experiments.beyond.video.start:VideoBert",
        "videobert-no-joint-masks": "experiments.beyond.video.start:VideoBert",
        "video-counts": "experiments.beyond.video.baselines:VideoBaseline",
        "video-features": "experiments.beyond.video.baselines:VideoBaseline",
    },
    recipes={
        "video": "experiments.beyond.video.recipe:get_config",
    },
    commands={"made_videos": "experiments.beyond.video.made_videos:main"},
)
