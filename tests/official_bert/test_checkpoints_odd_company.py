"""Sound encoders beside what is not theirs: it is left out by name, and the encoder is read."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny import CONFIG, VOCAB, assert_equal_weights, change_json

import official_bert as ob
from official_bert import UserError
from official_bert.checkpoints import google
from official_bert.checkpoints.finding import resolve
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.export import exports

TABLE = "bert.embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def model():
    return ob.BertClassifier(ob.BertEncoder(CONFIG, seed=1), 2, seed=1)


@pytest.fixture
def folder(model, tmp_path):
    huggingface.export_huggingface(tmp_path / "hf", model, ob.BertTokenizer(VOCAB))
    return tmp_path / "hf"


@pytest.fixture
def rewritten(folder):
    """Return rewritten(renamed, more tensors) saves the tensors anew; a name of None is left
    out."""

    def save(renamed=lambda name: name, **more):
        path = folder / "model.safetensors"
        tensors = {renamed(name): array for name, array in load_file(path).items()} | more
        save_file({name: array for name, array in tensors.items() if name}, path)
        return folder

    return save


class TestGoogle:
    @pytest.fixture
    def written(self, tmp_path):
        """Return written(tensors of BERT's, more, fields) -> a folder."""
        tf = pytest.importorskip("tensorflow")

        def write(tensors, more=(), **fields):
            tokenizer = ob.BertTokenizer(VOCAB)
            google.export_google(tmp_path / "g", self.encoder, tokenizer, overwrite=True)
            every = {name: np.float32(array) for name, array in {**tensors, **dict(more)}.items()}
            tf.raw_ops.SaveV2(
                prefix=str(tmp_path / "g" / "bert_model.ckpt"),
                tensor_names=list(every),
                shape_and_slices=[""] * len(every),
                tensors=list(every.values()),
            )
            change_json(tmp_path / "g" / "bert_config.json", **fields)
            return tmp_path / "g"

        return write

    @pytest.fixture(autouse=True)
    def tensors(self, model):
        from official_bert.checkpoints import transfer

        self.encoder = model.encoder
        return transfer.extract(model.encoder, "none", "google")

    @pytest.mark.parametrize(
        "slots",
        [("BERTAdam", "BERTAdam_1"), ("lamb_m",), ("ExponentialMovingAverage",), ("a/b/Momentum",)],
    )
    def test_slots_of_any_optimiser(self, written, tensors, slots):
        more = {f"{n}/{slot}": np.zeros_like(a) for n, a in tensors.items() for slot in slots}
        loaded = ob.load(written(tensors, {**more, "beta1_power": 0.9}))
        assert_equal_weights(loaded.encoder, self.encoder)
        assert {*loaded.report.left_out} == {
            (name, "optimiser slots") for name in (*more, "beta1_power")
        }

    @pytest.mark.parametrize(
        "name", ["encoder/layer_with_weights-0/embeddings/{}", "model/layer-2/kernel/{}", "x/{}"]
    )
    def test_names_of_tensorflow_2(self, written, name):
        name = name.format(".ATTRIBUTES/VARIABLE_VALUE")
        folder = written({name: np.zeros((2, 2)), "save_counter": 1.0})
        with pytest.raises(UserError, match="called as in TensorFlow 2.* TensorFlow 1's format"):
            ob.load(folder)

    def test_a_scope_around_all(self, written, tensors):
        found = {f"tower/model/{name}": array for name, array in tensors.items()}
        loaded = ob.load(written(found, {"tower/global_step": 1, "crf/transitions": [[0, 1]]}))
        assert_equal_weights(loaded.encoder, self.encoder)
        left_out = {name for name, _ in loaded.report.left_out}
        assert left_out == {"tower/global_step", "crf/transitions"}

    def test_a_tensor_of_the_encoder_that_it_has_no_place_for(self, written, tensors):
        for name in ("bert/encoder/layer_7/output/dense/bias", "bert/encoder/layer_0/adapter/bias"):
            with pytest.raises(UserError, match=f"tensor {name} is of the encoder, but"):
                ob.load(written(tensors, {name: [0.0]}))

    @pytest.mark.parametrize(
        ("tensors_of_head", "head"),
        [
            ({"output_weights": (2, 8), "output_bias": (2,)}, "classification"),
            ({"output_weights": (2, 5), "output_bias": (2,)}, "none"),
            ({"output_weights": (2, 8)}, "none"),
            ({"cls/squad/output_weights": (5, 8), "cls/squad/output_bias": (5,)}, "none"),
        ],
    )
    def test_heads_of_ones_own(self, written, tensors, tensors_of_head, head):
        more = {name: np.zeros(shape) for name, shape in tensors_of_head.items()}
        loaded = ob.load(written(tensors, more))
        assert loaded.head == head
        left_out = [] if head != "none" else sorted(more)
        assert [name for name, _ in loaded.report.left_out] == left_out

    def test_fields_of_scripts_are_remarked_upon(self, written, tensors):
        fields = {"ln_type": "postln", "finetuning_task": None, "num_labels": 2}
        fields |= {"pad_token_id": 0, "type": "bert"}
        loaded = ob.load(written(tensors, **fields))
        assert loaded.config == CONFIG
        told = "bert_config.json that say nothing of the encoder: finetuning_task, ln_type, num_l"
        assert told in str(loaded.report)
        for name, value in (("ln_type", "preln"), ("use_relative_position", True)):
            with pytest.raises(UserError, match=f"{name} is .*; BERT's is"):
                ob.load(written(tensors, **{name: value}))

    def test_a_misspelt_size_is_no_other_field(self, written, tensors):
        path = written(tensors) / "bert_config.json"
        path.write_text(path.read_text().replace("num_attention_heads", "num_attention_head"))
        with pytest.raises(UserError, match="the field num_attention_heads is missing"):
            ob.load(path.parent)

    def test_the_configuration_may_have_the_name_of_another_library(self, written, tensors):
        folder = written(tensors)
        (folder / "bert_config.json").rename(folder / "config.json")
        assert_equal_weights(ob.load(folder).encoder, self.encoder)
        assert resolve.peek(folder)[0] == CONFIG


class TestHuggingFace:
    @pytest.mark.parametrize("before", ["module.", "_orig_mod.", "model.module."])
    def test_a_prefix_before_all(self, rewritten, model, before):
        folder = rewritten(lambda name: before + name)
        loaded = ob.load(folder)
        assert_equal_weights(loaded.model, model)
        assert loaded.report.left_out == [] and loaded.head == "classification"

    def test_an_encoder_inside_a_class_of_ones_own(self, rewritten, model):
        one = np.ones(1, np.float32)
        named = {"classifier.weight": "", "classifier.bias": ""}
        inside = lambda name: named.get(name, name.replace("bert.", "text_model.", 1))  # noqa: E731
        folder = rewritten(inside, **{"pooler.dense.weight": one, "crf.transitions": one})
        change_json(folder / "config.json", architectures=["SentimentNet"])
        loaded = ob.load(folder)
        assert_equal_weights(loaded.encoder, model.encoder)
        assert {name for name, _ in loaded.report.left_out} == {
            "pooler.dense.weight", "crf.transitions",
        }  # fmt: skip
        assert "config.json names SentimentNet: no such head is here" in str(loaded.report)

    def test_of_two_encoders_none_is_chosen(self, rewritten, folder):
        tensors = load_file(folder / "model.safetensors")
        rewritten(lambda name: f"query.{name}", **{f"passage.{n}": a for n, a in tensors.items()})
        with pytest.raises(UserError, match=r"several encoders, passage\.bert\., query\.bert\.; "):
            ob.load(folder)

    @pytest.mark.parametrize(
        "name", ["encoder.layer.0.adapter.weight", "encoder.layer.3.output.dense.bias",
                 "embeddings.task_type_embeddings.weight"],
    )  # fmt: skip
    def test_what_an_encoder_computes_beside_bert_is_refused(self, rewritten, name):
        with pytest.raises(UserError, match=f"tensor bert.{name} is of the encoder, but no"):
            ob.load(rewritten(**{f"bert.{name}": np.ones(1, np.float32)}))

    @pytest.mark.parametrize("file", ["config.json", "bert_config.json"])
    @pytest.mark.parametrize("model_type", [None, "my_bert_crf"])
    def test_bert_is_known_by_its_tensors(self, folder, model, file, model_type):
        change_json(folder / "config.json", model_type=model_type)
        (folder / "config.json").rename(folder / file)
        assert resolve.format_of(folder) == "huggingface"
        assert_equal_weights(ob.load(folder).model, model)
        assert resolve.peek(folder)[0] == CONFIG

    @pytest.mark.parametrize(
        ("kind", "tensors"),
        [
            ("SequenceClassification", {"classifier.weight": (2, 8)}),
            ("SequenceClassification", {"classifier.weight": (2, 5), "classifier.bias": (2,)}),
            ("TokenClassification", {"classifier.0.weight": (2, 8), "classifier.0.bias": (2,)}),
            ("QuestionAnswering", {"qa_outputs.weight": (5, 8), "qa_outputs.bias": (5,)}),
            ("MultipleChoice", {}),
            ("MultiLabelClassification", {"classifier.weight": (2, 8)}),
        ],
    )
    def test_a_head_that_is_none_of_ours_is_left_out(self, rewritten, model, kind, tensors):
        of_head = {name: np.zeros(shape, np.float32) for name, shape in tensors.items()}
        folder = rewritten(lambda name: "" if name.startswith("classifier") else name, **of_head)
        change_json(folder / "config.json", architectures=[f"BertFor{kind}"])
        loaded = ob.load(folder)
        assert loaded.head == "none" and len(loaded.report.notes) == 2  # and of embed
        assert_equal_weights(loaded.encoder, model.encoder)
        assert {name for name, _ in loaded.report.left_out} == set(tensors)

    def test_the_next_sentence_alone(self, folder, model):
        pretrainer = ob.BertPretrainer(model.encoder, ["next_sentence"], seed=1)
        tensors = load_file(folder / "model.safetensors")
        kernel, bias = map(np.asarray, pretrainer.next_sentence.weights)
        tensors["cls.seq_relationship.weight"] = np.ascontiguousarray(kernel.T)
        tensors["cls.seq_relationship.bias"] = bias
        save_file(tensors, folder / "model.safetensors")
        change_json(folder / "config.json", architectures=["BertForNextSentencePrediction"])
        loaded = ob.load(folder)
        assert loaded.settings["objectives"] == ["next_sentence"]
        assert_equal_weights(loaded.model, pretrainer)
        with pytest.raises(UserError, match=r"no masked-LM head \(its heads: next_sentence\)"):
            loaded.fill_mask("[MASK] a")
        assert exports.choose_head(loaded, None, "it") == "embedding"
        with pytest.raises(UserError, match="exported as embedding, features, not as 'masked_w"):
            exports.choose_head(loaded, "masked_words", "it")

    def test_labels_may_be_numbers(self, folder):
        change_json(folder / "config.json", id2label={"0": 0, "1": 1})
        assert ob.load(folder).settings["labels"] == ["0", "1"]
        change_json(folder / "config.json", id2label={"0": "x", "1": "x"})
        with pytest.raises(UserError, match="config.json: id2label: x is there twice"):
            ob.load(folder)

    def test_regression_to_several_numbers_is_left_out(self, folder):
        change_json(folder / "config.json", problem_type="regression")
        loaded = ob.load(folder)
        assert loaded.head == "none" and "regression to 2 numbers" in str(loaded.report)
