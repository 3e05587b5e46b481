import pickle
import re
import subprocess
import sys

import pytest

from data_prep.tasks import TASKS, get_task
from official_bert.common.errors import UserError


@pytest.mark.parametrize("name", TASKS)
def test_every_name_gives_its_task_without_reading_files(name):
    task = get_task(name, data_dir="/nowhere")
    assert task.name == name
    assert task.metrics and "train" in task.splits
    pickle.loads(pickle.dumps(task))  # worker processes receive it


@pytest.mark.parametrize(
    ("spelling", "name"), [("SST-2", "sst2"), ("squad", "squad_v1.1"), ("SQuAD v2.0", "squad_v2.0")]
)
def test_names_are_found_by_other_spellings(spelling, name):
    assert get_task(spelling.replace(" ", "_")).name == name


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("sst3", {}, "task='sst3'; it is one of .*cola.*conll2003"),
        ("squad_v1.1", {"strides": 3}, "unknown option strides of task squad_v1.1.*doc_stride"),
        ("squad_v1.1", {"version": "2.0"}, "unknown option version"),  # it is fixed
        ("swag", {"windows": 2}, "unknown option windows of task .*; .*raise max_seq_length"),
        ("ner", {"windows": 2}, "unknown option windows of task .*; .*stride"),
        ("squad", {"windows": 2}, "unknown option windows of task .*; .*doc_stride"),
        ("mrpc", {"windows": -1}, "windows=-1"),
        ("mrpc", {"window_overlap": 4}, "window_pooling and window_overlap are of windows"),
        ("mrpc", {"windows": 2, "window_overlap": -1}, "window_overlap=-1"),
        ("mrpc", {"windows": 2, "window_pooling": "sum"}, "'sum'; .* one of mean, max, first_last"),
        ("squad_v1.1", {"context": "page"}, "='page'; it is one of paragraph, answer_sentence"),
        ("squad_v2.0", {"context": "answer_sentence"}, "answer_sentence is for version 1.1"),
        ("squad_v1.1", {"doc_stride": 0}, "doc_stride=0; it is at least"),
        ("squad_v1.1", {"n_best_size": 0}, "n_best_size=0; it is at least"),
        ("squad_v1.1", {"max_answer_length": -1}, "max_answer_length=-1; it is at least"),
        ("squad_v1.1", {"max_query_length": -1}, "max_query_length=-1; it is at least"),
        ("squad_v1.1", {"f1_by": "letters"}, "f1_by='letters'; it is one of words, characters"),
        ("conll2003", {"labels": ["O", "B-PER"]}, "labels: I-PER is missing"),
        ("conll2003", {"labels": "O, B-PER, I-PER, B-PER"}, "labels: B-PER is there twice"),
        ("conll2003", {"stride": -1}, "stride=-1; it is at least 0"),
        ("ner", {"column": "verbs"}, "='verbs'; it is one of entities, chunks, part_of_speech"),
        ("conll2003", {"label_piece": "middle"}, "label_piece='middle'; it is one of first, last"),
        ("conll2003", {"context": "page"}, "context='page'; it is one of document, sentence"),
        ("text_classification", {"dev_from_train": 9, "dev_fraction": 0.1}, "both set; choose"),
        ("text_classification", {"folds": 3, "dev_from_train": 1}, "both set; choose one"),
        ("text_classification", {"folds": 3, "fold": 4}, "=4; folds are 2 or more, fold is 1 to"),
        ("text_classification", {"folds": 3, "fold": 0}, "fold=0"),
        ("text_classification", {"folds": 1}, "folds=1, fold=1"),
        ("text_classification", {"fold": 2}, "folds=0, fold=2"),
        ("sst2", {"dev_from_train": -1}, "dev_from_train=-1; it is a number of examples"),
        ("squad", {"dev_fraction": 1.5}, "dev_fraction=1.5; it is at least 0 and below 1"),
        ("ner", {"dev_fraction": 1.5}, "dev_fraction=1.5; it is at least 0 and below 1"),
    ],
)
def test_tasks_and_options_that_cannot_be_are_refused(task, options, message):
    with pytest.raises(UserError, match=message):
        get_task(task, **options)


@pytest.mark.parametrize(
    ("task", "option", "value", "wanted"),
    [
        ("text_classification", "dev_fraction", "abc", "a number"),
        ("text_classification", "dev_fraction", True, "a number"),
        ("text_classification", "text_column", None, "a text"),
        ("text_classification", "labels", ["ham", None], "a text or a list, each a text"),
        ("squad_v1.1", "doc_stride", "abc", "a whole number"),
        ("squad_v1.1", "doc_stride", 64.5, "a whole number"),
        ("swag", "num_choices", "x", "a whole number"),
        ("swag", "num_choices", True, "a whole number"),
    ],
)
def test_options_of_another_type(task, option, value, wanted):
    message = f"option {option} of task {task} is {value!r}, expected {wanted}"
    with pytest.raises(UserError, match=re.escape(message)):
        get_task(task, **{option: value})


def test_whole_numbers_stand_for_texts_and_floats():
    task = get_task("text_classification", label_column=0, labels=[0, 1], dev_fraction=0)
    assert task.label_column == "0" and task.labels == ["0", "1"]
    assert isinstance(task.dev_fraction, float)
    assert get_task("squad_v1.1", train_file=["a.json", "b.json"]).name == "squad_v1.1"


@pytest.mark.parametrize(
    "name", [n for n in TASKS if n not in ("text_classification", "conll2003")]
)
def test_settings_make_the_task_again(name):
    task = get_task(name, data_dir="/nowhere")
    again = get_task(name, **task.settings())
    assert again.head == task.head and again.input_fields == task.input_fields


def test_tasks_import_neither_keras_nor_tensorflow_nor_scikit_learn():
    code = (
        "import sys; from data_prep.tasks import TASKS, get_task, batches, featurize\n"
        "[get_task(name) for name in TASKS]\n"
        "print({'keras', 'tensorflow', 'sklearn', 'scipy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["text_classification", "swag"])
def test_a_task_without_data_says_what_to_set(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="set data_dir to the folder of the files"):
        get_task(name).examples("train")
