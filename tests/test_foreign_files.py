"""Whatever is in the folders of a user stays there; with --overwrite some of it is renamed."""

import contextlib
import os
import random
import re
import stat
import types

import majority
import numpy as np
import pytest
from tiny import CONFIG, VOCAB, make_records, write_texts

import official_bert as ob
from data_prep import sentences, wikipedia
from data_prep.jobs.locks import LOCK_FILE, exclusive
from data_prep.tasks import get_task, submission
from experiments import evaluate, predict
from experiments.tables.run import nli_mixture
from experiments.training import runs
from experiments.training.folder.checkpointing import Checkpoints
from experiments.training.folder.progress import EventWriter
from experiments.training.folder.run_folder import RunFolder, begin
from experiments.training.settings.config import BertConfig, FinetuneConfig, Phase, PretrainConfig
from official_bert.checkpoints import google
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.common.errors import UserError

# Names that commands write, and names that look like those they remove.
NAMES = [*["a\nb", "b c", " ", "�", "[x]*?", "-rf", "ä"], LOCK_FILE]
for line in (
    "options.json manifest.json report.json sentences.json config.json vocab.txt results.json",
    "report.md metrics.jsonl versions.json scores.json search.json model events checkpoints work",
    "predictions snapshots plots heldout model.json bert_config.json model.weights.h5 1 log.txt",
    "failure.json train.tsv wiki-00000.txt.gz articles-00000.jsonl.gz a.txt.gz answers.tsv .lock",
    "examples-00000-of-00001.tfrecord .bashrc.old .env.tmp .backup.tmp .model.old .official_bert",
    ".out.0123456789abcdef.tmp .out.0123456789abcdef.old .0123456789abcdef.01234567.tmp notes.txt",
    "out",
):
    NAMES += line.split(" ")


class Foreign:
    """Random files, folders, links, pipes and devices of a user, and what they were like."""

    def __init__(self, folder, outside, seed):
        self.draw = random.Random(seed)
        self.outside, self.root = outside, outside.parent
        outside.mkdir()
        (outside / "victim").write_text("mine")
        folder.mkdir(exist_ok=True)
        self.fill(folder, self.draw.choice([2, 5, 12]))
        self.before = self.now()

    def fill(self, folder, count, depth=0):
        for name in self.draw.sample(NAMES, count):
            path = folder / name
            kind = self.draw.choice(["file", "file", "empty", "folder", "link", "lost", "loop",
                                     "hard", "pipe", "device"])  # fmt: skip
            if kind == "folder":
                path.mkdir()
                self.fill(path, self.draw.choice([0, 1, 3]) if depth < 2 else 0, depth + 1)
            elif kind == "link":
                path.symlink_to(self.outside / self.draw.choice(["victim", ""]))
            elif kind in ("lost", "loop"):
                path.symlink_to(path.name if kind == "loop" else "nothing/here")
            elif kind == "hard":
                os.link(self.outside / "victim", path)
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind == "device" and os.geteuid() == 0:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
            else:  # empty ones under names of ours are those of a process that was killed early
                empty = kind == "empty" and name != LOCK_FILE
                path.write_bytes(b"" if empty else self.draw.randbytes(20))
            if not path.is_symlink():
                os.chmod(path, self.draw.choice([0o600, 0o640, 0o755, 0o700]))

    def now(self):
        """Return what is there; backups count under their first names."""
        return {self._look(path) for path in self.root.rglob("*")}

    def are_kept(self, where=None):
        now = self.now()
        assert self.before <= now, (where, sorted(self.before - now, key=str))

    def _look(self, path):
        state = os.lstat(path)
        content = None
        if path.is_symlink():
            content = os.readlink(path)
        elif stat.S_ISREG(state.st_mode):
            content = path.read_bytes()
        names = state.st_nlink if stat.S_ISREG(state.st_mode) else 1
        number = 0 if stat.S_ISDIR(state.st_mode) else state.st_ino
        name = re.sub(r"\.~\d+~", "", str(path.relative_to(self.root)))
        return name, state.st_mode, number, names, content


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Make the files that commands read."""
    folder = tmp_path_factory.mktemp("given")
    write_texts(folder)
    text = "This is a sentence of some length about nothing at all. " * 9
    revision = f"<revision><id>2</id><text>{text}</text></revision>"
    page = f"<page><title>T</title><ns>0</ns><id>1</id>{revision}</page>"
    (folder / "dump.xml").write_text(f"<mediawiki>\n  {page}\n</mediawiki>\n")
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "long text\tx\nshort\ty\n" * 5)
    pairs = "sentence1\tsentence2\tgold_label\na\tb\tneutral\nc\td\tentailment\n"
    (folder / "pairs.tsv").write_text(pairs)
    (folder / "model").mkdir()
    return folder


@pytest.fixture(autouse=True)
def predictor(monkeypatch):
    """Return a stand-in for a model that tells texts apart."""
    task = get_task("text_classification", text_column="text", labels="x,y")

    def answers(examples, show=None):
        logits = np.array([[len(e.text_a) > 5, len(e.text_a) <= 5] for e in examples]) * 50.0
        return task.predictions(examples, None, {"logits": logits}), 0

    stand_in = types.SimpleNamespace(
        task=task, labels=task.labels, fields=task.input_fields, predict=answers
    )
    for command in (predict, evaluate):
        monkeypatch.setattr(command, "Predictor", lambda *_: stand_in)
    monkeypatch.setattr(evaluate, "task_on", lambda model, data, split, *_: get_task(
        "text_classification", data_dir=os.path.dirname(data), labels="x,y"))  # fmt: skip


@pytest.fixture(scope="module")
def encoder():
    return ob.BertEncoder(CONFIG, seed=1)


def run_records(given, output, overwrite, encoder):
    make_records(given, output, overwrite=overwrite)


def run_sentences(given, output, overwrite, encoder):
    sentences.split_files(str(given / "a.txt"), output, "articles", overwrite=overwrite)


def run_wikipedia(given, output, overwrite, encoder):
    wikipedia.extract(str(given / "dump.xml"), output, overwrite=overwrite)


def run_finetuning(given, output, overwrite, encoder):
    options = {"labels": "x,y", "text_column": "text"}
    data = {"task": "text_classification", "data_dir": str(given), "task_options": options}
    config = FinetuneConfig(model=majority.NAME, **data)
    with majority.registered():
        runs.finetune(config, output, progress=False, overwrite=overwrite)


def run_pretraining(given, output, overwrite, encoder):
    """Write what a run writes, without its training."""
    config = PretrainConfig(bert=BertConfig(), phases=(Phase(records=str(given)),))
    with exclusive(output) as lock:
        begin(output, overwrite, lock)
        folder = RunFolder(output, config, lock=lock)
        EventWriter(folder.path / "events").close()
        for step in (1, 2):
            Checkpoints(folder.checkpoints, keep=1).save(step, {"w": np.ones(2)}, {})
        Checkpoints(folder.checkpoints).load_newest()
        folder.forget_metrics_after(1)
        folder.write_json("results.json", {"x": 1})
        Checkpoints(folder.checkpoints).remove_all()


def run_saving(given, output, overwrite, encoder):
    ob.save(output, encoder, ob.BertTokenizer(VOCAB), overwrite=overwrite)


def run_conversion(given, output, overwrite, encoder):
    for export in (google.export_google, huggingface.export_huggingface):
        export(output / "1", encoder, ob.BertTokenizer(VOCAB), overwrite=overwrite)


def run_prediction(given, output, overwrite, encoder):
    for name in ("answers.tsv", "report.md", "notes.txt"):
        paths = (str(given / "model"), str(given / "a.txt"), str(output / name))
        predict.run(*paths, progress=False, overwrite=overwrite)


def run_evaluation(given, output, overwrite, encoder):
    paths = (str(given / "model"), str(given / "dev.tsv"))
    evaluate.on_task(*paths, output=str(output), overwrite=overwrite)


def run_mixture(given, output, overwrite, encoder):
    nli_mixture.mix(str(given / "pairs.tsv"), [], output)


def run_zip(given, output, overwrite, encoder):
    submission.write_zip([], str(output / "notes.txt"), allow_missing=True)


COMMANDS = {name.removeprefix("run_"): run for name, run in globals().items() if name[:4] == "run_"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_of_the_users_changes(name, seed, tmp_path, given, encoder):
    folder = tmp_path / "home"
    foreign = Foreign(folder, tmp_path / "outside", f"{name} {seed}")
    ended = []
    for overwrite in (False, True, True):
        for output in (folder, folder / "out", folder / "new"):
            try:
                COMMANDS[name](given, output, overwrite, encoder)
                ended.append("done")
            except UserError:
                ended.append("refused")
            foreign.are_kept((overwrite, output))
            if not overwrite:
                assert not list(tmp_path.rglob("*.~1~"))
    assert "done" in ended  # in a folder of its own at least


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["records", "sentences", "wikipedia", "finetuning", "pretraining"])
def test_what_is_added_to_a_finished_folder_stays(name, seed, tmp_path, given, encoder):
    folder = tmp_path / "out"
    COMMANDS[name](given, folder, False, encoder)
    ours = {path.name for path in folder.iterdir()}
    foreign = Foreign(tmp_path / "new", tmp_path / "outside", seed)
    foreign.before = set()
    for path in sorted((tmp_path / "new").iterdir()):
        if path.name not in ours:
            path.rename(folder / path.name)
            added = foreign.now()
            foreign.before |= {one for one in added if one[0].startswith(f"out/{path.name}")}
    for overwrite in (False, True):
        with contextlib.suppress(UserError):
            COMMANDS[name](given, folder, overwrite, encoder)
        foreign.are_kept(overwrite)
