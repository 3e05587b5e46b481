"""Measures a pre-trained model on records: masked-LM loss and perplexity, next-sentence accuracy.

    python -m experiments.evaluate --model=MODEL --records=heldout/

MODEL is a model folder, an imported checkpoint's folder or a preset with its pre-training heads;
the records come from data_prep.create_pretraining_data with the vocabulary of the model. Prints one
JSON object, which --output also writes to a file.
"""

import json

from experiments.training.config import show_in_help
from official_bert import commands
from official_bert.errors import UserError


def run(model, records, batch_size=32, max_examples=0, precision="float32"):
    """Held-out metrics of a model.

    Args:
      model: path or preset's name.
      records: folder or glob of pre-training records.
      batch_size: rows of a batch; results do not depend on it.
      max_examples: how many records to use, rounded up to whole batches; 0: all.
      precision: "float32" or "mixed_bfloat16".

    Returns: see `heldout.measure`, plus "examples": how many the records hold.
    Raises:
      UserError: the model has no pre-training heads, or the records are of another vocabulary.
    """
    import tensorflow as tf

    from data_prep.records import open_records
    from experiments.training import evaluation, heldout
    from experiments.training.pretrain_feed import check_fit
    from official_bert.checkpoints import resolve

    opened = open_records(records)
    loaded = resolve.load(model, dtype=precision)
    if loaded.head != "pretraining":
        raise UserError(
            f"{model} has no masked-LM head (its head is {loaded.head}); "
            "evaluate needs a pre-trained model before fine-tuning"
        )
    check_fit(opened, records, loaded.config, loaded.tokenizer)

    @tf.function(reduce_retracing=True, autograph=False)
    def terms(batch):
        return evaluation.terms(loaded.model, batch)

    metrics = heldout.measure(
        lambda batches: evaluation.means(map(terms, batches)), records, batch_size, max_examples
    )
    return {"examples": opened.examples, **metrics}


def main(_):
    from absl import flags

    values = flags.FLAGS
    for name in ("model", "records"):
        if not values[name].value:
            raise UserError(f"--{name} is missing")
    commands.import_tensorflow()
    metrics = run(
        values.model, values.records, values.batch_size, values.max_examples, values.precision
    )
    print(json.dumps(metrics, indent=2))
    if values.output:
        from official_bert.files import atomic_write

        with atomic_write(values.output) as file:
            json.dump(metrics, file, indent=2)


def _define_flags():
    from absl import flags

    flags.DEFINE_string("model", None, "model folder, imported checkpoint or preset")
    flags.DEFINE_string("records", None, "folder or glob of pre-training records")
    flags.DEFINE_string("output", "", "also write the JSON to this file")
    flags.DEFINE_integer("batch_size", 32, "rows of a batch", lower_bound=1)
    flags.DEFINE_integer("max_examples", 0, "use only so many records; 0: all", lower_bound=0)
    flags.DEFINE_enum("precision", "float32", ["float32", "mixed_bfloat16"], "of the computation")
    show_in_help("model", "records", "output", "batch_size", "max_examples", "precision")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
