"""Word senses of a made WordNet: pairs, forms, what no gloss may tell, scores by hand."""

import dataclasses

import pytest

from data_prep.tasks import get_task
from data_prep.tasks.classification.sequence_classification import TextExample
from experiments.beyond.word_senses.lesk import answer
from experiments.beyond.word_senses.task import KINDS
from experiments.training.finetuning import example_scores
from experiments.training.settings.config import FinetuneConfig
from experiments.training.settings.config_files import load_config
from experiments.training.start import finetuning_preflight
from official_bert.common.errors import UserError

INDEX = {
    "noun": "bank n 2 1 @ 2 2 00000002 00000001\nstride n 1 1 @ 1 0 00000003\n",
    "verb": "go v 2 0 2 2 00000005 00000006\nput_up v 2 0 2 1 00000006 00000005\n",
}
DATA = {
    "noun": '00000001 03 n 01 bank 0 000 | a slope (as in "left bank"); "she sat on the banks"\n'
    '00000002 03 n 01 Bank 0 000 | an institution; "the bank lent it"; "her Bank; no bank"\n'
    '00000003 03 n 01 stride 0 000 | a step; "long strides"\n',
    "verb": '00000005 03 v 02 go 0 put_up 0 000 00 | move; "he went to put it up"\n'
    '00000006 03 v 02 go 0 put_up 0 000 00 | build; "they put up a house"; "nothing of it"\n',
}


@pytest.fixture
def folder(tmp_path):
    for kind in KINDS:
        licence = "  1 This is WordNet's licence\n"
        (tmp_path / f"index.{kind}").write_text(licence + INDEX.get(kind, ""))
        (tmp_path / f"data.{kind}").write_text(licence + DATA.get(kind, ""))
        exceptions = "went go\ngone go\n" if kind == "verb" else ""
        (tmp_path / f"{kind}.exc").write_text(exceptions)
    return tmp_path


def test_pairs_of_contexts_and_glosses(folder):
    task = get_task("word_senses", str(folder))
    pairs = {e.id: e for split in ("train", "dev") for e in task.examples(split)}
    assert [f"{e.text_a} | {e.text_b} | {e.label}" for name, e in sorted(pairs.items())] == [
        'she sat on the " banks " | bank : an institution | no',
        'she sat on the " banks " | bank : a slope (as in "left bank") | yes',
        'the " bank " lent it | bank : an institution | yes',
        'the " bank " lent it | bank : a slope (as in "left bank") | no',
        'her " Bank "; no bank | bank : an institution | yes',
        'her " Bank "; no bank | bank : a slope (as in "left bank") | no',
        'he " went " to put it up | go : move | yes',
        'he " went " to put it up | go : build | no',
        'they " put up " a house | put up : build | yes',
        'they " put up " a house | put up : move | no',
    ]
    assert sorted(pairs)[0] == "bank.noun.0/0"


def test_no_word_is_on_both_sides(folder):
    lines = "".join(f"w{i} n 2 0 2 2 00000001 00000002\n" for i in range(200))
    (folder / "index.noun").write_text(lines)
    data = "".join(
        f'0000000{s} 03 n c8 {" ".join(f"w{i} 0" for i in range(200))} 000 | gloss {s}; '
        + "; ".join(f'"a w{i} is {s}"' for i in range(200)) + "\n" for s in (1, 2)
    )  # fmt: skip
    (folder / "data.noun").write_text(data)
    task = get_task("word_senses", str(folder))
    train, dev = task.examples("train"), task.examples("dev")
    words = [{*task.clusters(examples)} for examples in (train, dev)]
    assert not words[0] & words[1] and 5 < len(words[1]) < 45 and len(words[0]) > 150
    fewer = get_task("word_senses", str(folder), dev_words=3).examples("dev")
    instances = list(dict.fromkeys(e.id.rpartition("/")[0] for e in dev))
    spread = [instances[i * len(instances) // 3] for i in range(3)]
    assert fewer == [e for e in dev if e.id.rpartition("/")[0] in spread]


def test_scores_by_hand(folder):
    task = get_task("word_senses", str(folder))
    examples = [e for split in ("train", "dev") for e in task.examples(split)]
    examples = sorted((e for e in examples if e.id.startswith("bank")), key=lambda e: e.id)
    yes = [0.4, 0.3, 0.2, 0.1, 0.6, 0.7]  # of three contexts the second alone is right
    predictions = [{"label": "yes" if p > 0.5 else "no", "probabilities": [1 - p, p]} for p in yes]
    scores = task.score(examples, predictions)
    # Two pairs are called yes, one of them rightly; three are.
    assert scores == pytest.approx({"sense_accuracy": 1 / 3, "f1": 2 * 1 / (2 + 3)})
    assert task.baseline(examples, examples)["sense_accuracy"] == pytest.approx(2 / 3)


def test_files_that_are_none(folder, tmp_path):
    for name, whole, damaged, message in (
        (
            "data.noun",
            DATA["noun"],
            "<html>\n",
            r"data\.noun line 1: no line of WordNet's database",
        ),
        ("data.noun", DATA["noun"], DATA["noun"][:180], r"data\.noun line 3: no line of WordNet"),
        (
            "data.verb",
            DATA["verb"],
            DATA["verb"].replace("02 go", "04 go"),
            r"data\.verb line 1: no",
        ),
        ("index.noun", INDEX["noun"], "bank n 0 0\n", r"index\.noun line 1: no line of WordNet's"),
        (
            "index.noun",
            INDEX["noun"],
            INDEX["noun"].partition("stride")[0],
            r"of index\.noun and data\.noun only one says that 'stride' has the sense 00000003",
        ),
        (
            "data.noun",
            DATA["noun"],
            DATA["noun"] + DATA["noun"].splitlines()[0].replace(" | ", " | not ") + "\n",
            r"data\.noun: '\d+' is there twice, with two contents",
        ),
        ("verb.exc", "went go\n", "went\n", r"verb\.exc line 1: no line of WordNet's database"),
        ("verb.exc", "went go\n", b"\xff", r"verb\.exc line 1: byte 0xff at column 1 is not UTF-8"),
    ):
        (folder / name).write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
        with pytest.raises(UserError, match=message):
            get_task("word_senses", str(folder)).examples("train")
        (folder / name).write_text(whole)
    with pytest.raises(UserError, match=r"WordNet \(Debian: wordnet-base\): looked for"):
        get_task("word_senses", str(tmp_path / "none")).examples("dev")
    with pytest.raises(UserError, match="dev_words=-1"):
        get_task("word_senses", dev_words=-1)


def test_configurations():
    assert load_config("word_senses").train_batch_size == 64
    assert load_config("word_senses:small").task_options == {"dev_words": 500}


def test_lesk_by_hand():
    """Words in common decide, but for stop words and the word itself; the first sense wins ties."""
    glosses = ("an institution that lends money", "a slope beside the water", "the water of a bank")
    contexts = (
        'he sat by the water on the " bank "',
        'the " bank " lends to him',
        'a " bank " of it',
    )
    asked = [
        TextExample(f"bank.noun.{i}/{place}", context, f"bank : {gloss}")
        for i, context in enumerate(contexts)
        for place, gloss in enumerate(glosses)
    ]
    chosen = [one["probabilities"][1] for one in answer(asked)]
    assert chosen == [0, 1, 0, 1, 0, 0, 1, 0, 0]
    task = get_task("word_senses")
    gold = [
        dataclasses.replace(one, label="yes" if place % 3 == 1 else "no")
        for place, one in enumerate(asked)
    ]
    assert task.score(gold, answer(gold)) == pytest.approx({"sense_accuracy": 1 / 3, "f1": 1 / 3})
    kind, rows = example_scores.statistics(task, gold, answer(gold))["sense_accuracy"]
    assert kind == "mean" and rows.sum(axis=0).tolist() == [1, 3]
    with pytest.raises(UserError, match="model=lesk chooses word senses; the task is sst2"):
        finetuning_preflight.finetuning(FinetuneConfig(task="sst2", model="lesk"))
