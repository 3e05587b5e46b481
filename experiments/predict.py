"""Runs a fine-tuned model over a file: text in, answers with probabilities out.

    python -m experiments.predict --model=runs/spam/model --input=texts.txt --output=answers.tsv

Input (--format), one example a line: "tsv", the text, or for tasks with several inputs (a pair of
sentences; question and context) the texts separated by tabs; "jsonl", objects with these fields,
for entities also "words": a list of words, or a list of such lists, the sentences of a document.
"squad" and "official" are whole files as the task's benchmark has them (questions without answers
too), and so is then the output. By default the ending decides: .jsonl, .json (squad), else tsv.

Output, one line an example in the same order: a .jsonl file, or else a TSV with a header; the input
stands before the answer. An empty line gives an empty line ({} in JSONL). Files of any size are
read and written piece by piece, with .gz at the end of their names compressed; "-" stands for
standard input and output. All is UTF-8.
"""

import contextlib
import gzip
import itertools
import json
import os
import sys

from absl import flags

from data_prep.corpus.text_files import decode_lines
from data_prep.jobs.progress import progress_bar
from data_prep.tasks.reading import check_texts, json_object, read_lines
from experiments.training.config_flags import show_in_help
from experiments.training.predictor import Predictor, read_task, task_on
from official_bert import commands
from official_bert.errors import UserError
from official_bert.files import atomic_write

FORMATS = ("tsv", "jsonl", "squad", "official")
_CHUNK = 1024  # lines that are batched together, by length
# What a TSV shows of a prediction, by the kind of head and problem.
_ANSWERS = {
    ("classification", "single_label"): ("label", "probabilities"),
    ("classification", "multi_label"): ("labels", "probabilities"),
    ("classification", "regression"): ("value",),
    ("multiple_choice", "multiple_choice"): ("label", "probabilities"),
    ("span", "span"): ("text", "probability", "start", "end"),
    ("tagging", "tagging"): ("entities",),
}


def run(model, input_path, output_path, batch_size=32, progress=True, format=""):
    """Predicts for every line of a file.

    Args:
      model: a model folder that fine-tuning wrote.
      input_path, output_path: files, or "-".
      batch_size: rows of a batch; answers do not depend on it.
      progress: show a progress line on stderr.
      format: of the input, one of FORMATS; "": by the ending of its name.

    Returns: {"lines", "empty", "truncated": texts longer than the model's window}.
    Raises:
      UserError: the model is not fine-tuned, or a line has other fields than the task needs.
    """
    format = format or _format_of(input_path)
    if format in ("squad", "official"):
        return _whole_file(model, input_path, output_path, batch_size)
    predictor = Predictor(model, batch_size)
    counts = {"lines": 0, "empty": 0, "truncated": 0}
    name, lines = _numbered_lines(input_path)
    is_json = format == "jsonl"
    with _writing(output_path) as output:
        if _is_jsonl(output_path):
            writer = _json_line
        else:
            task = predictor.task
            writer = _TsvWriter(task.head, predictor.labels, output, predictor.fields)
        with progress_bar(progress, unit="line") as bar:
            while chunk := list(itertools.islice(lines, _CHUNK)):
                for line in _answers(predictor, chunk, name, is_json, counts):
                    output.write(writer(line) + "\n")
                bar.update(len(chunk))
    return counts


def main(_):
    values = flags.FLAGS
    for name in ("model", "input", "output"):
        if not values[name].value:
            raise UserError(f"--{name} is missing")
    read_task(values.model)
    if values.input != "-" and not os.path.isfile(values.input):
        raise UserError(f"--input={values.input}: no such file")
    counts = run(values.model, values.input, values.output, values.batch_size, format=values.format)
    print(
        f"{counts['lines']} lines, {counts['empty']} empty, {counts['truncated']} longer than the "
        "model's window and cut",
        file=sys.stderr,
    )


def _answers(predictor, chunk, name, is_json, counts):
    """One prediction a line, None for an empty one."""
    examples, places, inputs = [], [], []
    for index, (number, line) in enumerate(chunk):
        if line.strip():
            fields = _fields(line, predictor.fields, is_json, f"{name} line {number}")
            asked = [fields[name] for name in _texts_of(fields, predictor.fields)]
            if not any(text.strip() if isinstance(text, str) else text for text in asked):
                continue  # an object of empty texts
            inputs.append({name: fields[name] for name in _texts_of(fields, predictor.fields)})
            fields = {"id": str(number), **fields}
            examples.append(predictor.task.example(fields))
            places.append(index)
    answers = [None] * len(chunk)
    if examples:
        predictions, truncated = predictor.predict(examples)
        counts["truncated"] += truncated
        for place, prediction, fields in zip(places, predictions, inputs, strict=True):
            answers[place] = {**fields, **prediction}
    counts["lines"] += len(chunk)
    counts["empty"] += len(chunk) - len(examples)
    return answers


def _fields(line, names, is_json, where):
    """{field: text} of one line."""
    if is_json:
        fields = json_object(line, where)
        if "words" in fields and names == ("text",):
            _check_words(fields["words"], where)
            return fields
        if any(name not in fields for name in names):
            raise UserError(f"{where}: expected an object with the fields {', '.join(names)}")
        check_texts(fields, names, where)
        return fields
    texts = line.split("\t") if len(names) > 1 else [line]
    if len(texts) != len(names):
        raise UserError(
            f"{where}: {len(texts)} texts, expected {len(names)} separated by tabs "
            f"({', '.join(names)})"
        )
    return dict(zip(names, texts, strict=True))


def _texts_of(fields, names):
    return ("words",) if "words" in fields and names == ("text",) else names


def _check_words(words, where):
    """Words of a text, or of the sentences of a document; see the module's docstring."""
    nested = bool(words) and isinstance(words, list) and isinstance(words[0], list)
    for sentence in words if nested else [words]:
        if not isinstance(sentence, list) or not all(isinstance(w, str) and w for w in sentence):
            raise UserError(f"{where}: words must be a list of words, or of lists of them")


def _whole_file(model, input_path, output_path, batch_size):
    """Reads and writes files as the task's benchmark has them."""
    examples = task_on(model, input_path, "test").examples("test")  # before TensorFlow starts
    predictor = Predictor(model, batch_size)
    predictions, truncated = predictor.predict(examples)
    predictor.task.write(output_path, predictions)
    return {"lines": len(examples), "empty": 0, "truncated": truncated}


class _TsvWriter:
    """Lines of a TSV: a header, then the input, the answer and a probability for each label."""

    def __init__(self, head, labels, output, fields):
        self._fields = fields
        self._columns = _ANSWERS[head["head"], head["problem"]]
        self._labels = labels
        names = list(fields)
        for column in self._columns:
            if column == "probabilities":
                names += [f"probability_{_cell(label)}" for label in labels]
            else:
                names.append(column)
        output.write("\t".join(names) + "\n")

    def __call__(self, prediction):
        if prediction is None:
            return ""
        cells = [_cell(prediction.get(name, "")) for name in self._fields]
        for column in self._columns:
            value = prediction[column]
            if column == "probabilities":
                cells += [f"{p:.6g}" for p in value]
            else:
                cells.append(_cell(value))
        return "\t".join(cells)


def _cell(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _json_line(prediction):
    return "{}" if prediction is None else json.dumps(prediction, ensure_ascii=False)


def _is_jsonl(path):
    return path.removesuffix(".gz").endswith(".jsonl")


def _format_of(path):
    if _is_jsonl(path):
        return "jsonl"
    return "squad" if path.endswith(".json") else "tsv"


def _numbered_lines(path):
    """(what errors call the input, iterator over its (line number, line without its end))."""
    if path == "-":
        name = "standard input"
        return name, decode_lines(sys.stdin.buffer, name)
    return path, read_lines(path)


@contextlib.contextmanager
def _writing(path):
    if path == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # whatever the locale says
        yield sys.stdout
    elif path.endswith(".gz"):
        with (
            atomic_write(path, "wb") as file,
            gzip.open(file, "wt", encoding="utf-8", newline="\n") as text,
        ):
            yield text
    else:
        with atomic_write(path) as file:
            yield file


def _define_flags():
    flags.DEFINE_string("model", None, "model folder that fine-tuning wrote")
    flags.DEFINE_string("input", None, "text, one example a line, or .jsonl; - for standard input")
    flags.DEFINE_string("output", None, "answers: .jsonl, or else TSV; - for standard output")
    flags.DEFINE_enum("format", "", ["", *FORMATS], "of the input; by default by its ending")
    flags.DEFINE_integer("batch_size", 32, "rows of a batch", lower_bound=1)
    show_in_help("model", "input", "output", "format", "batch_size")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
