"""Runs a fine-tuned model over a file and writes an answer with probabilities for every row.

    python -m experiments.predict --model=runs/spam/model --input=dev.csv --output=answers.csv

Input: what finetune reads, row for row, with labels or without (TSV, CSV, JSON Lines, JSON,
Parquet; for taggers a token a line, or rows with lists of words; SQuAD's JSON), or plain text: a
text a line, or for tasks with several inputs the texts with tabs between. A line on standard error
says what the file was taken for. Where its beginning does not show that, the command asks for
--format or for an option of the task, --task_options.NAME=VALUE. --format=official writes the
benchmark's own files.

Output, a row for each row in the same order: every column of the input, then the answer. The ending
of its name chooses the format: .jsonl, .json, .csv, .parquet, else a TSV with a header. Input with
a token a line is answered in such lines, with a column of tags; SQuAD's JSON in a .json file by
SQuAD's own predictions. A row without text has no answer; an empty line gives an empty line ({} in
JSON Lines). Files of any size are read and written piece by piece, with .gz at the end of their
names compressed; "-" stands for standard input and output. All is UTF-8.
"""

import itertools
import os

from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from data_prep.jobs.progress import progress_bar
from data_prep.tasks.files import formats
from data_prep.tasks.files.table import FORMATS
from experiments.training.answers.answer_files import open_answers
from experiments.training.answers.predictor import Predictor, read_task, task_on
from experiments.training.settings.config_flags import define_task_options, task_options_from_flags
from official_bert.common.errors import UserError
from official_bert.common.files import beside

_OFFICIAL = ("official", "squad")  # whole files, as the task's benchmark has them
FORMATS = (*FORMATS, *_OFFICIAL)
_CHUNK = 1024  # examples that are batched together, by length


def run(
    model: str,
    input: str,
    output: str,
    batch_size: int = 32,
    progress=True,
    format: str = "",
    task_options=None,
    overwrite: bool = False,
):
    """Predict for every row of a file.

    Args:
      model: a model folder that fine-tuning wrote.
      input: the file of rows to answer; - for standard input.
      output: the file of answers; - for standard output.
      batch_size: rows of a batch; answers do not depend on it.
      progress: show a progress line on stderr.
      format: of the input; empty: what its beginning shows.
      task_options: {name: value}, how the file is read where not as in training.
      overwrite: rename what stands at the output to NAME.~1~ first.

    Returns: {"lines": rows, "empty", "truncated": texts longer than the model's window}.
    Raises:
      UserError: the model is not fine-tuned, a row has other fields than the task needs, or the
        output is there already.
    """
    check_outputs([model, input], files=[output], overwrite=overwrite)
    predictor = Predictor(model, batch_size, task_options)
    if format in _OFFICIAL:
        return _whole_file(model, predictor, input, output, task_options, overwrite)
    inputs = predictor.task.inputs(input, format)
    if getattr(inputs.source, "found", ()) == ("paragraphs",) and formats.ending(output) == "json":
        return _whole_file(model, predictor, input, output, task_options, overwrite)
    counts = {"lines": 0, "empty": 0, "truncated": 0}
    first = list(itertools.islice(inputs.rows, _CHUNK))  # before anything is written
    rest = iter(lambda: list(itertools.islice(inputs.rows, _CHUNK)), [])
    with open_answers(
        output, inputs.source, predictor.task.head, predictor.labels, overwrite
    ) as write, progress_bar(progress, unit=" rows") as bar:  # fmt: skip
        for chunk in itertools.chain([first], rest):
            rows, answers = _answers(predictor, chunk, counts)
            write(rows, answers)
            bar.update(len(rows))
    return counts


def main(_):
    values = command_flags.values(run)
    read_task(values["model"])
    if values["input"] != "-" and not os.path.exists(values["input"]):
        raise UserError(f"--input={values['input']}: no such file")
    counts = run(**values, task_options=task_options_from_flags())
    commands.say(
        f"{counts['lines']} rows, {counts['empty']} empty, {counts['truncated']} longer than the "
        "model's window and cut"
    )


def _answers(predictor, chunk, counts):
    """Return (all rows, an answer to each, None for one without text)."""
    examples = [example for _, example in chunk if example is not None]
    predictions, truncated = predictor.predict(examples) if examples else ([], 0)
    predictions = iter(predictions)
    rows, answers = [], []
    for asked, example in chunk:
        rows += asked
        if example is None:
            answers += [None] * len(asked)
            counts["empty"] += len(asked)
        else:
            answers += predictor.task.answers(asked, next(predictions))
    counts["lines"] += len(rows)
    counts["truncated"] += truncated
    return rows, answers


def _whole_file(model, predictor, input_path, output_path, task_options, overwrite):
    """Answer a whole file in the format of the task's benchmark."""
    examples = task_on(model, input_path, "test", task_options).examples("test")
    predictions, truncated = predictor.predict(examples)
    with beside(output_path, overwrite) as made:
        predictor.task.write(made, predictions)
    return {"lines": len(examples), "empty": 0, "truncated": truncated}


def _define_flags():
    command_flags.define(run, ("task_options",), least={"batch_size": 1}, format=["", *FORMATS])
    define_task_options()


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
