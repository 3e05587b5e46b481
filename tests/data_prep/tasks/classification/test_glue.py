import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from data_prep.tasks import get_task, submission
from data_prep.tasks.classification.glue import GLUE
from official_bert.common.errors import UserError

FILES = {
    "CoLA/train.tsv": "gj04\t1\t\tThe cat sat.\ngj04\t0\t*\tCat the sat.\n",
    "CoLA/test.tsv": "index\tsentence\n0\tA dog ran.\n",
    "SST-2/train.tsv": "sentence\tlabel\na big cat \t1\nno dog \t0\n",
    "MRPC/train.tsv": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t5\t6\t" a cat\tthe cat\n'
    ),
    "STS-B/train.tsv": "index\tsentence1\tsentence2\tscore\n0\ta\tb\t3.799\n1\tc\td\t0.000\n",
    "QQP/train.tsv": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "0\t1\t2\twho?\twhat?\t0\n9\tbroken\n1\t3\t4\twho?\twho was?\t1\n"
    ),
    "MNLI/train.tsv": (
        "index\tsentence1\tsentence2\tlabel1\tgold_label\n"
        "0\ta\tb\tneutral\tneutral\n1\tc\td\tx\tcontradiction\n"
    ),
    "MNLI/dev_matched.tsv": (
        "index\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n0\tm\tn\tx\ty\tentailment\n"
    ),
    "MNLI/dev_mismatched.tsv": "index\tsentence1\tsentence2\tgold_label\n0\tp\tq\tneutral\n",
    "MNLI/test_matched.tsv": "index\tsentence1\tsentence2\n0\tt\tu\n1\tv\tw\n",
    "MNLI/test_mismatched.tsv": "index\tsentence1\tsentence2\n0\tx\ty\n",
    "diagnostic/diagnostic.tsv": "index\tsentence1\tsentence2\n0\tg\th\n",
    "QNLI/train.tsv": "index\tquestion\tsentence\tlabel\n0\twho?\tPeter.\tentailment\n",
    "RTE/train.tsv": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tnot_entailment\n",
    "WNLI/train.tsv": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n",
}


@pytest.fixture
def folder(write, tmp_path):
    for name, content in FILES.items():
        write(name, content)
    return str(tmp_path)


def texts(example):
    return (example.text_a, example.text_b, example.label)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("cola", ("The cat sat.", None, "1")),
        ("sst2", ("a big cat ", None, "1")),
        ("mrpc", ('" a cat', "the cat", "1")),
        ("stsb", ("a", "b", float(np.float32(3.799)))),
        ("qqp", ("who?", "what?", "0")),
        ("mnli", ("a", "b", "neutral")),
        ("qnli", ("who?", "Peter.", "entailment")),
        ("rte", ("a", "b", "not_entailment")),
        ("wnli", ("a", "b", "1")),
    ],
)
def test_official_files(folder, name, first):
    task = get_task(name, data_dir=folder)
    assert texts(task.examples("train")[0]) == first
    assert task.examples("train")[0].id == "train/0"
    # The task's own folder is as good as the one above it.
    own = get_task(name, data_dir=f"{folder}/{GLUE[name].folder}")
    assert own.examples("train") == task.examples("train")
    assert task.head["num_labels"] == max(1, len(task.labels))


def test_mnli_has_two_of_each_and_the_diagnostic_set(folder):
    task = get_task("mnli", data_dir=folder)
    assert [texts(task.examples(split)[0]) for split in task.splits[1:]] == [
        ("m", "n", "entailment"), ("p", "q", "neutral"), ("t", "u", None), ("x", "y", None),
        ("g", "h", None),
    ]  # fmt: skip


def test_broken_lines_of_qqp_are_counted_and_keep_their_index(folder):
    task = get_task("qqp", data_dir=folder)
    assert [example.id for example in task.examples("train")] == ["train/0", "train/2"]
    assert task.notes["train"] == {"incomplete_rows_skipped": 1}


def test_errors(folder, write):
    write("RTE/dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tmaybe\n")
    with pytest.raises(UserError, match=r"dev\.tsv line 2: label 'maybe', expected entailment"):
        get_task("rte", data_dir=folder).examples("dev")
    write("STS-B/dev.tsv", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t1e39\n")
    with pytest.raises(UserError, match=r"dev\.tsv line 2: score is '1e39', expected a number"):
        get_task("stsb", data_dir=folder).examples("dev")
    write("CoLA/dev.tsv", "gj04\t1\tThe cat sat.\n")
    with pytest.raises(UserError, match=r"dev\.tsv line 1: 3 columns, expected 4"):
        get_task("cola", data_dir=folder).examples("dev")
    with pytest.raises(UserError, match=r"no file for WNLI dev: looked for .*WNLI/dev\.tsv"):
        get_task("wnli", data_dir=folder).examples("dev")
    with pytest.raises(UserError, match="task wnli: split='ax'; it is one of"):
        get_task("wnli", data_dir=folder).examples("ax")


def tfds_row(task, fields, example):
    """Return (key, row), unknown labels as -1."""
    label = example.label
    if label is None:
        label = -1
    elif task.labels:
        label = task.labels.index(label)
    index = int(example.id.rpartition("/")[2])
    texts = dict(zip(fields, (example.text_a, example.text_b), strict=False))
    return index, {**texts, "label": label, "idx": index}


def as_tfds(name, tsv_folder, tfds_folder):
    """Write a task's TSV files as TFDS stores them, with its features and split names."""
    import tensorflow_datasets as tfds

    config_name = "ax" if name == "ax" else name
    config = next(
        config
        for config in tfds.builder_cls("glue").BUILDER_CONFIGS
        if config.name == config_name
    )  # fmt: skip
    fields = list(config.text_features)
    features = {field: tfds.features.Text() for field in fields}
    classes = config.label_classes
    features["label"] = tfds.features.ClassLabel(names=classes) if classes else np.float32
    features["idx"] = np.int32
    task = get_task("mnli" if name == "ax" else name, data_dir=tsv_folder)
    tfds_names = {"dev": "validation"}
    if name == "mnli":
        tfds_names = {
            "dev": "validation_matched",
            "dev_mismatched": "validation_mismatched",
            "test": "test_matched",
            "test_mismatched": "test_mismatched",
        }
    rows = {}
    for split in ["ax"] if name == "ax" else [s for s in task.splits if s != "ax"]:
        try:
            examples = task.examples(split)
        except UserError:
            continue
        tfds_split = "test" if name == "ax" else tfds_names.get(split, split)
        # TFDS stores in the order of a hash: any order but the file's.
        rows[tfds_split] = [tfds_row(task, fields, example) for example in reversed(examples)]
    tfds.dataset_builders.store_as_tfds_dataset(
        name="glue",
        version="2.0.0",
        config=config_name,
        features=tfds.features.FeaturesDict(features),
        split_datasets=rows,
        data_dir=tfds_folder,
    )
    return task, list(rows)


def test_tfds_gives_the_same_examples(folder, tmp_path):
    pytest.importorskip("tensorflow_datasets")
    copy = str(tmp_path / "tfds")
    for name in GLUE:
        local, splits = as_tfds(name, folder, copy)
        assert splits
        tfds_task = get_task(name, tfds_dir=copy)
        for split in local.splits:
            if split == "ax":
                continue
            try:
                expected = local.examples(split)
            except UserError:
                continue
            assert tfds_task.examples(split) == expected
    local, _ = as_tfds("ax", folder, copy)
    assert get_task("mnli", tfds_dir=copy).examples("ax") == local.examples("ax")


def test_submission_files(folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    mnli, stsb = get_task("mnli", data_dir=folder), get_task("stsb", data_dir=folder)
    paths = []
    for split in ("test", "test_mismatched", "ax"):
        examples = mnli.examples(split)
        logits = np.eye(3)[[2, 0][: len(examples)]]
        paths += mnli.write(out, mnli.predictions(examples, None, {"logits": logits}))
    assert [path.rpartition("/")[2] for path in paths] == ["MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"]
    assert (out / "MNLI-m.tsv").read_text() == (
        "index\tprediction\n0\tcontradiction\n1\tentailment\n"
    )
    examples = stsb.examples("train")
    predictions = stsb.predictions(examples, None, {"logits": np.array([[5.7], [-0.2]])})
    paths += stsb.write(out, predictions)
    assert (out / "STS-B.tsv").read_text() == "index\tprediction\n0\t5.000\n1\t0.000\n"
    with pytest.raises(UserError, match="the submission lacks CoLA.tsv"):
        submission.write_zip(paths, str(tmp_path / "s.zip"))
    missing = submission.write_zip(paths, str(tmp_path / "s.zip"), allow_missing=True)
    assert "WNLI.tsv" in missing
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert sorted(archive.namelist() + missing) == sorted(submission.FILES)
        assert archive.read("AX.tsv") == b"index\tprediction\n0\tcontradiction\n"
    with pytest.raises(UserError, match="not a GLUE submission file"):
        submission.write_zip([str(tmp_path / "other.tsv")], str(tmp_path / "s.zip"))
    with pytest.raises(UserError, match="is given twice"):
        submission.write_zip([paths[0], paths[0]], str(tmp_path / "s.zip"))


def test_one_command_makes_the_zip_of_finished_runs(folder, tmp_path):
    runs = tmp_path / "runs"
    for name, splits in (("mnli", ("dev", "test", "test_mismatched", "ax")), ("cola", ("test",))):
        task = get_task(name, data_dir=folder)
        for split in splits:
            out = runs / name / "predictions" / split
            out.mkdir(parents=True)
            examples = task.examples(split)
            logits = np.eye(3)[: len(examples), : len(task.labels)]
            task.write(out, task.predictions(examples, None, {"logits": logits}))
        (runs / name / "results.json").write_text(json.dumps({"task": name, "dev": {}}))
    command = [sys.executable, "-m", "data_prep.tasks.submission", f"--runs={runs}/*"]
    command += [f"--output={tmp_path}/s.zip"]
    complete = subprocess.run(command, capture_output=True, text=True)
    assert complete.returncode == 2 and "the submission lacks SST-2.tsv" in complete.stderr
    partly = subprocess.run([*command, "--allow_missing"], capture_output=True, text=True)
    assert partly.returncode == 0 and "4 files" in partly.stdout, partly.stderr
    assert "dev, the paper's average: none, the average needs accuracy of mnli" in partly.stdout
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert archive.namelist() == ["CoLA.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"]
        assert archive.read("MNLI-m.tsv").count(b"\n") == 3  # of test, not of dev
    (runs / "rte").mkdir()
    with pytest.raises(UserError, match="rte is not the folder of a finished"):
        submission.find_predictions([str(runs / "rte")])
    (runs / "rte" / "results.json").write_text('{"heldout": {}}')  # of a pre-training
    with pytest.raises(UserError, match="rte is not the folder of a finished fine-tuning"):
        submission.dev_scores([str(runs / "rte")])
    (runs / "rte" / "results.json").write_text('{"task": "rte", "dev": {}}')
    with pytest.raises(UserError, match="predict_test=true"):
        submission.find_predictions([str(runs / "rte")])


def test_dev_scores_of_finished_runs(tmp_path):
    results = {"task": "mnli", "dev": {"accuracy": 0.8}, "dev_mismatched": {"accuracy": 0.7}}
    runs = [tmp_path / "mnli", tmp_path / "again"]
    for run in runs:
        run.mkdir()
        (run / "results.json").write_text(json.dumps(results))
    expected = {"mnli": {"accuracy": 0.8}, "mnli_mismatched": {"accuracy": 0.7}}
    assert submission.dev_scores([str(runs[0])]) == expected
    with pytest.raises(UserError, match="a second run of mnli"):
        submission.dev_scores([str(run) for run in runs])


def published(mnli, mismatched, qqp, qnli, sst2, cola, stsb, mrpc, rte, wnli=0.0):
    """Return the scores of a table's row; pairs are two metrics in the order of the task's
    table."""
    return {
        "mnli": {"accuracy": mnli},
        "mnli_mismatched": {"accuracy": mismatched},
        "qqp": dict(zip(("f1", "accuracy"), qqp, strict=False)),
        "qnli": {"accuracy": qnli},
        "sst2": {"accuracy": sst2},
        "cola": {"matthews": cola},
        "stsb": dict(zip(("spearman", "pearson"), stsb, strict=False)),
        "mrpc": dict(zip(("f1", "accuracy"), mrpc, strict=False)),
        "rte": {"accuracy": rte},
        "wnli": {"accuracy": wnli},
    }


@pytest.mark.parametrize(
    ("row", "average"),
    [
        ((84.6, 83.4, [71.2], 90.5, 93.5, 52.1, [85.8], [88.9], 66.4), 79.6),  # BERT BASE, Table 1
        ((86.7, 85.9, [72.1], 92.7, 94.9, 60.5, [86.5], [89.3], 70.1), 82.1),  # BERT LARGE
    ],
)
def test_average_of_the_paper(row, average):
    assert submission.paper_average(published(*row)) == pytest.approx(average, abs=0.05)


@pytest.mark.parametrize(
    ("row", "average"),
    [  # the miniatures of "Well-Read Students"
        ((70.2, 70.3, (62.2, 83.4), 81.5, 83.2, 0.0, (73.6, 74.3), (81.1, 71.1), 57.2, 62.3), 64.2),
        ((74.8, 74.3, (66.4, 86.2), 84.1, 85.9, 0.0, (73.3, 75.4), (81.1, 71.8), 57.9, 62.3), 65.8),
        (
            (80.0, 79.1, (69.6, 87.9), 87.7, 89.6, 38.0, (78.4, 80.4), (86.6, 81.6), 62.2, 62.3),
            73.5,
        ),
    ],
)
def test_average_of_the_leaderboard(row, average):
    assert submission.leaderboard_average(published(*row)) == pytest.approx(average, abs=0.1)


def test_an_average_needs_every_task():
    with pytest.raises(UserError, match="needs accuracy of wnli"):
        scores = published(1, 1, (1, 1), 1, 1, 1, (1, 1), (1, 1), 1)
        submission.leaderboard_average({k: v for k, v in scores.items() if k != "wnli"})


@pytest.mark.parametrize(
    ("name", "train", "dev", "majority"),
    [
        ("cola", 8551, 1043, {"matthews": 0.0}),
        ("mrpc", 3667, 408, {"f1": 0.8122, "accuracy": 0.6838}),
        ("stsb", 5749, 1500, {"spearman": 0.0}),
        ("rte", 2490, 277, {"accuracy": 0.5271}),
        ("wnli", 635, 71, {"accuracy": 0.5634}),
    ],
)
def test_real_files(data_dir, name, train, dev, majority):
    task = get_task(name, data_dir=str(data_dir / "glue_data"))
    examples = task.examples("train")
    assert (len(examples), len(task.examples("dev"))) == (train, dev)
    scores = task.baseline(examples, task.examples("dev"))
    assert {key: scores[key] for key in majority} == pytest.approx(majority, abs=1e-4)
    assert all(example.label is None for example in task.examples("test"))


RAW = """\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String
1\t10\t11\tHe said " no .\tHe refused .
0\t12\t13\tA cat sat .\tA dog ran .
1\t14\t15\tIt rained .\tRain fell .
"""


def test_mrpc_from_microsofts_own_files(write, tmp_path):
    write("MRPC/msr_paraphrase_train.txt", RAW.replace("\n", "\r\n"))
    write("MRPC/msr_paraphrase_test.txt", RAW)
    task = get_task("mrpc", data_dir=str(tmp_path))
    with pytest.raises(UserError, match=r"no file for MRPC's dev set.*dev_ids.tsv"):
        task.examples("train")
    write("MRPC/dev_ids.tsv", "12\t13\n")
    train, dev, test = (task.examples(split) for split in ("train", "dev", "test"))
    first = ('He said " no .', "He refused .", "1")
    assert [texts(e) for e in train] == [first, ("It rained .", "Rain fell .", "1")]
    assert [texts(e) for e in dev] == [("A cat sat .", "A dog ran .", "0")]
    assert [e.id for e in train] == ["train/0", "train/1"] and dev[0].id == "dev/0"
    assert len(test) == 3 and test[0].label is None  # as in GLUE's own test.tsv
    write("MRPC/dev_ids.tsv", "12\t13\n98\t99\n")
    with pytest.raises(UserError, match="no row of the pair 98 and 99"):
        task.examples("dev")
    write("MRPC/dev_ids.tsv", "12,13\n")
    with pytest.raises(UserError, match="dev_ids.tsv line 1: '12,13'"):
        task.examples("dev")
    write("MRPC/train.tsv", RAW)  # what GLUE has cut comes first
    assert len(task.examples("train")) == 3


def test_microsofts_files_give_glues_examples(data_dir, tmp_path):
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"):
        (tmp_path / name).symlink_to(data_dir / "glue_data" / "MRPC" / name)
    raw = get_task("mrpc", data_dir=str(tmp_path))
    cut = get_task("mrpc", data_dir=str(data_dir / "glue_data"))
    for split in ("dev", "test"):
        assert raw.examples(split) == cut.examples(split)
    # GLUE counts 3,668 training pairs; this folder's train.tsv has lost one of them.
    train = [texts(example) for example in raw.examples("train")]
    assert len(train) == 3668
    del train[91]
    assert train == [texts(example) for example in cut.examples("train")]


def test_cola_score_is_matthews():
    task = get_task("cola", data_dir="/nowhere")
    examples = [task.example({"sentence": "x"}) for _ in range(4)]
    examples = [
        type(e)(e.id, e.text_a, None, gold) for e, gold in zip(examples, "1100", strict=True)
    ]
    predictions = [{"label": label} for label in "1000"]
    # (TP TN - FP FN) / sqrt(...) = (1*2 - 0*1) / sqrt(1*2*2*3)
    assert task.score(examples, predictions)["matthews"] == pytest.approx(2 / 12**0.5)
