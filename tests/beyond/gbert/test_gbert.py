"""G-BERT from made patients to a run and to a table; the task's files and scores."""

import collections
import dataclasses
import json
import re
import shutil

import numpy as np
import pytest

from data_prep.tasks import get_task
from experiments import ablate, finetune
from experiments.beyond.gbert import baselines, made_patients, recipe
from experiments.beyond.gbert import start as gbert
from experiments.beyond.gbert.task import Patient, begins_unseen, set_scores
from experiments.tables.planning.plan import plan_table
from experiments.training.finetuning.one_shot_models import take_steps
from experiments.training.settings.config_files import load_config
from experiments.training.start import finetuning_preflight
from official_bert.common.errors import UserError


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """Return a folder of made patients below a small hierarchy of 50 categories."""
    folder = tmp_path_factory.mktemp("made")
    ranges = [
        {"id": f"range {r}", "children": [
            {"id": f"category {r}-{c}", "children": [{"id": f"{r}{c}{i}"} for i in range(5)]}
            for c in range(10)
        ]}
        for r in range(5)
    ]  # fmt: skip
    written = {"tree": {"id": "root", "children": ranges}, "codes": []}
    (folder / "hierarchy.json").write_text(json.dumps(written))
    best = made_patients.make(folder / "hierarchy.json", folder / "patients", patients=60)
    return folder / "patients", best


def test_what_is_made(patients):
    folder, best = patients
    task = get_task("visits", str(folder))
    train, dev = task.examples("train"), task.examples("dev")
    assert len(train) == 60 and len(dev) == 12 and all(len(p.visits) > 1 for p in dev)
    assert any(len(p.visits) == 1 for p in train)
    seen, asked = ({c for p in x for ds, _ in p.visits for c in ds} for x in (train, dev))
    assert asked - seen, "some codes are met in dev first"
    above = task.ontology()
    assert {above[above[above[code]]] for code in asked} == {"root"}
    begin = [x for p in dev for x in begins_unseen(p, task.diagnoses, above)]
    assert sum(begin) > 2, "illnesses that begin with unseen codes"
    assert not any(begins_unseen(train[-1], task.diagnoses, above))
    assert best["dev"].keys() == {"f1", "jaccard", "pr_auc", "unseen_f1"}
    assert 0.5 < best["dev"]["f1"] < 1 and best == json.loads((folder / "best.json").read_text())
    again = made_patients.make(folder.parent / "hierarchy.json", folder.parent / "again", 60)
    assert again == best
    with pytest.raises(UserError, match="patients"):
        made_patients.make(folder.parent / "hierarchy.json", folder, 60)


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (1, "0-0", "0-0 is below category 0 and below category 1; a hierarchy has one way"),
        (0, "a\tb", r'the id "a\\tb" is empty, or has a tab or a line end'),
        (0, "", 'the id "" is empty'),
        (0, "M000a", "M000a is a code there, and the name of a medication here"),
    ],
)
def test_hierarchies_that_are_refused(tmp_path, number, code, message):
    categories = [
        {"id": f"category {c}", "children": [{"id": f"{c}-{i}"} for i in range(5)]}
        for c in range(20)
    ]
    categories[number]["children"][0]["id"] = code
    path = tmp_path / "hierarchy.json"
    path.write_text(json.dumps({"tree": {"id": "root", "children": categories}}))
    with pytest.raises(UserError, match=rf"hierarchy\.json: .*{message}"):
        made_patients.make(path, tmp_path / "made", patients=10)
    assert not (tmp_path / "made").exists()


def test_a_dry_run_tells_between_what_the_scores_will_lie(patients):
    folder, best = patients
    table = load_config("gbert:cpu", {"data_dir": str(folder.parent)})
    line = next(s for s in ablate.dry_run([table], measure=False).splitlines() if "best" in s)
    trivial, highest = map(float, re.findall(r"\d+\.\d", line))
    assert trivial < highest == round(100 * best["dev"]["f1"], 1)


def test_scores_by_hand():
    found = {"medications": ["a", "b"], "probabilities": [0.9, 0.4, 0.2]}
    scores = set_scores({"a", "c"}, found, ["a", "b", "c"])
    # "c" is third: the precisions at "a" and "c" are 1 and 2/3.
    assert scores == pytest.approx({"f1": 0.5, "jaccard": 1 / 3, "pr_auc": (1 + 2 / 3) / 2})
    nothing = set_scores(set(), {**found, "medications": []}, ["a", "b", "c"])
    assert set(nothing.values()) == {1.0}


def test_visits_that_begin_unseen_by_hand(tmp_path):
    parents = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "c1": "c", "a": "", "b": "", "c": ""}
    visits = [("a2",), ("a2", "b2"), ("b2",), ("c1",)]
    patient = Patient("1", tuple((codes, ()) for codes in visits))
    # a and b are new at the first two visits, c is new at the last; train has a code of a and b.
    assert begins_unseen(patient, {"a1", "b1"}, parents) == [True, True, False, False]
    assert begins_unseen(patient, {"a2", "b1"}, parents) == [False, True, False, False]
    assert not any(begins_unseen(patient, {"a2", "b1", "b2"}, parents))
    roots = dict.fromkeys(parents, "")
    assert not any(begins_unseen(patient, {"a1", "b1"}, roots)), "a root has no category"
    (tmp_path / "ontology.tsv").write_text(
        "".join(f"{c}\t{above}\n" for c, above in parents.items())
    )
    visit = '{"diagnoses": ["a1", "b1"], "medications": ["c1"]}'
    (tmp_path / "train.jsonl").write_text(f'{{"patient": 1, "visits": [{visit}, {visit}]}}\n')
    task = get_task("visits", str(tmp_path))
    asked = Patient("1", ((("a1",), ()), (("a1",), ()), (("b2",), ("c1",))))
    visits = [{"medications": [], "probabilities": [0.1]}] * 2
    # The second visit has nothing and nothing is found; of the third nothing is found.
    scores = task.score([asked], [{"visits": visits}])
    assert scores["f1"] == 0.5 and scores["unseen_f1"] == 0
    same = Patient("2", asked.visits[:2])
    assert "unseen_f1" not in task.score([same], [{"visits": visits[:1]}])


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("ontology.tsv", "a\tb\nb\ta\n", "a is above itself"),
        (
            "ontology.tsv",
            "a\tb\n" + "".join(f"{i}\t{i + 1}\n" for i in range(70)),
            "0 is above itself, or",
        ),
        ("ontology.tsv", b"a\t\xe9\n", r"ontology\.tsv line 1: byte 0xe9 at column 3 is not UTF-8"),
        ("train.jsonl", b'{"patient": "\xe9"}', r"train\.jsonl line 1: byte 0xe9"),
        (
            "train.jsonl",
            '{"patient": 1, "visits": []}\n\n{"patient": "1", "visits": []}\n',
            r"train\.jsonl line 3: patient 1 is there twice",
        ),
        ("ontology.tsv", "a b\n", r"ontology\.tsv line 1: expected a code, a tab, its one parent"),
        ("train.jsonl", '{"patient": 1}\n', r"train\.jsonl line 1: the field visits is missing"),
        (
            "train.jsonl",
            '{"patient": 1, "visits": [{"diagnoses": ["x"], "medications": []}]}\n',
            r'train\.jsonl line 1: "x" is not in ontology\.tsv',
        ),
        (
            "train.jsonl",
            '{"patient": 1, "visits": [{"diagnoses": ["a"], "medications": ["a"]}]}\n',
            r'train\.jsonl line 1: "a" is among medications, and was among diagnoses before',
        ),
        (
            "train.jsonl",
            '{"patient": 1, "visits": [{"diagnoses": ["a"], "medications": ["b"]}]}\n',
            r"train\.jsonl: no patient has a second visit with a medication",
        ),
    ],
)
def test_files_that_are_none(tmp_path, file, content, message):
    (tmp_path / "ontology.tsv").write_text("a\tb\n")
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    if file == "ontology.tsv":
        (tmp_path / "train.jsonl").write_text("")
    with pytest.raises(UserError, match=message):
        get_task("visits", str(tmp_path)).examples("train")


def test_a_patient_of_two_splits_is_noted(patients, tmp_path):
    shutil.copytree(patients[0], tmp_path / "data")
    train = (tmp_path / "data" / "train.jsonl").read_text().splitlines(keepends=True)
    known = next(line for line in train if len(json.loads(line)["visits"]) > 1)
    with open(tmp_path / "data" / "dev.jsonl", "a") as file:
        file.write(known)
    for folder, count in ((patients[0], None), (tmp_path / "data", 1)):
        task = get_task("visits", str(folder))
        task.examples("dev")
        assert task.notes["dev"].get("patients that train.jsonl has too") == count


def test_no_code_is_of_two_kinds_in_two_splits(tmp_path):
    (tmp_path / "ontology.tsv").write_text("a\tA\nm\tM\n")
    line = '{"patient": 1, "visits": [{"diagnoses": ["%s"], "medications": ["m"]}%s]}\n'
    (tmp_path / "train.jsonl").write_text(line % ("a", ', {"diagnoses": [], "medications": ["m"]}'))
    (tmp_path / "dev.jsonl").write_text(line % ("m", ""))
    task = get_task("visits", str(tmp_path))
    message = r'dev\.jsonl line 1: "m" is among diagnoses, and was among medications'
    with pytest.raises(UserError, match=message):
        task.examples("dev")


@pytest.fixture
def config(patients):
    config = load_config("gbert")
    bert = dataclasses.replace(config.bert, hidden_size=16, intermediate_size=16)
    return dataclasses.replace(
        config, bert=bert, data_dir=str(patients[0]), num_train_epochs=1.0, learning_rate=1e-2
    )


@pytest.mark.parametrize("name", ["gbert", pytest.param("gbert-neither", marks=pytest.mark.slow)])
def test_runs(config, tmp_path, name):
    config = dataclasses.replace(config, model=name)
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert {*results.dev} >= {"f1", "jaccard", "pr_auc"} and results.head == name
    several = [p for p in get_task("visits", config.data_dir).examples("train") if p.visits[1:]]
    assert results.steps == len(several) // 8
    with open(tmp_path / "run" / "metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    logged = {key for line in lines for key in line if key.endswith("loss")}
    assert logged == {"loss", *["pretraining_loss"] * gbert.NAMES[name][1]}
    with open(results.predictions_file) as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 12 and all(0 <= p <= 1 for p in rows[0]["visits"][0]["probabilities"])
    with pytest.raises(UserError, match="visits has codes, no texts: it is for --config.model=g"):
        bert = dataclasses.replace(config, model="tiny-wikipedia")
        finetune.run(bert, tmp_path / "other", progress=False)
    with pytest.raises(UserError, match="reads visits; sst2 is classification"):
        finetuning_preflight.finetuning(dataclasses.replace(config, task="sst2"))
    with pytest.raises(UserError, match=r"num_train_epochs=0\.4: G-BERT's epochs are whole"):
        finetuning_preflight.finetuning(dataclasses.replace(config, num_train_epochs=0.4))


def test_sets_of_visits(config):
    task = get_task("visits", config.data_dir)
    train = task.examples("train")
    visits = [visit for patient in train for visit in patient.visits]
    codes = gbert.Codes(task, visits)
    plain = codes.sets(visits)
    hidden = codes.sets(visits, np.random.default_rng(0))
    for kind in ("diagnoses", "medications"):
        ids, labels = plain[kind], plain[f"{kind}_labels"]
        assert (ids[:, 0] == 1).all() and labels.sum() == (ids > 2).sum()
        np.testing.assert_array_equal(hidden[f"{kind}_labels"], labels)
        changed = hidden[kind] != ids
        assert 0.05 < changed.sum() / (ids > 2).sum() < 0.25
        assert (hidden[kind][changed] == 2).mean() > 0.7 and not changed[ids < 3].any()
        random = hidden[kind][changed & (hidden[kind] != 2)]
        low = 3 if kind == "diagnoses" else 3 + codes.sizes["diagnoses"]
        assert ((random >= low) & (random < low + codes.sizes[kind])).all(), "of its own kind"
    batch = codes.patients(train[:4], 4)
    for patient, asked, labels in zip(train, batch["asked"], batch["labels"], strict=False):
        assert asked.tolist() == [float(0 < t < len(patient.visits)) for t in range(4)]
        assert labels.sum() == sum(len(medications) for _, medications in patient.visits)


def test_a_visit_of_more_codes_than_training_has_is_whole(config):
    task = get_task("visits", config.data_dir)
    codes = gbert.Codes(task, [(("000",), ("M000a",))])
    leaf = [code for code in task.ontology() if code.isdigit()][:5]
    ids = codes.sets([((*leaf,), ())])["diagnoses"]
    assert ids.shape == (1, 6) and len({*ids[0]}) == 6


def test_a_diagnosis_above_others_is_told_apart(tmp_path):
    (tmp_path / "ontology.tsv").write_text("4011\t401\n4012\t401\nC1\tC\n")
    visit = '{"diagnoses": ["401", "4011"], "medications": ["C1"]}'
    (tmp_path / "train.jsonl").write_text(f'{{"patient": 1, "visits": [{visit}, {visit}]}}\n')
    task = get_task("visits", str(tmp_path))
    [patient] = task.examples("train")
    codes = gbert.Codes(task, patient.visits)
    assert codes.sizes == {"diagnoses": 3, "medications": 1}
    assert codes.sets(patient.visits[:1])["diagnoses_labels"].tolist() == [[1, 1, 0]]
    assert len(codes.parents) == 3 + 5, "a row a code"


def test_baselines_by_hand(patients):
    """The visit before has its medications for certain; a regression learns what always follows."""
    task = get_task("visits", str(patients[0]))
    one, other = task.medications[:2]
    visits = ((("d",), (one,)), (("e",), (one, other)), (("d",), ()))
    asked = [Patient("1", visits), Patient("2", visits[:2])]
    logits = baselines.last_visit(task, asked)
    given = np.zeros((3, len(task.medications)))
    given[[0, 1, 1, 2], [0, 0, 1, 0]] = 1
    np.testing.assert_array_equal(logits > 0, given > 0)
    # "e" brings `one` and `other`, "d" nothing: the diagnoses tell, the medications do not.
    train = [Patient(str(i), (((), ()), (("e",), (one, other)), (("d",), ()))) for i in range(8)]
    asked = [Patient("1", (((), ()), (("e",), ())))]
    with_diagnoses = baselines.linear(task, train)(asked)[0]
    assert with_diagnoses[0] > 0.5 and (with_diagnoses[2:] < -10).all()
    assert abs(baselines.linear(task, train, "medications")(asked)[0, 0]) < with_diagnoses[0]


def test_categories_say_what_an_unseen_code_means(patients):
    task = get_task("visits", str(patients[0]))
    one, other = task.medications[:2]
    below = collections.defaultdict(list)
    for code, above in task.ontology().items():
        if code.isdigit():
            below[above].append(code)
    (a1, a2, *_), (b1, *_), *_ = below.values()
    first, *others = ((), ()), ((a1,), (one,)), ((b1,), (other,))
    asked = [Patient("1", (((), ()), ((a2,), ())))]
    orders = ((first, *others), (first, *others[::-1]))
    train = [Patient(str(i), orders[i % 2]) for i in range(8)]
    codes = baselines.linear(task, train)(asked)[0]
    assert codes[0] == pytest.approx(codes[1], abs=1e-3), "the code says nothing"
    above = baselines.linear(task, train, "categories")(asked)[0]
    assert above[0] > 0.1 and above[1] < -0.1


def test_test_is_scored_and_a_changed_ontology_is_other_data(config, tmp_path):
    data = shutil.copytree(config.data_dir, tmp_path / "data")
    config = dataclasses.replace(
        config, model="gbert-last-visit", data_dir=str(data), predict_test=True
    )
    results = finetune.run(config, tmp_path / "run", progress=False)
    assert {*results.test} >= {"f1", "jaccard", "pr_auc"}
    assert not get_task("visits").is_labelled([Patient("1", ((("d",), ("m",)), (("e",), ())))])
    with open(data / "ontology.tsv", "a") as file:
        file.write("new\troot\n")
    with pytest.raises(UserError, match=r"on other data: ontology\.tsv \(.*\) has changed"):
        finetune.run(config, tmp_path / "run", progress=False)


def test_a_run_that_died_logs_each_step_once(config, tmp_path, monkeypatch):
    config = dataclasses.replace(config, model="gbert-last-visit")
    real, dies = baselines.VisitBaseline.learn, iter([True, False])

    def learn(self, config, task, train, logged):
        take_steps(2, lambda step: {"loss": 1.0 / step}, logged, 1)
        if next(dies):
            raise KeyboardInterrupt
        return real(self, config, task, train, logged)

    monkeypatch.setattr(baselines.VisitBaseline, "learn", learn)
    with pytest.raises(KeyboardInterrupt):
        finetune.run(config, tmp_path / "run", progress=False)
    assert finetune.run(config, tmp_path / "run", progress=False).dev["f1"] > 0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2]


@pytest.mark.parametrize("name", ["gbert-last-visit", "gbert-linear-categories"])
def test_a_baseline_runs_without_steps(config, tmp_path, name):
    results = finetune.run(dataclasses.replace(config, model=name), tmp_path, progress=False)
    assert results.steps == 0 and results.dev["f1"] > results.baseline["f1"]


def test_a_table_of_eight_rows(patients):
    table = load_config("gbert:smoke", {"data_dir": str(patients[0].parent)})
    made = plan_table(table)
    assert sorted(cell.config["model"] for cell in made.cells) == sorted(
        [*gbert.NAMES, *recipe._BASELINES.values()]
    )
    assert [len(claim.comparisons) for claim in table.claims] == [3, 3, 3, 1, 1, 1]
    runs = plan_table(load_config("gbert:cpu", {"data_dir": str(patients[0].parent)})).runs
    assert {len(some) for (row, _), some in runs.items() if row in recipe._LABELS} == {3}
    assert {len(some) for (row, _), some in runs.items() if row in recipe._BASELINES} == {1}
