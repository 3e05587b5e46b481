"""GLUE's baselines on given word vectors, as fine-tuning runs and as rows of a table."""

import pytest
import tiny_runs

from data_prep.tasks import get_task
from experiments import finetune
from experiments.beyond.words import start as word_vectors
from experiments.tables.planning.ablation import Ablation, Column, Row, Variant
from experiments.tables.planning.plan import plan_table
from experiments.tables.run.cells import run_cell
from experiments.tables.run.grid import Grid
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_files import load_config
from experiments.training.settings.flops import LSTM_RATE
from experiments.training.settings.options import replaced
from experiments.training.start import finetuning_preflight
from official_bert.common.errors import UserError
from tests.beyond.tfidf.test_tfidf import check_folder


@pytest.fixture
def files(tmp_path):
    """Return (folder of texts about cats and others, file of word vectors)."""
    vectors = tmp_path / "vectors.txt"
    lines = (f"{word} {i % 7 - 3} {i % 5 - 2} {i % 3 - 1} {float(word == 'cat')}"
             for i, word in enumerate(tiny_runs.WORDS))  # fmt: skip
    vectors.write_text("\n".join(lines) + "\n")
    return tiny_runs.write_labelled_texts(tmp_path), vectors


def config_of(files, **fields):
    texts, vectors = files
    values = {
        "task": "text_classification", "data_dir": str(texts), "word_vectors": str(vectors),
        "max_seq_length": 16, "train_batch_size": 16, "learning_rate": 3e-2,
    }  # fmt: skip
    return replaced(load_config("cbow"), **{**values, **fields})


@pytest.mark.parametrize("name", word_vectors.NAMES)
def test_runs(files, tmp_path, name):
    config = config_of(files, model=name, feature_width=8, num_train_epochs=6.0)
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert results.dev["accuracy"] > results.baseline["accuracy"] + 0.1
    check_folder(config, results)
    again = finetune.run(config, tmp_path / "run", progress=False)
    assert again.dev == results.dev


def test_planned_operations(files):
    # A word has 4 vector numbers, 4 cells a direction: 4 gates that read input and output.
    one_text = (4 + 4) * 16 * 2 + (8 + 4) * 16 * 2
    attention = (16 + 4) * 16 * 2
    config = config_of(files, model="bilstm_attention", feature_width=8, num_train_epochs=2.0)
    words = 16 * 2 * (3 * 2 * 10 + 5)  # two texts; forward once and backward twice; ten and five
    expected = 2 * words * (one_text + attention)
    assert word_vectors.WordVectors().planned_work(config, None, 10, 5) == [(expected, LSTM_RATE)]
    assert word_vectors.WordVectors().planned_work(config_of(files), None, 10, 5) == [
        (0, LSTM_RATE)
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"word_vectors": ""}, "model=cbow reads word vectors: --config.word_vectors=FILE"),
        ({"word_vectors": "none.txt"}, "--config.word_vectors=none.txt: no such file"),
        ({"freeze": "embeddings"}, "--config.freeze is not for --config.model=cbow"),
        ({"feature_width": 7}, "must be even"),
        ({"task": "swag", "data_dir": "."}, "model=cbow tells one or two texts apart; swag is mul"),
        ({"task_options": {"windows": 2}}, "windows of texts"),
    ],
)
def test_what_they_cannot_do(files, tmp_path, fields, message):
    with pytest.raises(UserError, match=message):
        finetune.run(config_of(files, **fields), tmp_path / "run", progress=False)


def test_a_cell_knows_its_vectors(files, tmp_path):
    texts, vectors = files
    config = config_of(files, data_dir="", model="")
    column = Column("C", replaced(config, data_dir=str(texts)), "accuracy", (1, 2))
    table = Ablation(
        "t", "T", "smoke", variants=(Variant("CBOW", checkpoint="cbow"),), columns=(column,),
        rows=(Row("CBOW", "CBOW"),),
    )  # fmt: skip

    def keys(table):
        grid = Grid(plan_table(table).cells, tmp_path / "work")
        return [grid.key(name) for name in grid.cells]

    def changed(path):
        return keys(replaced(table, columns=(column.changed(word_vectors=path),)))

    first = keys(table)
    assert len(first) == 2
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    place = vectors.rename(folder / vectors.name)
    assert changed(str(place)) == first
    place.write_text("cat 1 2\n")
    assert changed(str(place)) != first


def test_vectors_of_the_tables_own_text(files, tmp_path):
    pytest.importorskip("gensim")
    text = tmp_path / "text.txt"
    text.write_text("The cat sat on the mat.\n" * 6)
    options = {"kind": "skip_gram", "seed": 2, "do_lower_case": True}
    (folder := tmp_path / "cell").mkdir()
    told = run_cell("vectors", {"inputs": [str(text)], "options": options}, folder)
    assert told == {"words": 6, "width": 100}
    config = config_of((files[0], folder / "vectors.txt"))
    start = word_vectors.start(config, get_task(config.task, config.data_dir), {})
    assert start.tokenizer.tokenize("A CAT sat.") == ["[UNK]", "cat", "sat", "."]
    assert start.vectors.shape == (5 + 6, 100) and start.vectors[5:].any(axis=1).all()


def test_configurations():
    assert load_config("bilstm_attention").feature_width == 3000
    assert isinstance(load_config("bilstm_attention:small"), FinetuneConfig)


def test_vectors_are_not_for_a_bert(files):
    config = config_of(files, model="tiny-wikipedia")
    with pytest.raises(UserError, match="--config.word_vectors is not for --config.model=tiny"):
        finetuning_preflight.finetuning(config)
