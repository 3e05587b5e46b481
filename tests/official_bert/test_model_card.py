"""README.md of a folder for the Hugging Face hub: what is known, and nothing else."""

from huggingface_hub import ModelCard
from served_models import LABELS, make_encoder

import official_bert as ob
from official_bert.checkpoints.hugging_face import model_card
from official_bert.checkpoints.hugging_face.huggingface import export_huggingface

FINE_TUNING = {
    "dev": {"accuracy": 0.98765, "macro_f1": 0.5},
    "baseline": {"accuracy": 0.4},
    "train_examples": 4353,
    "dev_examples": 484,
}


def test_what_the_model_folder_knows(tmp_path):
    settings = {
        "labels": list(LABELS),
        "max_seq_length": 48,
        "task": {"name": "text_classification", "options": {"truncation": "tail", "columns": []}},
        "fine_tuning": FINE_TUNING,
        "license": "cc-by-4.0",
    }
    model = ob.BertClassifier(make_encoder(), 3)
    export_huggingface(tmp_path / "hub", model, None, settings)
    card = ModelCard.load(tmp_path / "hub" / "README.md")
    assert card.data.to_dict() == {
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "license": "cc-by-4.0",
        "tags": ["bert"],
    }
    lines = card.text.splitlines()
    for told in (
        "# BertForSequenceClassification",
        "- Task: text_classification, as official-bert calls it",
        "- truncation: tail",
        "- labels: no, maybe, yes",
        "- longest text in training: 48 tokens",
        "- train examples: 4,353",
        "| accuracy | 0.9877 | 0.4000 |",
        "| macro_f1 | 0.5000 |  |",
        "cc-by-4.0",
    ):
        assert told in lines
    assert "columns" not in card.text
    assert ob.load(tmp_path / "hub").head == "classification"


def test_what_it_does_not_know_is_said_or_left_out(tmp_path):
    strange = {"fine_tuning": {"dev": "good", "baseline": 3, "train_examples": []}}
    for name, settings in (("plain", {}), ("strange", strange)):
        export_huggingface(tmp_path / name, make_encoder(), None, settings)
        card = ModelCard.load(tmp_path / name / "README.md")
        assert card.data.pipeline_tag == "feature-extraction" and card.data.license is None
        assert "The model folder does not name them." in card.text
        assert "No file of the model names one in its fields; the data may have" in card.text
        assert "Scores" not in card.text


def test_an_own_readme_is_kept_and_its_licence_told(tmp_path):
    assert model_card.settings_of(tmp_path) == {}
    (tmp_path / "README.md").write_text("---\nlicense: mit\ntags:\n- x\n---\n# Mine\n\nOf letters.")
    settings = model_card.settings_of(tmp_path)
    assert settings == {"readme": "# Mine\n\nOf letters.", "license": "mit"}
    export_huggingface(tmp_path / "hub", make_encoder(), None, settings)
    card = ModelCard.load(tmp_path / "hub" / "README.md")
    assert card.data.license == "mit" and card.text.rstrip().endswith("# Mine\n\nOf letters.")
