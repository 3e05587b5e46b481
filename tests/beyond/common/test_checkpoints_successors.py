"""BERT's successors in Hugging Face's and KerasHub's formats: out, in again, what is refused."""

import json

import numpy as np
import pytest
import tiny
from tiny import VOCAB, assert_equal_weights

import official_bert as ob
from experiments.beyond.gpt.names import OPENAI_GPT
from experiments.beyond.sentence_piece.tokenizer import SentencePieceTokenizer, normalized
from official_bert import UserError
from official_bert.backend.variables import named_variables
from official_bert.checkpoints import google, keras_hub
from official_bert.checkpoints.finding.resolve import EXPORTERS
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.checkpoints.members import backbone_of, backbones, member, remarks
from tests.beyond import successor_tokenizers

CONFIG = tiny.CONFIG.replaced(num_hidden_layers=2)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("RobertaBackbone", {"type_vocab_size": 0, "pooler_activation": "none",
                             "layer_norm_eps": 1e-5, "pad_token_id": 1}),
        ("DistilBertBackbone", {"type_vocab_size": 0, "pooler_activation": "none"}),
        ("ElectraBackbone", {"embedding_size": 4, "gelu_form": "tanh"}),
        ("AlbertBackbone", {"embedding_size": 4, "num_hidden_groups": 1, "gelu_form": "tanh"}),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_keras_hub_s_successors_come_back_to_the_bit(name, fields, tmp_path):
    pytest.importorskip("keras_hub")
    encoder = ob.BertEncoder(CONFIG.replaced(**fields), seed=0)
    backbone = keras_hub.to_backbone(encoder)
    assert type(backbone).__name__ == name
    loaded = keras_hub.from_backbone(backbone)
    assert loaded.config == encoder.config
    assert_equal_weights(loaded.model, encoder)
    if name == "DistilBertBackbone":  # the one whose tokeniser is WordPiece as it is
        EXPORTERS["keras_hub"](tmp_path / "p", encoder, ob.BertTokenizer(VOCAB))
        preset = ob.load(tmp_path / "p")
        assert preset.config == encoder.config and preset.tokenizer.vocab == VOCAB


@pytest.mark.parametrize("member", ["roberta", "albert"])
def test_keras_hub_s_presets_carry_the_tokenisers_of_successors(member, tmp_path):
    """KerasHub gives the same ids, and what comes back is the same tokeniser."""
    library = pytest.importorskip("keras_hub")
    texts = successor_tokenizers.TEXTS
    if member == "roberta":
        fields = {**DISTILBERT, "layer_norm_eps": 1e-5}
        tokenizer = successor_tokenizers.byte_pairs(["Ġdog", "Ġthe", "cat"], add_prefix_space=True)
        other, given = ob.BertTokenizer(VOCAB), texts
    else:
        pytest.importorskip("sentencepiece")
        fields = ALBERT
        tokenizer = SentencePieceTokenizer(successor_tokenizers.sentence_piece_model(()))
        other, given = successor_tokenizers.byte_pairs(), [normalized(t, True) for t in texts]
    config = CONFIG.replaced(**fields, vocab_size=max(tokenizer.vocab_size, 270))
    encoder = ob.BertEncoder(config, seed=0)
    notes = EXPORTERS["keras_hub"](tmp_path / "p", encoder, tokenizer)
    assert any("as ALBERT's own code does" in note for note in notes) == (member == "albert")
    theirs = library.tokenizers.Tokenizer.from_preset(str(tmp_path / "p"))
    for text, theirs_of in zip(texts, map(theirs, given), strict=True):
        assert np.asarray(theirs_of).tolist() == tokenizer.encode(text), text
    assert ob.load(tmp_path / "p").tokenizer.digest() == tokenizer.digest()
    [note] = EXPORTERS["keras_hub"](tmp_path / "other", encoder, other)
    assert note.startswith("no tokeniser was written") and ob.load(tmp_path / "other")
    other.write(tmp_path)
    with pytest.raises(UserError, match=f"a {other.kind} vocabulary; this model has"):
        keras_hub.import_keras_hub(tmp_path / "other", vocab=tmp_path / other.file_name)


def test_what_keras_hub_cannot_hold_of_a_successor():
    electra = CONFIG.replaced(embedding_size=4, pooler_activation="none")
    [form, pooler] = remarks(backbones()["ElectraBackbone"], electra)
    assert form.startswith("KerasHub computes GELU in the tanh form, this model erf")
    assert pooler.startswith("the pooler of ElectraBackbone keeps random values")
    roberta = CONFIG.replaced(type_vocab_size=1, layer_norm_eps=1e-5)
    assert [note.split(":")[0] for note in remarks(backbones()["RobertaBackbone"], roberta)] == [
        "left out, a RobertaBackbone has no pooler",
        "the row of the one segment was added to those of the positions",
    ]
    with pytest.raises(UserError, match="DistilBertBackbone has layer_norm_eps 1e-12 only"):
        backbone_of(CONFIG.replaced(type_vocab_size=0, layer_norm_eps=1e-6))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "albert", "inner_group_num": 2}, "inner_group_num 2, only 1 is read"),
        ({"model_type": "distilbert"}, "config.json: a field is missing or wrong: 'dim'"),
        ({"model_type": "gpt2"}, "a field is missing or wrong: 'vocab_size'"),
        (
            {"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": True},
            "scale_attn_by_inverse_layer_idx True, only False is read",
        ),
        ({"model_type": "gpt_neo"}, "read are bert, albert, distilbert, electra"),
    ],
)
def test_successors_with_fields_that_are_not_read(tmp_path, fields, message):
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(UserError, match=message):
        huggingface.import_huggingface(tmp_path)


def test_names_of_albert_in_bert_s():
    albert = member("albert")
    block = "encoder.albert_layer_groups.1.albert_layers.0"
    names = [f"{block}.attention.query.weight", f"{block}.ffn_output.bias", "pooler.weight"]
    assert list(albert.table_names(names)) == [
        "bert.encoder.layer.1.attention.self.query.weight",
        "bert.encoder.layer.1.output.dense.bias",
        "bert.pooler.dense.weight",
    ]


ROBERTA = {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
ALBERT = {"embedding_size": 4, "num_hidden_groups": 1, "gelu_form": "tanh"}
DISTILBERT = {"type_vocab_size": 0, "pooler_activation": "none"}
ELECTRA = {"embedding_size": 4, "pooler_activation": "none"}
GPT = {**OPENAI_GPT, "intermediate_size": 32, "pad_token_id": -1}


@pytest.mark.parametrize(
    ("fields", "make", "class_name"),
    [
        (ROBERTA, ["masked_lm"], "RobertaForMaskedLM"),
        (ROBERTA, ob.BertClassifier, "RobertaForSequenceClassification"),
        (ROBERTA, ob.BertMultipleChoice, "RobertaForMultipleChoice"),
        (ALBERT, ["masked_lm", "sentence_order"], "AlbertForPreTraining"),
        (ALBERT, ob.BertTagger, "AlbertForTokenClassification"),
        (ALBERT, None, "AlbertModel"),
        (DISTILBERT, ["masked_lm"], "DistilBertForMaskedLM"),
        (DISTILBERT, ob.BertSpan, "DistilBertForQuestionAnswering"),
        (DISTILBERT, None, "DistilBertModel"),
        (
            {**DISTILBERT, "pooler_activation": "relu"},
            ob.BertClassifier,
            "DistilBertForSequenceClassification",
        ),
        (ELECTRA, ["replaced_token"], "ElectraForPreTraining"),
        (ELECTRA, ["masked_lm"], "ElectraForMaskedLM"),
        (
            {**ELECTRA, "pooler_activation": "gelu"},
            ob.BertMultipleChoice,
            "ElectraForMultipleChoice",
        ),
        (GPT, ["next_token"], "OpenAIGPTLMHeadModel"),
        (GPT, None, "OpenAIGPTModel"),
        (GPT | {"norm_first": True}, ["next_token"], "GPT2LMHeadModel"),
        (GPT | {"norm_first": True, "hidden_act": "relu", "gelu_form": "erf"}, None, "GPT2Model"),
    ],
)
def test_successors_come_back_to_the_bit(fields, make, class_name, tmp_path):
    """All that the class holds; a tagger's pooler and ELECTRA's generator it does not."""
    encoder = ob.BertEncoder(CONFIG.replaced(**fields), seed=0)
    if isinstance(make, list):
        model = ob.BertPretrainer(encoder, make, seed=1)
    else:
        labels = {"num_labels": 3} if make in (ob.BertClassifier, ob.BertTagger) else {}
        model = make(encoder, **labels, seed=1) if make else encoder
    for number, variable in enumerate(model.weights):  # zero biases are all alike
        variable.assign(variable + 0.01 * number)
    notes = "; ".join(huggingface.export_huggingface(tmp_path / "m", model, None))
    assert ("has no place for it: generator" in notes) == hasattr(model, "generator")
    written = json.loads((tmp_path / "m" / "config.json").read_text())
    assert written["architectures"] == [class_name]
    loaded = huggingface.import_huggingface(tmp_path / "m")
    assert loaded.config == encoder.config and loaded.report.left_out == []
    found, expected = named_variables(loaded.model), named_variables(model)
    assert {name.split("/")[0] for name in loaded.report.initial} <= {
        *("pooler", "next_sentence", "generator")
    }
    for name, _ in loaded.report.loaded:
        np.testing.assert_array_equal(found[name].numpy(), expected[name].numpy(), name)


@pytest.mark.parametrize(
    ("fields", "make", "message"),
    [
        ({"num_hidden_groups": 1}, None, "no Albert .* its embedding_size 0 is not"),
        (DISTILBERT, ob.BertClassifier, "no DistilBert .* pooler_activation 'none' is not"),
        ({**DISTILBERT, "layer_norm_eps": 1e-5}, None, "its layer_norm_eps 1e-05 is not"),
        (ELECTRA | {"embedding_size": 8}, None, "no Electra .* its embedding_size 8 is not"),
        (ROBERTA | {"gelu_form": "tanh"}, ["masked_lm"], "no Roberta .* gelu_form 'tanh' is not"),
        (ALBERT, ["sentence_order"], "no Albert with the heads of sentence_order"),
        (OPENAI_GPT, None, "no OpenAIGPT .* its intermediate_size 12 is not"),
        (GPT, ob.BertClassifier, "no OpenAIGPT with a classification like this"),
        (GPT | {"norm_first": True}, ob.BertTagger, "no GPT2 with a tagging like this"),
    ],
)
def test_successors_that_transformers_does_not_compute(fields, make, message, tmp_path):
    encoder = ob.BertEncoder(CONFIG.replaced(**fields), seed=0)
    model = encoder
    if isinstance(make, list):
        model = ob.BertPretrainer(encoder, make)
    elif make:
        model = make(encoder, 2)
    with pytest.raises(UserError, match=message):
        huggingface.export_huggingface(tmp_path / "m", model, None)
    assert not (tmp_path / "m").exists()


def test_word_pieces_go_with_a_distilbert_without_segments(tmp_path):
    encoder = ob.BertEncoder(CONFIG.replaced(**DISTILBERT), seed=0)
    assert huggingface.export_huggingface(tmp_path / "d", encoder, ob.BertTokenizer(VOCAB)) == []
    fields = json.loads((tmp_path / "d" / "tokenizer_config.json").read_text())
    assert fields["model_input_names"] == ["input_ids", "attention_mask"]
    assert huggingface.import_huggingface(tmp_path / "d").tokenizer.vocab == VOCAB
    roberta = ob.BertEncoder(CONFIG.replaced(**ROBERTA), seed=0)
    [note] = huggingface.export_huggingface(tmp_path / "r", roberta, None)
    assert note.startswith("no tokenizer files: byte_pair is what roberta has")
    # With BERT's tokeniser it is a BERT of one segment.
    huggingface.export_huggingface(tmp_path / "b", roberta, ob.BertTokenizer(VOCAB))
    assert json.loads((tmp_path / "b" / "config.json").read_text())["model_type"] == "bert"


@pytest.mark.parametrize(
    ("name", "message"),
    [("google", "differs from BERT's in num_hidden_groups"),
     ("keras_hub", "AlbertBackbone has an embedding_size of its own, this has none")],
)  # fmt: skip
def test_a_successor_is_not_exported_as_bert(name, message, tmp_path):
    encoder = ob.BertEncoder(CONFIG.replaced(num_hidden_groups=1), seed=0)
    with pytest.raises(UserError, match=message):
        EXPORTERS[name](tmp_path / "out", encoder, ob.BertTokenizer(VOCAB))
    assert not (tmp_path / "out").exists()


def test_a_family_is_known_by_its_tensors(tmp_path):
    config = CONFIG.replaced(type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
    encoder = ob.BertEncoder(config, seed=0)
    folder = tmp_path / "roberta"
    huggingface.export_huggingface(folder, ob.BertPretrainer(encoder, ["masked_lm"]), None)
    tiny.change_json(folder / "config.json", drop=["model_type"])
    loaded = ob.load(folder)
    assert loaded.config == config and loaded.head == "pretraining"
    # Without its name before them the tensors are BERT's, and padding of id 1 is RoBERTa's.
    huggingface.export_huggingface(folder, encoder, None, overwrite=True)
    tiny.change_json(folder / "config.json", drop=["model_type"])
    with pytest.raises(UserError, match='add "model_type", one of bert, .*roberta'):
        ob.load(folder)


@pytest.mark.parametrize("mark", ["norm_first", "recurrent", "filters"])
def test_fields_that_are_not_a_member_s_are_not_read(tmp_path, mark):
    encoder = ob.BertEncoder(tiny.CONFIG, seed=0)
    huggingface.export_huggingface(tmp_path / "m", encoder, None)
    tiny.change_json(tmp_path / "m" / "config.json", **{mark: True})
    assert ob.load(tmp_path / "m").config == tiny.CONFIG


def test_google_s_electra_has_no_dense_layer_where_its_tables_are_as_wide(tmp_path):
    google.export_google(tmp_path / "g", ob.BertEncoder(tiny.CONFIG, seed=0), None)
    path = tmp_path / "g" / "bert_config.json"
    tiny.change_json(path, embedding_size=tiny.CONFIG.hidden_size)
    config, notes = google.read_config(path)
    assert (config, notes) == (tiny.CONFIG, [])
    tiny.change_json(path, embedding_size=4)
    assert google.read_config(path)[0].embedding_width == 4


def test_layers_that_share_a_block_are_counted(tmp_path):
    ob.save(tmp_path / "m", ob.BertEncoder(tiny.CONFIG, seed=0), None)
    path = tmp_path / "m" / "bert_config.json"
    tiny.change_json(path, num_hidden_layers=10**8, num_hidden_groups=1)
    tiny.change_json(tmp_path / "m" / "model.json", drop=["checksums"])
    with pytest.raises(UserError, match="says 100,000,000 layers"):
        ob.load(tmp_path / "m")
