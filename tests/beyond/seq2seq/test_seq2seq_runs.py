"""Texts from texts, from files to a fine-tuned model, its scores and its answers; the table."""

import json

import pytest
import tiny_runs

from experiments import evaluate, finetune, predict
from experiments.tables.planning.plan import plan_table
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced
from experiments.training.start import finetuning_preflight, initial_state
from official_bert.checkpoints import model_folder, model_settings
from official_bert.common.errors import UserError

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Return made texts: what is written is what was read, in the same order."""
    folder = tmp_path_factory.mktemp("pairs") / "verses"
    folder.mkdir()
    texts = [" ".join(WORDS[(i * k) % 8] for k in range(1, 3 + i % 3)) for i in range(48)]
    for split, part in (("train", texts), ("dev", texts[:12])):
        lines = "".join(f"{text}\t{text}\n" for text in part)
        (folder / f"{split}.tsv").write_text("source\ttarget\n" + lines)
    return folder


def config_of(pairs, **fields):
    usual = {
        "data_dir": str(pairs), "model": "tiny-wikipedia", "max_seq_length": 16, "log_every": 1,
        "train_batch_size": 16, "num_train_epochs": 2.0, "learning_rate": 2e-3,
        "task_options": {"max_target_length": 8, "beams": 2},
    }  # fmt: skip
    return replaced(load_config("seq2seq:finetune"), **{**usual, **fields})


def test_fine_tuning_scores_and_answers(pairs, tmp_path):
    results = finetune.run(config_of(pairs), tmp_path / "run", progress=False)
    losses = tiny_runs.logged(tmp_path / "run", "label_loss")
    assert losses[-1] < losses[0] and set(results.dev) == set(results.baseline)
    assert results.baseline["bleu"] == pytest.approx(1), "the source is the answer here"
    model = results.files["model"]
    settings = model_settings.read_settings(model)
    told = {name: settings[name] for name in ("head", "decoder", "longest", "beams")}
    assert told == {"head": "text", "decoder": "separate", "longest": 7, "beams": 2}
    scores, _ = evaluate.on_task(model, str(pairs))
    assert scores == pytest.approx(results.dev, abs=1e-6)
    (tmp_path / "asked.tsv").write_text("source\none two\n\nthree four\n")
    predict.run(model, str(tmp_path / "asked.tsv"), str(tmp_path / "answers.jsonl"), progress=False)
    rows = list(map(json.loads, (tmp_path / "answers.jsonl").read_text().splitlines()))
    assert [row["source"] for row in rows] == ["one two", "", "three four"]
    assert [isinstance(row.get("output"), str) for row in rows] == [True, False, True]
    # Fewer beams may be asked for, another length of the model may not.
    greedy, _ = evaluate.on_task(model, str(pairs), task_options={"beams": 1})
    assert set(greedy) == set(scores)
    with pytest.raises(UserError, match="max_target_length belongs to the model"):
        evaluate.on_task(model, str(pairs), task_options={"max_target_length": 4})
    # Fine-tuned once more it goes on from its decoder, with another one it does not.
    start = initial_state.BertSource().finetuning_start(config_of(pairs, model=model), None, {})
    head = {"head": "text", "decoder": "separate", "longest": 7}
    again = start.model(config_of(pairs, model=model), head, seed=1)
    trained = model_folder.load(model).model
    for found, expected in zip(again.weights, trained.weights, strict=True):
        assert (found.numpy() == expected.numpy()).all(), expected.path


def test_a_checkpoint_in_both(pairs):
    config = config_of(pairs)
    start = initial_state.BertSource().finetuning_start(config, None, {})
    head = {"head": "text", "decoder": "separate", "longest": 7}
    model = start.model(config, head, seed=1)
    stored = model_folder.load("tiny-wikipedia")
    for found, expected in (
        (model.own_decoder.embeddings.word_embeddings, stored.encoder.embeddings.word_embeddings),
        (model.masked_lm.transform.kernel, stored.model.masked_lm.transform.kernel),
        (model.masked_lm.bias, stored.model.masked_lm.bias),
    ):
        assert (found.numpy() == expected.numpy()).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"decoder": "rnn"}, "GRUs begin with random weights"),
        ({"decoder": "prefix", "max_seq_length": 80}, "80 tokens each, stand in one row"),
        ({"bilstm": True}, "--config.bilstm is not for text_to_text"),
        ({"model": "tiny-wikipedia-ltr"}, "this model is left_to_right"),
        ({"lm_loss_weight": 0.5}, "--config.lm_loss_weight is not for text_to_text"),
    ],
)
def test_what_is_refused_before_it_begins(pairs, fields, message):
    with pytest.raises(UserError, match=message):
        finetuning_preflight.finetuning(replaced(config_of(pairs), **fields))


def test_decoders_are_for_this_task(tmp_path):
    texts = tiny_runs.write_labelled_texts(tmp_path)
    config = config_of(texts, task="text_classification", task_options={}, decoder="shared")
    with pytest.raises(UserError, match="--config.decoder=shared is for text_to_text"):
        finetuning_preflight.finetuning(config)


@pytest.mark.parametrize(
    ("scale", "folder", "rows"), [("cpu", "verses", 8), ("questions", "questions", 6)]
)
def test_the_tables(pairs, scale, folder, rows):
    if folder != pairs.name:
        pairs.with_name(folder).symlink_to(pairs)
    made = plan_table(load_config(f"seq2seq:{scale}", {"data_dir": str(pairs.parent)}))
    assert len(made.cells) == {"verses": 28, "questions": 30}[folder]
    assert {len(runs) for runs in made.runs.values()} == {1, 2}, "baselines run once"
    models = {(cell.config.get("decoder"), cell.config.get("model")) for cell in made.cells}
    assert len(models) == rows
    assert made.runs["RNN", "longer half"] == made.runs["RNN", "BLEU, all pairs"]
