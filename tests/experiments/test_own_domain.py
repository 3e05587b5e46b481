"""docs/own_domain.md on a little of the real scientific text: corpus, vocabulary, models, tasks."""

import dataclasses
import itertools
from pathlib import Path

import pytest

from benchmarks import own_vocabulary
from benchmarks.own_vocabulary import GENERAL, Size
from data_prep import vocab as vocabularies
from data_prep.tasks import get_task
from data_prep.tasks.featurize import featurize
from experiments.training import runs
from experiments.training.settings.config import FinetuneConfig
from experiments.training.start import preflight
from official_bert.checkpoints import embedded, model_folder
from official_bert.tokenization import BertTokenizer, write_vocab

SIZE = Size(
    steps=(1, 1),
    vocab_size=600,
    bert={"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16,
          "num_hidden_layers": 1},
    pretrain={"train_batch_size": 8, "max_heldout_examples": 8},
)  # fmt: skip


@pytest.fixture(scope="module")
def data(data_dir, tmp_path_factory):
    """Return the folder `scientific` with the beginnings of its files."""
    folder = tmp_path_factory.mktemp("scientific")
    files = {f"ner/{name}/{split}.txt": 4000 for name in own_vocabulary.TAGGED
             for split in ("train", "dev")}  # fmt: skip
    files |= {f"text_classification/sci-cite/{split}.txt": 60 for split in ("train", "dev")}
    for name, lines in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with open(data_dir / "scientific" / name, encoding="utf-8") as file:
            (folder / name).write_text("".join(itertools.islice(file, lines)), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(data, tmp_path_factory):
    """Return (work folder, the corpus's files): a vocabulary, and records of it and of the general
    one."""
    folder = tmp_path_factory.mktemp("own")
    corpus = own_vocabulary.write_corpus(folder / "corpus", data)
    write_vocab(folder / "vocab.txt", vocabularies.learn_vocab(corpus, SIZE.vocab_size))
    return folder, corpus


def records(made, kind, vocab):
    folder, corpus = made
    return {
        name: str(own_vocabulary.make_records(corpus, vocab, folder / kind / name, *row, False))
        for name, row in own_vocabulary.LENGTHS.items()
    }


def test_a_corpus_of_tagged_and_of_plain_text(made):
    _, corpus = made
    texts = [Path(path).read_text(encoding="utf-8") for path in corpus]
    assert texts[0].startswith("Identification of APC2 , a homologue of the adenomatous")
    assert [text.strip().count("\n\n") for text in texts] == [0, 24, 59]  # NCBI's has no documents
    assert not any("DOCSTART" in text or '"label"' in text for text in texts)


def test_what_an_own_vocabulary_changes(made, data):
    """At equal size it cuts the domain's words less often, entities above all."""
    folder, _ = made
    general = embedded.find(GENERAL) / "vocab.txt"
    with open(general, encoding="utf-8") as file:
        of_equal_size = BertTokenizer([line.rstrip("\n") for line in file][: SIZE.vocab_size])
    own = BertTokenizer(folder / "vocab.txt")
    for name in own_vocabulary.TAGGED:
        before = own_vocabulary.pieces(of_equal_size, data, name)
        after = own_vocabulary.pieces(own, data, name)
        assert 1 < after["pieces_a_word"] < before["pieces_a_word"]
        assert after["pieces_a_word_of_entities"] < before["pieces_a_word_of_entities"]
        assert 1 > after["whole_entities"] > before["whole_entities"]


def test_going_on_with_the_general_vocabulary(made):
    vocab = embedded.find(GENERAL) / "vocab.txt"
    config = own_vocabulary.pretraining(SIZE, records(made, "general", vocab), vocab, GENERAL)
    _, [(opened, _)], _ = preflight.pretraining(config)
    assert config.num_train_steps == 2 and opened.max_seq_length == 64


def test_from_own_pieces_to_tags(made, data, tmp_path):
    vocab = made[0] / "vocab.txt"
    config = own_vocabulary.pretraining(SIZE, records(made, "own", vocab), vocab)
    assert [phase.max_seq_length for phase in config.phases] == [16, 64]
    config = dataclasses.replace(config, phases=config.phases[:1])  # to compile one is enough
    model = runs.pretrain(config, tmp_path / "pretrained", progress=False).model
    assert model_folder.load(model).tokenizer.vocab == BertTokenizer(vocab).vocab
    tagging = FinetuneConfig(
        task="ner", data_dir=str(data / "ner" / "bc5cdr"), task_options={"context": "sentence"},
        model=str(model), max_seq_length=64, max_train_examples=8, max_dev_examples=8,
        train_batch_size=8, num_train_epochs=1.0,
    )  # fmt: skip
    results = runs.finetune(tagging, tmp_path / "ner", progress=False)
    assert results.train_examples == results.dev_examples == 8  # sentences of one document
    assert results.steps >= 1 and 0 <= results.dev["f1"] <= 1


def test_sentences_with_a_class(made, data, tmp_path):
    cited = data / "text_classification" / "sci-cite"
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_bytes((cited / f"{split}.txt").read_bytes())
    task = get_task("text_classification", str(tmp_path))
    assert task.labels == ["background", "method", "result"]
    tokenizer = BertTokenizer(made[0] / "vocab.txt")
    features = featurize(task, task.examples("dev"), tokenizer, 64, num_processes=1)
    assert len(features) == 60 and features.columns["label_ids"].values.max() == 2


def test_the_report():
    one = {"pieces_a_word": 1.5, "pieces_a_word_of_entities": 2.25, "whole_entities": 0.125}
    counted = {name: {**one, "unknown": 0.0} for name in own_vocabulary.TAGGED}
    found = {
        "size": dataclasses.asdict(SIZE),
        "pieces": {"general": counted, "own": counted},
        "f1": {row: [0.5, 0.625] for row in own_vocabulary.ROWS},
        "baseline": 0.75,
    }
    text = own_vocabulary.markdown(found)
    assert "| bc5cdr | own | 1.500 | 2.250 | 12.5% | 0.00% |" in text
    assert f"{own_vocabulary.ROWS['own vocabulary']} | 56.2 | 50.0, 62.5 |" in text
    assert text.endswith("| 75.0 | |\n")
