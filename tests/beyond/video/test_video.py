"""VideoBERT from made videos to a run and to a table; the task's files and scores."""

import json
import shutil

import keras
import numpy as np
import pytest

from data_prep.tasks import get_task
from experiments import finetune
from experiments.beyond.video import baselines, made_videos
from experiments.beyond.video import model as pretrainer
from experiments.beyond.video import start as video
from experiments.beyond.video.task import Segment
from experiments.tables.planning.plan import plan_table
from experiments.training.finetuning import example_scores
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced
from experiments.training.start import finetuning_preflight
from official_bert.checkpoints import embedded
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "videos"
    return folder, made_videos.make(folder, videos=40)


def test_what_is_made(videos):
    folder, best = videos
    task = get_task("videos", str(folder))
    train, dev = task.examples("train"), task.examples("dev")
    assert len(train) == 40 and {len(v.segments) for v in train} == {4}
    told = {(s.verb, s.noun) for v in train for s in v.segments if s.text}
    assert len(dev) == 1440 and {(s.verb, s.noun) for s in dev if s.told} == told
    never = {(s.verb, s.noun) for s in dev} - {
        (v, n) for i, v in enumerate(made_videos.VERBS)
        for j, n in enumerate(made_videos.THINGS) if (i + j) % 4
    }  # fmt: skip
    assert len(never) == 36 and not never & told
    assert any(not s.text for v in train for s in v.segments)
    assert best["new_verb_top1"] > 0.9 and best == json.loads((folder / "best.json").read_text())
    assert made_videos.make(folder.parent / "again", videos=40) == best
    again = get_task("videos", str(folder.parent / "again"))
    assert again.examples("train") == train
    np.testing.assert_array_equal(again.features, task.features)
    with pytest.raises(UserError, match="videos"):
        made_videos.make(folder, videos=40)


def write(folder, features, *lines):
    np.save(folder / "features.npy", features)
    written = (json.dumps(line) if isinstance(line, dict) else line for line in lines)
    (folder / "segments.jsonl").write_text("\n".join(written) + "\n")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nto\n")
    return get_task("videos", str(folder))


LINE = {"video": "1", "split": "train", "first": 0, "clips": 2, "text": "cut it"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clips": 4}, "first 0 and clips 4 are not within the 3 rows of features.npy"),
        ({"first": -1}, "first -1 and clips 2 are not within"),
        ({"clips": 0}, "first 0 and clips 0 are not within"),
        ({"first": "0"}, "first must be a whole number"),
        ({"split": "test"}, "split='test'; it is one of train, dev"),
        ({"split": "dev"}, "split is 'dev', but video 1 began in the other"),
        ({"video": "2", "split": "dev"}, "verb is missing; a question needs verb and noun"),
        ({"verb": "cut"}, "noun is missing"),
        ({"speech": "cut"}, "unknown field speech; the fields are video, split, first"),
        ({"told": True}, "unknown field told"),
        ({"text": None}, "text must be a text, not null"),
    ],
)
def test_segments_that_are_none(tmp_path, changes, message):
    task = write(tmp_path, np.zeros((3, 2), np.float32), LINE, "", LINE | changes)
    with pytest.raises(UserError, match=r"segments\.jsonl line 3: " + message):
        task.examples("train")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros(3, np.float32), r"expected floats \[clips, width\], not float32 \[3\]"),
        (np.zeros((3, 0)), r"not float64 \[3, 0\]"),
        (np.zeros((3, 2), int), r"not int64 \[3, 2\]"),
        (np.array([[0], [np.nan], [0]]), "row 1: a number is not finite"),
        (np.array([[0], [0], [1e30]]), "row 2: a number is not finite, or too large"),
    ],
)
def test_features_that_are_none(tmp_path, features, message):
    with pytest.raises(UserError, match=r"features\.npy.*" + message):
        write(tmp_path, features, LINE).examples("train")


def test_files_that_are_none(tmp_path):
    task = write(tmp_path, np.zeros((3, 2), np.float32), LINE, '{"video": "1"}', "{")
    with pytest.raises(UserError, match="line 2: the field split is missing"):
        task.examples("train")
    (tmp_path / "features.npy").write_bytes(b"PK or something else")
    with pytest.raises(UserError, match=r"features\.npy: no array of NumPy"):
        get_task("videos", str(tmp_path)).examples("train")
    (tmp_path / "features.npy").unlink()
    with pytest.raises(UserError, match=r"looked for .*features\.npy"):
        get_task("videos", str(tmp_path)).examples("train")
    with pytest.raises(UserError, match="k is 2 or more"):
        get_task("videos", str(tmp_path), k=1)


def test_other_features_are_other_examples(tmp_path):
    before = write(tmp_path, np.zeros((3, 2), np.float32), LINE).examples("train")
    assert write(tmp_path, np.ones((3, 2), np.float32), LINE).examples("train") != before


def test_scores_by_hand(tmp_path):
    task = get_task("videos", str(tmp_path))
    asked = [Segment(verb="cut", noun=n, told=t) for n, t in (("egg", 0), ("fish", 0), ("rice", 1))]
    answers = [
        {"verb": ["cut"], "noun": ["fish", "egg"]},
        {"verb": ["fry", "cut"], "noun": ["fish"]},
        {"verb": ["fry", "boil"], "noun": ["egg"]},
    ]
    scores = task.score(asked, answers)
    assert scores == pytest.approx({
        "verb_top1": 1 / 3, "verb_top5": 2 / 3, "noun_top1": 1 / 3, "noun_top5": 2 / 3,
        "new_verb_top1": 1 / 2, "new_verb_top5": 1, "new_noun_top1": 1 / 2, "new_noun_top5": 1,
        "told_verb_top1": 0, "told_verb_top5": 0, "told_noun_top1": 0, "told_noun_top5": 0,
    })  # fmt: skip
    assert list(scores) == list(task.metrics)
    kind, rows = example_scores.statistics(task, asked, answers)["new_noun_top1"]
    assert kind == "mean" and rows.tolist() == [[0, 1], [1, 1], [0, 0]]
    assert task.clusters(asked)[0] == "cut egg"


def test_a_word_that_is_no_piece_is_never_the_answer(tmp_path):
    line = {"video": "2", "split": "dev", "first": 2, "clips": 1, "verb": "to", "noun": "sh"}
    task = write(tmp_path, np.zeros((3, 2), np.float32), LINE, line)
    asked = task.examples("dev")
    [answer] = task.predictions(
        asked, [], {"verb": np.ones((1, 1)), "noun": np.full((1, 1), -np.inf)}
    )
    assert (answer["verb"], answer["noun"]) == (["to"], [])
    tokenizer = BertTokenizer(task.vocab)
    assert video._ids(tokenizer, ["to", "sh", "toto"]).tolist() == [5, -1, -1]


@pytest.fixture(scope="module")
def few(videos, tmp_path_factory):
    """Return the folder with one of twenty questions."""
    folder = shutil.copytree(videos[0], tmp_path_factory.mktemp("few") / "videos")
    lines = (videos[0] / "segments.jsonl").read_text().splitlines(keepends=True)
    asked = [line for line in lines if json.loads(line)["split"] == "dev"]
    left_out = {*asked} - {*asked[::20]}
    (folder / "segments.jsonl").write_text("".join(x for x in lines if x not in left_out))
    return folder


@pytest.fixture
def config(few):
    config = load_config("video:smoke").columns[0].finetune
    # Weights so large that even in the beginning other clips are other answers.
    sizes = {"hidden_size": 16, "intermediate_size": 16, "initializer_range": 0.5}
    bert = replaced(config.bert, **sizes)
    return replaced(config, bert=bert, data_dir=str(few), num_train_epochs=1.0, log_every=4)


@pytest.mark.parametrize(
    "name", ["videobert", pytest.param("videobert-language-alone", marks=pytest.mark.slow)]
)
def test_runs(config, tmp_path, name):
    config = replaced(config, model=name)
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert set(results.dev) == set(get_task("videos").metrics) and results.head == name
    assert results.steps == 160 // 16
    with open(results.predictions_file) as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 72 and set(rows[0]["verb"]) < set(made_videos.VERBS)
    answers = {(*row["verb"], *row["noun"]) for row in rows}
    assert (len(answers) == 1) == (name == "videobert-language-alone"), "clips change answers"
    log = [
        json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in log] == [4, 8, 10] and log[0]["alignment_loss"] > 0
    assert results.train_notes == {"segments too long for a row, cut": 0}
    assert results.dev_notes == {"words that are no piece, never the answer": 0}
    with pytest.raises(UserError, match="max_seq_length=20: the question has 10 pieces.*23"):
        short = replaced(config, max_seq_length=20)
        finetune.run(short, tmp_path / "short", progress=False)
    with pytest.raises(UserError, match="reads videos; sst2 is classification"):
        finetuning_preflight.finetuning(replaced(config, task="sst2", task_options={}))


def test_fields_that_it_does_not_read_are_refused(config):
    for fields in ({"norm_first": True}, {"embedding_size": 8}):
        bert = config.bert_config.replaced(**fields)
        with pytest.raises(UserError, match=f"videobert has a BERT's parts and no {[*fields][0]}"):
            finetuning_preflight.finetuning(replaced(config, model="videobert", bert=bert))


@pytest.mark.slow
def test_begins_as_a_trained_bert(config, few, tmp_path, monkeypatch):
    """Its weights and sizes, if its vocabulary is the videos'."""
    config = replaced(config, model="videobert", init_from="tiny-wikipedia")
    with pytest.raises(UserError, match=r"vocab\.txt is not the vocabulary of .*tiny-wikipedia"):
        finetuning_preflight.finetuning(config)
    with pytest.raises(UserError, match="init_from is not for --config.model="):
        finetuning_preflight.finetuning(replaced(config, model="tiny-wikipedia"))
    with pytest.raises(UserError, match="tiny-wikipedia-ltr: it is not a folder of a BERT"):
        finetuning_preflight.finetuning(replaced(config, init_from="tiny-wikipedia-ltr"))
    folder, begin_as, begun = (
        shutil.copytree(few, tmp_path / "videos"),
        pretrainer.begin_as,
        [],
    )
    shutil.copy(embedded.find("tiny-wikipedia") / "vocab.txt", folder)
    monkeypatch.setattr(pretrainer, "begin_as", lambda *x: begun.append(x) or begin_as(*x))
    config = replaced(config, data_dir=str(folder), learning_rate=1e-9, num_train_epochs=0.1)
    finetune.run(config, tmp_path / "run", progress=False)
    [(model, stored, pieces)] = begun
    found, wanted = (
        keras.ops.convert_to_numpy(one.encoder.embeddings.word_embeddings)
        for one in (model, stored)
    )
    np.testing.assert_allclose(found[:pieces], wanted, atol=1e-6)


@pytest.mark.parametrize("counts", [True, False])
def test_baselines_by_hand(tmp_path, counts):
    """A clip is near (0, 0) or (9, 9): "Cut them, it." is told of the former, "Peel them, it." of
    the latter."""
    features = np.array([[0, 0], [9, 9], [1, 0], [8, 9], [0, 1], [9, 8]], "float32")
    names = [{"verb": "cut", "noun": "it"}, {"verb": "peel", "noun": "it"}]
    lines = [
        {"video": str(i), "split": "train" if i < 4 else "dev", "first": i, "clips": 1}
        | names[i % 2] | ({"text": names[i % 2]["verb"].title() + " them, it."} if i < 4 else {})
        for i in range(6)
    ]  # fmt: skip
    write(tmp_path, features, *lines)
    task = get_task("videos", str(tmp_path), k=2, depth=1)
    answers = baselines.learn(task, task.examples("train"), counts, 1)(task.examples("dev"))
    assert [one["verb"] for one in answers] == [["cut", "peel"], ["peel", "cut"]]
    assert [one["noun"] for one in answers] == [["it"], ["it"]], "one word is always the answer"
    said = task.baseline(task.examples("train"), task.examples("dev"))
    assert said["noun_top1"] == 1 and said["verb_top1"] == 0.5


def test_a_table_of_seven_rows(videos):
    table = load_config("video:smoke", {"data_dir": str(videos[0].parent)})
    made = plan_table(table)
    models = sorted(cell.config["model"] for cell in made.cells)
    assert models == sorted([*video.NAMES, "videobert", "video-counts", "video-features"])
    assert [len(claim.comparisons) for claim in table.claims] == [2] * 4
    whole = plan_table(load_config("video:cpu", {"data_dir": str(videos[0].parent)}))
    assert {len(runs) for runs in whole.runs.values()} == {1, 3} and len(whole.cells) == 17
