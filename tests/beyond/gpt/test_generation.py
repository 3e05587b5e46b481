"""Text token by token: keys and values that are kept, decoding and draws by hand; GPT-2's block."""

import json

import keras
import numpy as np
import pytest
from keras import ops

import official_bert as ob
from experiments.beyond.common import generation
from experiments.beyond.common.layers import NormFirstBlock
from experiments.beyond.gpt.gpt2_names import GPT2
from experiments.beyond.gpt.names import OPENAI_GPT
from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from official_bert.common.errors import UserError
from official_bert.objectives.masked_lm import language_model_head
from official_bert.predict import Model
from official_bert.tokenization import BertTokenizer
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS

SIZES = {
    "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 24, "max_position_embeddings": 12, "initializer_range": 0.3,
}  # fmt: skip
SHALLOW = {"attention_direction": "shallow_concatenation"}
KINDS = {
    "BERT's": {"attention_direction": "left_to_right"},
    "shared": {"attention_direction": "left_to_right", "num_hidden_groups": 1, "embedding_size": 8},
    "GPT": OPENAI_GPT,
    "GPT-2": GPT2,
}


def step_of(**fields):
    config = ob.BertConfig.from_dict({**SIZES, **fields})
    encoder = ob.BertEncoder(config, seed=0)
    head = language_model_head(config, keras.initializers.RandomNormal(stddev=0.3, seed=1))
    return generation.NextToken(encoder, head)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_changes_no_score(kind):
    step = step_of(**KINDS[kind])
    ids = np.random.default_rng(0).integers(5, 30, (3, 9)).astype("int32")
    batch = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    states = step.encoder(batch)["sequence_output"]
    expected = ops.convert_to_numpy(step.head(states, step.encoder.embeddings.word_embeddings))
    state = step.begin(3, 11)  # longer than the text
    for place in range(9):
        scores, state = step(ids[:, place], place, state)
        np.testing.assert_allclose(scores, expected[:, place], atol=1e-5)


def test_encoders_that_see_what_comes_are_refused():
    with pytest.raises(UserError, match="read left to right; this encoder is bidirectional"):
        step_of()


def markov(tokens, place, state):
    """After token t comes t + 1, then, less likely, 0; the state counts the steps."""
    scores = np.full((len(tokens), 8), -9.0)
    scores[np.arange(len(tokens)), (tokens + 1) % 8] = 2
    scores[:, 0] = np.maximum(scores[:, 0], 1)
    return scores, state + 1


def test_greedy_by_hand():
    prompts = [[1], [2, 5, 3], [6, 6], [1, 2, 3, 4, 5]]
    found = generation.decode(markov, 0, prompts, 5, generation.greedy, end=7)
    # Up to five tokens in all; 7 ends a text and is left out; a prompt may fill its row.
    assert found == [[2, 3, 4, 5], [4, 5], [], []]
    steps = []
    generation.decode(lambda *x: steps.append(x) or markov(*x), 0, [[6]], 50, generation.greedy, 7)
    assert len(steps) == 1, "it stops when all have ended"


def test_draws_by_hand():
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    scores = np.tile(np.log(shares).astype("float32"), (4000, 1))

    def frequencies(**options):
        drawn = generation.sampling(**options)(scores, 3)
        return np.bincount(ops.convert_to_numpy(drawn), minlength=4) / 4000

    np.testing.assert_allclose(frequencies(), shares, atol=0.03)
    np.testing.assert_allclose(frequencies(top_k=2), [5 / 8, 3 / 8, 0, 0], atol=0.03)
    # 0.5 and 0.3 are less than 0.9 together, so the third stays, and no other.
    np.testing.assert_allclose(frequencies(top_p=0.9), shares * [1, 1, 1, 0] / 0.95, atol=0.03)
    assert frequencies(top_p=0.01)[0] == frequencies(temperature=1e-3)[0] == 1
    assert frequencies(temperature=1e-45)[0] == 1, "nothing overflows"
    squared = shares**2 / (shares**2).sum()
    np.testing.assert_allclose(frequencies(temperature=0.5), squared, atol=0.03)
    choose = generation.sampling(seed=5)
    drawn = [ops.convert_to_numpy(choose(scores, place)) for place in (3, 3, 4)]
    assert (drawn[0] == drawn[1]).all() and (drawn[0] != drawn[2]).any()
    for wrong in (
        {"temperature": 0},
        {"temperature": np.nan},
        {"top_k": -1},
        {"top_p": 0},
        {"top_p": 1.5},
    ):
        with pytest.raises(UserError, match="must be above 0"):
            generation.sampling(**wrong)


def test_sub_layers_read_what_is_normalised():
    config = ob.BertConfig.from_dict({**SIZES, **GPT2})
    initializer = keras.initializers.TruncatedNormal(stddev=0.3, seed=keras.random.SeedGenerator(0))
    block = NormFirstBlock(config, initializer)
    block.attention_norm.gamma.assign(np.linspace(0.5, 2, 16))
    x = np.random.default_rng(0).normal(size=(2, 5, 16)).astype("float32")
    free = np.zeros((1, 1, 1, 5), "float32")
    y = x + block.attention(block.attention_norm(x), free)
    inner = block.activation(block.intermediate(block.output_norm(y)))
    expected = ops.convert_to_numpy(y + block.output_dense(inner))
    np.testing.assert_allclose(block(x, free), expected, atol=1e-5)
    # Four additions to the residual: half of the usual deviation.
    found = np.std(ops.convert_to_numpy(block.output_dense.kernel))
    assert found == pytest.approx(np.std(ops.convert_to_numpy(block.intermediate.kernel)) / 2, 0.2)


def test_the_last_state_is_normalised():
    encoder = ob.BertEncoder(ob.BertConfig.from_dict({**SIZES, **GPT2}), seed=0)
    last = ops.convert_to_numpy(encoder(np.full((1, 4), 7))["hidden_states"][-1])
    np.testing.assert_allclose(last.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(last.var(-1), 1, atol=1e-2)
    assert encoder.count_params() == encoder.config.num_parameters
    with pytest.raises(UserError, match="norm_first is for Transformers"):
        ob.BertConfig.from_dict({**SIZES, **SHALLOW, "norm_first": True})


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxy"]


def loaded(head="pretraining", **fields):
    encoder = ob.BertEncoder(ob.BertConfig.from_dict({**SIZES, "vocab_size": 32, **fields}), seed=2)
    model = ob.BertPretrainer(encoder, ["next_token"], seed=3)
    return Model(encoder.config, encoder, model, head, BertTokenizer(WORDS), {})


def test_a_loaded_model_writes_on():
    model = loaded(**GPT2)
    found = model.generate(["a b", "c d e f"], length=9)

    def slowly(text):
        ids = [2, *model.tokenizer.encode(text)]
        while len(ids) < 9:
            states = model.encoder(np.array([ids]))["sequence_output"]
            table = model.encoder.embeddings.word_embeddings
            scores = ops.convert_to_numpy(model.model.masked_lm(states, table))
            ids.append(int(scores[0, -1, :30].argmax()))  # the table has two rows of no word
            if ids[-1] == 3:
                ids.pop()
                break
        return model.tokenizer.decode(ids[1 + len(text.split()) :])

    assert found == [slowly("a b"), slowly("c d e f")]
    assert model.generate("a b", length=9) == found[0]
    drawn = [model.generate("", length=9, temperature=2.0, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(UserError, match="a text has 10 tokens: nothing fits behind it in 9"):
        model.generate("a b c d e f g h i", length=9)
    with pytest.raises(UserError, match="top_p 2 above 0"):
        model.generate("a", top_p=2)
    with pytest.raises(UserError, match="seed 4294967296 has more than 32 bits"):
        model.generate("a", seed=2**32)
    with pytest.raises(UserError, match="length 4.5 is not a whole number"):
        model.generate("a", length=4.5)
    for texts, message in ((["a", 5], r"texts\[1\] is '5'"), (None, "'None' is neither a text")):
        with pytest.raises(UserError, match=message):
            model.generate(texts)
    with pytest.raises(
        UserError, match="no language-model head .its head is classification.: use predict"
    ):
        loaded("classification", **GPT2).generate("a")


def test_the_tokeniser_of_gpt2s_folders(tmp_path):
    pieces = [*sorted(BYTE_CHARACTERS), "he", "<|endoftext|>"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    end = {"content": "<|endoftext|>", "id": vocab["<|endoftext|>"], "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    contents = {
        "version": "1.0", "added_tokens": [end | flags], "normalizer": None,
        "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": [["h", "e"]]},
    }  # fmt: skip
    named = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    for place, written in (("tokenizer.json", contents), ("tokenizer_config.json", named)):
        (tmp_path / place).write_text(json.dumps(written))
    tokenizer = huggingface_tokenizer.read(tmp_path, None, None, "tokenizer_json")
    assert tokenizer.cls_id == tokenizer.sep_id == tokenizer.pad_id == len(vocab) - 1
    ids = tokenizer.encode("he is")
    assert generation.prompt(tokenizer, "he is") == ids and tokenizer.decode(ids) == "he is"
    assert generation.prompt(tokenizer, "") == [tokenizer.cls_id]
    again = tmp_path / "again"
    again.mkdir()
    huggingface_tokenizer.write(again, tokenizer, 12, has_segments=False)
    post = json.loads((again / "tokenizer.json").read_text())["post_processor"]
    assert post["type"] == "ByteLevel", "in transformers it adds no tokens, as GPT-2's"
    back = huggingface_tokenizer.read(again, None, None, "tokenizer_json")
    assert back.special == tokenizer.special and back.encode("he is") == ids
