"""GPT-2 on one's own text: records, training, texts, perplexity, and back to transformers."""

import itertools
import json
import math
import random

import numpy as np
import pytest
from keras import ops

import official_bert as ob
from data_prep.create_pretraining_data import create
from experiments import pretrain
from experiments.beyond.common import generation
from experiments.beyond.gpt.perplexity import perplexity, run, windows
from experiments.training.settings.config import Phase
from experiments.training.settings.config_files import load_config
from experiments.training.settings.options import replaced
from official_bert.checkpoints.hugging_face import huggingface
from official_bert.common.errors import UserError
from official_bert.tokenization import load_tokenizer
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS
from tests.beyond.gpt.test_generation import GPT2 as SHAPE
from tests.beyond.gpt.test_generation import loaded

END = "<|endoftext|>"
WORDS = ["river", "sea", "wind", "house", "tree", "child", "bird", "stone", "king", "road"]


def write_text(path):
    draw = random.Random(0)
    document = lambda: "".join(f"The {' '.join(draw.choices(WORDS, k=6))}.\n" for _ in range(6))  # noqa: E731
    path.write_text("\n".join(document() for _ in range(30)), encoding="utf-8")
    return path


def write_pieces(folder, words=("The", "Ġriver", "Ġsea", "Ġking")):
    """Write GPT-2's two files, of bytes, some words and their beginnings."""
    merges = dict.fromkeys((w[:i], w[i]) for w in words for i in range(1, len(w)))
    pieces = [*BYTE_CHARACTERS, *map("".join, merges), END]
    folder.mkdir(exist_ok=True)
    ids = {piece: index for index, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    lines = "".join(f"{' '.join(pair)}\n" for pair in merges)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{lines}", encoding="utf-8")
    return len(pieces)


def test_records_of_a_vocabulary_without_a_mask(tmp_path):
    text = write_text(tmp_path / "text.txt")
    end = write_pieces(tmp_path / "two") - 1
    two = load_tokenizer(tmp_path / "two" / "vocab.json")
    assert two.second_file == "merges.txt" and two.special == (END, None, END, END, None)
    (tmp_path / "one").mkdir()
    two.write(tmp_path / "one")
    one = load_tokenizer(tmp_path / "one" / "tokenizer.json")
    assert one.second_file == "" and one.special == two.special and one.digest() == two.digest()
    # The file is published so: without a template, and nothing beside it names a token.
    published = {**one.contents, "post_processor": None, "padding": None}
    (tmp_path / "one" / "tokenizer.json").write_text(json.dumps(published), encoding="utf-8")
    options = {"max_seq_length": 16, "packing": "single", "dupe_factor": 1, "num_workers": 1}
    manifests = [
        create(str(text), str(path), f"{path}.records", masked_lm_prob=0, progress=False, **options)
        for path in (tmp_path / "two" / "vocab.json", tmp_path / "one" / "tokenizer.json")
    ]
    assert manifests[0]["counts"] == manifests[1]["counts"]
    assert manifests[0]["counts"]["predictions"] == 0 < manifests[0]["counts"]["tokens"]
    kept = load_tokenizer(tmp_path / "two" / "vocab.json.records" / "tokenizer.json")
    assert kept.encode("The king") == two.encode("The king") and kept.cls_id == end
    with pytest.raises(UserError, match="--masked_lm_prob=0 leaves rows as they are, for models"):
        create(str(text), str(tmp_path / "two" / "vocab.json"), str(tmp_path / "r"), **options)
    config = load_config("pretrain:smoke")
    records = str(tmp_path / "two" / "vocab.json.records")
    phase = Phase(records=records, max_seq_length=16, num_train_steps=1)
    bert = replaced(config.bert_config, vocab_size=end + 1)
    with pytest.raises(UserError, match="so masked_lm has nothing to predict; make them again"):
        pretrain.run(replaced(config, bert=bert, phases=(phase,)), tmp_path / "run", progress=False)


def test_a_name_beside_a_tokenizer_json_is_read_where_it_lies_alone(tmp_path):
    write_pieces(tmp_path)
    contents = load_tokenizer(tmp_path / "vocab.json").contents
    [end] = contents["added_tokens"]
    other = {**end, "content": "<|other|>", "id": end["id"] + 1}
    contents = {**contents, "post_processor": None, "added_tokens": [end, other]}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(contents), encoding="utf-8")
    with pytest.raises(UserError, match="name one of its pieces as cls_token in tokenizer_config"):
        load_tokenizer(path)
    named = json.dumps({"cls_token": END, "sep_token": END})
    (tmp_path / "tokenizer_config.json").write_text(named)
    assert load_tokenizer(path).special.cls == END
    assert load_tokenizer(path).second_file == "tokenizer_config.json"


def test_top_p_is_a_share_of_what_top_k_left():
    shares = np.array([[0.4, 0.3, 0.2, 0.1]])
    scores = np.log(shares).astype("float32")

    def left(*options):
        found = ops.convert_to_numpy(generation.left_to_draw(scores, *options))
        return (found[0] > -1e8).tolist()

    assert left(1.0, 2, 1.0) == [True, True, False, False]
    # 0.4 of 0.7 is more than half; of all it would be less, and the second would stay.
    assert left(1.0, 2, 0.5) == [True, False, False, False]
    assert left(1.0, 0, 0.5) == [True, True, False, False]
    assert left(1.0, 9, 1.0) == [True] * 4


@pytest.mark.parametrize("penalty", [0.5, 1.0, 2.0])
def test_many_beams_find_the_best_of_all_texts(penalty):
    """All continuations of up to three tokens, beside a search that keeps them all."""
    table = np.random.default_rng(3).normal(size=(6, 6)).astype("float32") * 2
    logs = table - np.log(np.exp(table).sum(-1, keepdims=True))

    def step(tokens, place, state):
        return ops.take(ops.convert_to_tensor(table), tokens, axis=0), state

    def begin(rows, length):
        return [ops.zeros((rows, 1))]

    def score(text):
        steps = itertools.pairwise((2, *text))
        return sum(logs[a, b] for a, b in steps) / len(text) ** penalty

    texts = [t for n in (1, 2, 3) for t in itertools.product(range(6), repeat=n)
             if 5 not in t[:-1] and (n == 3 or t[-1] == 5)]  # fmt: skip
    best = max(texts, key=score)
    prompts = [[2], [0, 2]]
    found = [
        generation.best_continuations(step, begin, [ids], len(ids) + 3, 5, 36, penalty)[0]
        for ids in prompts
    ]
    assert found == [[token for token in best if token != 5]] * 2


def test_what_beams_do_not_go_with():
    model = loaded(**SHAPE)
    one = model.generate("a b", length=9)
    assert model.generate("a b", length=9, beams=1) == one
    assert isinstance(model.generate(["a b", ""], length=9, beams=3, length_penalty=0.5), list)
    for options in ({"beams": 0}, {"beams": 16}, {"beams": 2, "temperature": 1.0}):
        with pytest.raises(UserError, match="beams are from 1 to half of the vocabulary's 30"):
            model.generate("a", **options)
    for options, message in (
        ({"beams": 2, "length_penalty": math.nan}, "length_penalty nan is not a finite number"),
        ({"temperature": "hot"}, "temperature 'hot' is not a number"),
        ({"top_k": 1.5}, "top_k 1.5 is not a whole number"),
    ):
        with pytest.raises(UserError, match=message):
            model.generate("a", length=9, **options)


def test_perplexity_by_hand(tmp_path):
    model = loaded(**SHAPE)
    text = "a b c d e f g h i j k l m n o p"
    ids = [2, *model.tokenizer.encode(text)]
    total = 0.0
    for start, new in windows(17, 8, 3):
        states = model.encoder(np.array([ids[start : start + 8]]))["sequence_output"]
        table = model.encoder.embeddings.word_embeddings
        logits = ops.convert_to_numpy(model.model.masked_lm(states, table))[0, :, :30]
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        row = ids[start : start + 8]
        total -= sum(logs[i - 1, row[i]] for i in range(len(row) - new, len(row)))
    found = perplexity(model, text, stride=3, window=8)
    assert found["tokens"] == 16 and found["loss"] == pytest.approx(total / 16, 1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(total / 16), 1e-5)
    assert found["bits_per_byte"] == pytest.approx(total / math.log(2) / len(text), 1e-5)
    with pytest.raises(UserError, match="a stride is shorter than a window"):
        perplexity(model, text, stride=12)
    with pytest.raises(UserError, match="no such file"):
        run("tiny", str(tmp_path / "none"))


@pytest.mark.parity
@pytest.mark.slow
def test_from_text_to_transformers_and_back(tmp_path):
    """The whole path: every figure is that of transformers."""
    torch, theirs = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    text, folder = write_text(tmp_path / "text.txt"), tmp_path / "gpt2"
    size = write_pieces(folder)
    shape = theirs.GPT2Config(
        vocab_size=size, n_positions=48, n_embd=16, n_layer=2, n_head=2,
        bos_token_id=size - 1, eos_token_id=size - 1, initializer_range=0.2,
    )  # fmt: skip
    theirs.GPT2LMHeadModel(shape).save_pretrained(folder)  # of `vocab.json` and `merges.txt`
    records = str(tmp_path / "records")
    options = {"max_seq_length": 32, "packing": "single", "masked_lm_prob": 0, "dupe_factor": 1}
    create(str(text), str(folder / "vocab.json"), records, num_workers=1, progress=False, **options)
    config = replaced(
        load_config("gpt2:continue"), init_from=str(folder), num_warmup_steps=1, learning_rate=1e-2,
        phases=(Phase(records=records, max_seq_length=32, num_train_steps=6),), train_batch_size=4,
    )  # fmt: skip
    model = ob.load(pretrain.run(config, tmp_path / "run", progress=False).model)

    huggingface.export_huggingface(tmp_path / "back", model.model, model.tokenizer)
    again = theirs.GPT2LMHeadModel.from_pretrained(tmp_path / "back").eval()
    tokenizer = theirs.AutoTokenizer.from_pretrained(tmp_path / "back")
    content = text.read_text()[:400]
    assert tokenizer(content)["input_ids"] == model.tokenizer.encode(content)
    ids = torch.tensor([model.tokenizer.encode("The river king sea")])
    with torch.no_grad():
        logits = again(ids).logits.numpy()
    batch = {"input_ids": ids.numpy(), "input_mask": np.ones(ids.shape, "int32")}
    states = model.encoder(batch)["sequence_output"]
    ours = model.model.masked_lm(states, model.encoder.embeddings.word_embeddings)
    np.testing.assert_allclose(ops.convert_to_numpy(ours), logits, atol=2e-5)

    for beams, penalty in ((2, 1.0), (4, 0.5), (4, 2.0)):
        written = again.generate(
            ids, attention_mask=torch.ones_like(ids), max_length=30, do_sample=False,
            num_beams=beams, length_penalty=penalty, early_stopping=False, pad_token_id=size - 1,
        )[0, ids.shape[1] :]  # fmt: skip
        found = model.generate("The river king sea", length=30, beams=beams, length_penalty=penalty)
        assert found == model.tokenizer.decode(written.tolist())

    whole = torch.tensor(model.tokenizer.encode(content))
    total = 0.0
    for start, new in windows(len(whole), 48, 20):
        row = whole[start : start + 48]
        with torch.no_grad():
            logs = again(row[None]).logits[0, :-1].double().log_softmax(-1)
        total -= logs[torch.arange(len(row) - 1), row[1:]][-new:].sum().item()
    found = perplexity(model, content, stride=20)
    assert found["loss"] == pytest.approx(total / (len(whole) - 1), rel=1e-5)


@pytest.mark.parity
def test_what_is_left_to_draw_is_that_of_the_warpers():
    torch, theirs = pytest.importorskip("torch"), pytest.importorskip("transformers")
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 3, (400, 50)).astype("float32")
    scores[::2] = np.round(scores[::2])  # ties
    for temperature, top_k, top_p in itertools.product(
        (0.7, 1.0), (0, 1, 7, 50, 99), (0.2, 0.9, 1)
    ):
        expected = theirs.TemperatureLogitsWarper(temperature)(None, torch.from_numpy(scores))
        if top_k:
            expected = theirs.TopKLogitsWarper(top_k)(None, expected)
        if top_p < 1:
            expected = theirs.TopPLogitsWarper(top_p)(None, expected)
        found = generation.left_to_draw(scores, temperature, top_k, top_p)
        shares = ops.convert_to_numpy(ops.softmax(found, axis=-1))
        expected = expected.softmax(-1).numpy()
        if top_p < 1:  # which of equal ones stay is left to PyTorch's sort, which is not stable
            shares, expected = shares.copy(), expected.copy()
            shares[::2], expected[::2] = np.sort(shares[::2]), np.sort(expected[::2])
        np.testing.assert_allclose(shares, expected, atol=1e-6)
