"""Pages of the API: public names in groups, each with a sentence and an example."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Group:
    """A page of the API.

    Attributes:
      file: its name in docs/api/.
      title: its heading.
      about: a sentence or two.
      example: Python that runs without a network; `tests/test_docs.py` runs it.
      names: dotted paths of what it shows.
    """

    file: str
    title: str
    about: str
    example: str
    names: tuple[str, ...]


GROUPS = (
    Group(
        "load",
        "Load and Model",
        "`load` opens a model by its folder or name; the `Model` answers texts. `save` writes a "
        "model folder.",
        """import official_bert

model = official_bert.load("tiny-wikipedia")
model.fill_mask("He was a member of the [MASK] Party.")["text"]
model.embed(["A cat sleeps.", "A kitten naps."]).shape""",
        ("predict.load", "predict.Model", "checkpoints.model_folder.save",
         "common.errors.UserError"),
    ),
    Group(
        "encoder",
        "Encoder and pre-training",
        "`BertEncoder` is section 3 of the paper as a Keras model; `BertPretrainer` adds the "
        "objectives.",
        """import official_bert

config = official_bert.named_config("tiny")
encoder = official_bert.BertEncoder(config, seed=0)
pretrainer = official_bert.BertPretrainer(encoder, objectives=("masked_lm",))
pretrainer.count_params()""",
        ("config.BertConfig", "config.named_config", "encoder.BertEncoder",
         "pretraining.BertPretrainer", "features.LayerCombination"),
    ),
    Group(
        "heads",
        "Heads",
        "The heads for fine-tuning of Figure 4 are Keras models around an encoder, with losses and "
        "metrics of their own.",
        """import official_bert

encoder = official_bert.BertEncoder(official_bert.named_config("tiny"), seed=0)
classifier = official_bert.BertClassifier(encoder, num_labels=3, seed=1)
tagger = official_bert.BertTagger(encoder, num_labels=9, seed=1)""",
        ("heads.BertClassifier", "heads.BertTagger", "heads.BertSpan", "heads.BertMultipleChoice"),
    ),
    Group(
        "tokenizers",
        "Tokenisers",
        "A tokeniser makes batches of token ids; `TokenizerLayer` does the same inside a graph of "
        "TensorFlow.",
        """import official_bert

tokenizer = official_bert.load("tiny-wikipedia").tokenizer
batch = tokenizer(["A cat sleeps.", "Who naps?"], max_length=16)
tokenizer.decode(tokenizer.encode("a kitten"))""",
        ("tokenization.BertTokenizer", "export.tokenizer_layer.TokenizerLayer"),
    ),
    Group(
        "training",
        "Training",
        "BERT's Adam and its relatives, with their schedules; `fit` takes them as any Keras "
        "optimiser.",
        """import numpy as np
import official_bert

model = official_bert.load("tiny-wikipedia")
classifier = official_bert.BertClassifier(model.encoder, num_labels=2, seed=1)
schedule = official_bert.WarmupLinearDecay(5e-5, 1, 2)
classifier.compile(official_bert.BertAdamW(schedule))
texts, labels = ["good", "bad"] * 4, np.array([1, 0] * 4)
classifier.fit(model.tokenizer(texts), labels, batch_size=4, verbose=0)""",
        ("optimization.BertAdamW", "optimization.BertLamb", "optimization.WarmupLinearDecay"),
    ),
    Group(
        "export",
        "Export",
        "`export` writes a SavedModel from text to answer, `export_ids` ONNX and LiteRT files, and "
        "`load` opens a SavedModel.",
        """from official_bert.export import export, export_ids, load

export("tiny-wikipedia", "served")
load("served").signatures""",
        ("export.saved_model.export", "export.formats.id_export.export_ids",
         "export.settings.ServingSettings", "export.client.load"),
    ),
    Group(
        "data",
        "Data and experiments",
        "Commands do this work from a terminal ([own text, own tasks](../own_data.md)); these "
        "functions do it from Python.",
        """from data_prep.tasks import get_task
from experiments.training.settings.config_files import load_config

config = load_config("text_classification:small", {"model": "tiny-wikipedia"})
task = get_task("text_classification", labels="ham,spam")
task.head""",
        ("data_prep.create_pretraining_data.create", "data_prep.records.open_records",
         "data_prep.tasks.get_task", "experiments.training.settings.config.PretrainConfig",
         "experiments.training.settings.config.FinetuneConfig",
         "experiments.training.runs.pretrain", "experiments.training.runs.finetune",
         "experiments.training.folder.run_results.PretrainingResults",
         "experiments.training.folder.run_results.FinetuningResults"),
    ),
)  # fmt: skip


def page(group: Group) -> str:
    """Return the Markdown of a page of the API."""
    shown = [f"::: {path_of(name)}" for name in group.names]
    parts = [f"# {group.title}", group.about, f"```python\n{group.example}\n```", *shown]
    return "\n\n".join(parts) + "\n"


def path_of(name: str) -> str:
    """Return the whole dotted path of a name; those without a package are of official_bert."""
    return name if name.startswith(("data_prep.", "experiments.")) else f"official_bert.{name}"
