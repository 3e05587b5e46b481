import numpy as np
import pytest

from data_prep.tasks import featurize as module
from data_prep.tasks import get_task
from data_prep.tasks.classification.sequence_classification import TextExample
from data_prep.tasks.feature_set import FeatureSet
from data_prep.tasks.featurize import cache_key, featurize
from data_prep.tasks.files import formats
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer

TASK = {"labels": ["no", "yes"], "text_column": "text"}


def task_of(**options):
    return get_task("text_classification", **{**TASK, **options})


def examples_of(count):
    texts = ["the cat sat on the mat", "a dog", "who was in london", "the big red dog ran " * 4]
    return [TextExample(str(i), texts[i % 4] + f" {i}", None, "yes") for i in range(count)]


def assert_same(left: FeatureSet, right: FeatureSet):
    assert len(left) == len(right) and list(left.columns) == list(right.columns)
    for name in left.columns:
        for i in range(0, len(left), 97):
            np.testing.assert_array_equal(left[i][name], right[i][name])
        np.testing.assert_array_equal(left.columns[name].values, right.columns[name].values)


def test_features_are_the_tasks_own_in_order_on_any_number_of_processes(tokenizer):
    task, examples = task_of(), examples_of(1200)  # three chunks
    features = featurize(task, examples, tokenizer, 16)
    for index in (0, 3, 511, 512, 1199):
        (expected,) = task.features(examples[index], tokenizer, 16)
        found = features[index]
        assert found.pop("example_index") == index
        assert {k: v.tolist() if hasattr(v, "tolist") else v for k, v in found.items()} == expected
    assert_same(features, featurize(task, examples, tokenizer, 16, num_processes=2))


def test_long_work_goes_to_workers(tokenizer, monkeypatch):
    task, examples = task_of(), examples_of(1800)
    here = featurize(task, examples, tokenizer, 16)
    monkeypatch.setattr(module, "_PARALLEL_FROM_SECONDS", 0.0)
    chunks, make = [], module._features_of_chunk
    monkeypatch.setattr(module, "_features_of_chunk", lambda *a: chunks.append(a[1]) or make(*a))
    monkeypatch.setattr(module, "available_cores", lambda: 2)
    assert_same(featurize(task, examples, tokenizer, 16), here)
    assert chunks == [0, 512]


def test_cache_is_read_back_and_made_again_when_broken(tokenizer, tmp_path, monkeypatch, capsys):
    task, examples = task_of(), examples_of(10)
    first = featurize(task, examples, tokenizer, 16, cache_dir=tmp_path)
    (path,) = tmp_path.glob("*.npz")
    with monkeypatch.context() as patched:
        patched.setattr(module, "_features_of_chunk", None)  # not called
        assert_same(first, featurize(task, examples, tokenizer, 16, cache_dir=tmp_path))
    path.write_bytes(path.read_bytes()[:100])
    assert_same(first, featurize(task, examples, tokenizer, 16, cache_dir=tmp_path))
    assert "making it again" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert_same(first, featurize(task, examples, tokenizer, 16, cache_dir=tmp_path / "file" / "x"))
    assert "features are not kept" in capsys.readouterr().err


def test_everything_that_matters_is_in_the_key(tokenizer, monkeypatch):
    examples = examples_of(3)

    def key(task=None, examples=examples, tokenizer=tokenizer, length=16):
        return cache_key(task or task_of(), examples, tokenizer, length)

    cased = BertTokenizer(tokenizer.vocab, do_lower_case=False)
    more = BertTokenizer([*tokenizer.vocab, "new"])
    keys = [
        key(),
        key(task=task_of(truncation="tail")),
        key(task=task_of(labels=["yes", "no"])),
        key(examples=examples[:2]),
        key(examples=[*examples[:2], TextExample("2", examples[2].text_a, None, "no")]),
        key(tokenizer=cased),
        key(tokenizer=more),
        key(length=32),
    ]
    monkeypatch.setattr(module, "_own_code", lambda *kinds: "other code")
    keys.append(key())
    monkeypatch.setattr(module, "splitter_version", lambda language: "other splitter")
    keys.append(key())
    assert len(set(keys)) == len(keys)
    monkeypatch.undo()
    assert key() == keys[0]


def test_the_code_that_splits_text_is_in_the_key(monkeypatch):
    hashed = []
    monkeypatch.setattr(module, "code_hash", lambda *files: hashed.extend(files))
    module._own_code(type(task_of()), BertTokenizer)
    wanted = {"corpus/sentence_splitter.py", "question_answering/squad.py", "tokenization/base.py"}
    assert wanted <= {"/".join(path.parts[-2:]) for path in hashed}


def test_notes_count_what_was_cut(tokenizer):
    notes = featurize(task_of(), examples_of(8), tokenizer, 16).notes
    counted = {"examples": 8, "features": 8, "longest": 16, "truncated_examples": 2}
    assert notes == counted | {"tokens": notes["tokens"]}


def test_unlabelled_examples_drop_the_labels(tokenizer):
    examples = [*examples_of(3), TextExample("x", "a cat")]
    assert "label_ids" not in featurize(task_of(), examples, tokenizer, 16).columns


def test_no_examples(tokenizer):
    with pytest.raises(UserError, match="no examples"):
        featurize(task_of(), [], tokenizer, 16)


def test_a_vocabulary_of_other_text_is_said_once(tokenizer, monkeypatch, capsys):
    monkeypatch.setattr(formats, "_announced", set())
    others = [TextExample("0", "река течёт в море", None, "yes")]
    featurize(task_of(), others, tokenizer, 16)
    featurize(task_of(), others, tokenizer, 16)
    assert capsys.readouterr().err.count("5% of the tokens are [UNK]: the model's vocabulary") == 1
    featurize(task_of(), [TextExample("1", "the cat sat", None, "yes")], tokenizer, 16)
    assert not capsys.readouterr().err
