"""G-BERT: medications of a visit, codes from a graph."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "gbert",
    tasks={
        "visits": "experiments.beyond.gbert.task:Visits",
    },
    starts={
        "gbert": "experiments.beyond.gbert.start:GBert",
        "gbert-no-graph": "experiments.beyond.gbert.start:GBert",
        "gbert-no-pretraining": "experiments.beyond.gbert.start:GBert",
        "gbert-neither": "experiments.beyond.gbert.start:GBert",
        "gbert-last-visit": "experiments.beyond.gbert.baselines:VisitBaseline",
        "gbert-linear-medications": "experiments.beyond.gbert.baselines:VisitBaseline",
        "gbert-linear-categories": "experiments.beyond.gbert.baselines:VisitBaseline",
        "gbert-linear": "experiments.beyond.gbert.baselines:VisitBaseline",
    },
    recipes={
        "gbert": "experiments.beyond.gbert.recipe:get_config",
    },
    commands={"made_patients": "experiments.beyond.gbert.made_patients:main"},
)
