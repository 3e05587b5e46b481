"""Compares texts by the vectors of any model, without training: what training starts from.

    official-bert compare_texts --model=tiny-wikipedia --data=dev.tsv

prints the scores that a fine-tuning with `--config.task=sentence_vectors` has on that file
(Spearman's correlation, or recall and MRR), beside those of TF-IDF. Vectors are those of `embed`:
--pooling and --layer are its options; --layer=0 is the mean of the model's input vectors.
"""

import json
import os

from data_prep.jobs import command_flags, commands
from data_prep.tasks import get_task
from experiments.beyond.sentence_vectors.similarity import TextVectors
from experiments.training.settings.config_flags import define_task_options, task_options_from_flags
from official_bert.backend import tensorflow_start


def run(
    model: str,
    data: str,
    pooling: str = "",
    layer: int = -1,
    max_length: int = 0,
    batch_size: int = 64,
    task_options=None,
) -> dict:
    """Return {"scores", "tfidf": of the same texts, "rows"}.

    Args:
      model: a folder of any known kind, or a name.
      data: a file of pairs of texts.
      pooling: of `Model.embed`; empty: the model's own.
      layer: the hidden state that is pooled; -1: the last.
      max_length: tokens of a text at most; 0: as the model says.
      batch_size: rows of a batch; scores do not depend on it.
      task_options: {name: value} of `sentence_vectors`.

    Raises:
      UserError: the file or the model is none.
    """
    folder, file = os.path.split(os.path.abspath(data))
    task = get_task("sentence_vectors", folder, dev_file=file, **(task_options or {}))
    examples = task.examples("dev")
    commands.say(f"{len(examples):,} rows; loads {model}")
    tensorflow_start.import_tensorflow()
    import official_bert

    texts = list(dict.fromkeys(text for one in examples for text in task.texts(one)))
    vectors = official_bert.load(model).embed(
        texts,
        pooling=pooling or None,
        layer=layer,
        batch_size=batch_size,
        max_length=max_length or None,
    )
    found = task.compared(examples, TextVectors.of(texts, vectors))
    return {
        "scores": task.score(examples, found),
        "tfidf": task.baseline([], examples),
        "rows": len(examples),
    }


def main(_) -> None:
    print(
        json.dumps(
            run(**command_flags.values(run), task_options=task_options_from_flags()), indent=2
        )
    )


def _define_flags() -> None:
    define_task_options()
    command_flags.define(run, ("task_options",), least={"batch_size": 1, "max_length": 0})


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
