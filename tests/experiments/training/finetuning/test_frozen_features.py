"""Table 7's approach: vectors of a frozen encoder, kept on disk, and BiLSTMs that learn on them."""

import dataclasses
import random

import numpy as np
import pytest
import tiny_runs
from damage import flip

from data_prep.tasks import get_task
from data_prep.tasks.featurize import featurize
from experiments import finetune
from experiments.training.finetuning import frozen_features
from official_bert.common.errors import UserError
from official_bert.encoder import BertEncoder
from official_bert.features import COMBINATIONS
from official_bert.tokenization import BertTokenizer

NAMES = {"paris": "LOC", "london": "LOC", "peter": "PER", "anna": "PER"}
LENGTH = 16


@pytest.fixture(scope="module")
def conll(tmp_path_factory):
    """Return train.txt and valid.txt: documents of several sentences in which some words are
    names."""
    folder = tmp_path_factory.mktemp("conll")
    tiny_runs.write_vocab(folder / "vocab.txt")
    with open(folder / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("\n".join([*NAMES, "##s"]) + "\n")
    draw = random.Random(2)
    for name, documents in (("train", 60), ("valid", 15)):
        lines = []
        for _ in range(documents):
            lines += ["-DOCSTART- O", ""]
            for _ in range(draw.randint(1, 5)):
                for _ in range(draw.randint(2, 9)):
                    word = draw.choice([*NAMES, *tiny_runs.WORDS[:12]])
                    tag = f"I-{NAMES[word]}" if word in NAMES else "O"
                    lines += [f"{word}{draw.choice(['', 's'])} {tag}"]
                lines += [". O", ""]
        (folder / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OFFICIAL_BERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _config(conll, combination, **fields):
    vocab = conll / "vocab.txt"
    bert = tiny_runs.bert(vocab_size=len(vocab.read_text().split()), num_hidden_layers=4)
    values = {"task": "conll2003", "vocab": str(vocab), "bert": bert, "features": combination}
    values |= {"feature_width": 32, "learning_rate": 1e-2, "num_train_epochs": 10.0, "seed": 12345}
    return tiny_runs.finetune_config(conll, **{**values, **fields})


def test_the_vectors_are_the_encoders_where_a_word_has_most_context(conll, tmp_path):
    config = _config(conll, "last")
    task = get_task("conll2003", str(conll))
    examples = task.examples("dev")[:6]
    tokenizer = BertTokenizer(config.vocab)
    windows = featurize(task, examples, tokenizer, LENGTH)
    assert len(windows) > len(examples)  # some documents need several windows
    encoder = BertEncoder(config.bert, seed=1)
    frozen = frozen_features.open_or_compute(
        tmp_path / "f", [0, 3], lambda: encoder, examples, windows, 4, progress=False
    )
    sentences = frozen.sentences
    assert len(sentences) == sum(len(example.sentences) for example in examples)
    words = [word for example in examples for line in example.sentences for word in line]
    gold = [tag for example in examples for line in example.tags for tag in line]
    labels = sentences.columns["label_ids"].values
    assert [task.labels[i] for i in labels] == gold and len(words) == len(gold)

    batch = {"input_ids": sentences.columns["input_ids"].values[None]}
    vectors = frozen.complete(batch)["features"]
    assert vectors.shape == (1, len(words), 2, 16) and vectors.dtype == np.float16
    seen, first = 0, np.cumsum([0, *(sum(map(len, e.sentences)) for e in examples)])
    for window in windows:
        ids = np.asarray(window["input_ids"])[None].astype(np.int32)
        inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": 0 * ids}
        states = encoder(inputs)["hidden_states"]
        for place, word in enumerate(window["word_ids"]):
            if word >= 0:
                row = first[window["example_index"]] + word
                for i, layer in enumerate((0, 3)):
                    np.testing.assert_allclose(
                        vectors[0, row, i], states[layer][0, place], rtol=2e-3, atol=2e-3
                    )
                seen += 1
    assert seen == len(words)


def test_damaged_vectors_are_said_and_computed_again(conll, tmp_path, capsys):
    config = _config(conll, "last", bert=tiny_runs.bert(vocab_size=100, num_hidden_layers=1))
    task = get_task("conll2003", str(conll))
    examples = task.examples("dev")[:2]
    windows = featurize(task, examples, BertTokenizer(config.vocab), LENGTH)
    encoder, folder, built = BertEncoder(config.bert, seed=1), tmp_path / "f", []

    def vectors():
        frozen = frozen_features.open_or_compute(
            folder, [0, 1], lambda: built.append(1) or encoder, examples, windows, 4, False
        )
        rows = frozen.sentences.columns["input_ids"].values[None]
        return frozen.complete({"input_ids": rows})["features"].tobytes()

    capsys.readouterr()  # how the task's files were read
    expected, names = vectors(), sorted(path.name for path in folder.glob("[!.]*"))
    assert vectors() == expected and len(built) == 1 and capsys.readouterr().err == ""
    assert names == ["checksums.json", "layer-00.npy", "layer-01.npy"]
    for count, name in enumerate(names, 2):
        flip(folder / name, -40)
        assert vectors() == expected and len(built) == count
        assert f"{name}" in (said := capsys.readouterr().err) and "making it again" in said
    (folder / "layer-00.npy").unlink()
    assert vectors() == expected and "making it again" in capsys.readouterr().err
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "f"  # where nothing can be kept, training goes on without
    assert vectors() == expected and "the vectors are not kept" in capsys.readouterr().err


def test_a_sentence_longer_than_the_window_is_cut_but_whole_in_the_predictions(conll, tmp_path):
    config = _config(conll, "last")
    task = get_task("conll2003", str(conll))
    example = dataclasses.replace(
        task.examples("dev")[0], sentences=(("paris",) * 40,), tags=(("B-LOC",) * 40,)
    )
    windows = featurize(task, [example], BertTokenizer(config.vocab), LENGTH)
    sentences = frozen_features.sentence_features([example], windows)
    assert sentences.lengths.tolist() == [16, 16, 8]
    logits = [np.eye(len(task.labels))[np.full(n, 1)] for n in sentences.lengths]
    (prediction,) = task.predictions([example], sentences, {"logits": logits})
    assert prediction["tags"] == [["B-LOC"] * 40]


@pytest.mark.slow
def test_the_encoder_runs_once_for_all_rows(conll, tmp_path, cache, monkeypatch):
    calls = []
    compute = frozen_features.compute
    monkeypatch.setattr(frozen_features, "compute", lambda *args: calls.append(1) or compute(*args))
    scores = {}
    for combination in ("concat_last_four", "weighted_sum_all"):
        results = finetune.run(_config(conll, combination), tmp_path / combination, progress=False)
        scores[combination] = results.dev["f1"]
    assert len(calls) == 2  # train and dev
    assert len(list((cache / "hidden_states").glob("[!.]*"))) == 2
    assert min(scores.values()) > 0.7, scores


def test_vectors_are_kept_by_all_that_decides_them(tmp_path):
    bert = tiny_runs.bert()

    def folder(bert=bert, weights=None, precision="float32", seed=1, data="data"):
        return frozen_features.cache_folder(tmp_path, "ner", data, bert, weights, precision, seed)

    quiet = dataclasses.replace(bert, hidden_dropout_prob=0.0)
    assert folder() == folder(bert=quiet)
    others = [
        folder(seed=5),  # other random weights
        folder(weights=[np.ones(3)]),
        folder(weights=[np.zeros(3)]),
        folder(bert=tiny_runs.bert(num_hidden_layers=2)),
        folder(precision="mixed_bfloat16"),
        folder(data="other"),
    ]
    assert len({folder(), *others}) == 7


def test_every_row_of_the_table_has_its_layers():
    bert = tiny_runs.bert(num_hidden_layers=4)
    names = ("weighted_sum_last_four", "concat_last_four", "weighted_sum_all")
    expected = dict.fromkeys(names, [1, 2, 3, 4]) | {"elmo": [0, 1, 2, 3, 4]}
    expected |= {"embeddings": [0], "second_to_last": [3], "last": [4]}
    assert {n: list(frozen_features.layers_of(bert, n)) for n in COMBINATIONS} == expected


def test_only_tagging_tasks(conll, tmp_path):
    (tmp_path / "t.tsv").write_text("text\tlabel\na\tx\nb\ty\nc\tx\nd\ty\ne\tx\nf\ty\ng\tx\nh\ty\n")
    config = _config(
        conll, "last", task="text_classification", data_dir=str(tmp_path / "t.tsv"),
        task_options={"dev_fraction": 0.5},
    )  # fmt: skip
    with pytest.raises(UserError, match="feature-based approach is for tagging"):
        finetune.run(config, tmp_path / "run", progress=False)
