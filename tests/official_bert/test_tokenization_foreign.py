"""Tokenisers of others: ids and offsets of the library `tokenizers`, in Python and in graphs."""

import json
import pickle
import warnings

import numpy as np
import pytest
import tokenizer_zoo
from tokenizer_zoo import IN_GRAPH, IN_PYTHON_ONLY, ZOO, texts

from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer, ForeignTokenizer, load_tokenizer
from official_bert.tokenization.graph import foreign_tables
from official_bert.tokenization.library import own_json

EACH = 21  # texts of a block; 500 and more in all
# Of the steps each is in one of these; `make test-parity` builds others, `make test-slow` all.
SOME_GRAPHS = (
    "BERT, special tokens added",
    pytest.param("accents go, case stays", marks=pytest.mark.slow),
    pytest.param("prefix @@, cut at blanks", marks=pytest.mark.slow),
    "NFC, lower case",
    pytest.param("words of at most 5 characters", marks=pytest.mark.slow),
)


def in_folder(folder, made, **config):
    """Return the tokeniser of a folder with a `tokenizer.json`, read."""
    folder.mkdir(exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return huggingface_tokenizer.read(folder)


@pytest.mark.parametrize("name", ZOO)
def test_ids_and_offsets_are_the_librarys(name, tmp_path):
    made = ZOO[name]()
    ours = in_folder(tmp_path / "model", made)
    assert isinstance(ours, ForeignTokenizer)
    ours.write(tmp_path)
    again = pickle.loads(pickle.dumps(load_or_foreign(tmp_path / "tokenizer.json")))
    found = texts(EACH)
    assert len(found) >= 500
    for text, theirs in zip(found, made.encode_batch(found, add_special_tokens=False), strict=True):
        assert ours.encode_with_offsets(text) == (theirs.ids, theirs.offsets)
        assert again.encode(text) == theirs.ids
    assert again.special == ours.special and again.digest() == ours.digest()


def load_or_foreign(path):
    """Return `load_tokenizer`, but for RoBERTa's, which takes names of special tokens for text."""
    found = load_tokenizer(path)
    return found if found.kind == "tokenizer_json" else ForeignTokenizer(path)


def in_graph(tokenizer):
    pytest.importorskip("tensorflow")
    from official_bert.export.tokenizer_layer import in_graph_tokenizer

    return in_graph_tokenizer(tokenizer)


@pytest.mark.parametrize("name", SOME_GRAPHS)
def test_graphs_are_equal(name, tmp_path):
    assert different_in_graph(ZOO[name](), tmp_path, texts(EACH)) == []


def different_in_graph(made, folder, found):
    """Return the texts whose ids or offsets differ from the library's."""
    graph = in_graph(in_folder(folder, made))
    import tensorflow as tf

    pieces = graph.tokenize_with_offsets(tf.constant(found))
    columns = (values.to_list() for values in pieces)
    expected = made.encode_batch(found, add_special_tokens=False)
    return [
        text
        for text, theirs, ids, starts, ends in zip(found, expected, *columns, strict=True)
        if (ids, [*zip(starts, ends, strict=True)]) != (theirs.ids, theirs.offsets)
    ]


@pytest.mark.parametrize("name", IN_PYTHON_ONLY)
def test_what_a_graph_cannot_compute_is_named(name, tmp_path):
    tokenizer = in_folder(tmp_path, ZOO[name]())
    steps = ("normalizer", "pre_tokenizer", "model", "add_prefix_space", "suffix", "prefix")
    with pytest.raises(UserError, match="a TensorFlow graph cannot compute") as error:
        in_graph(tokenizer)
    assert any(step in str(error.value) for step in steps)
    assert name in IN_PYTHON_ONLY and name not in IN_GRAPH


def test_special_tokens_of_other_names(tmp_path):
    made = ZOO["special tokens of other names"]()
    named = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>"}
    ours = in_folder(tmp_path, made, **named, sep_token={"content": "</s>"}, mask_token="boat")
    assert ours.special == ("<pad>", "<unk>", "<s>", "</s>", "boat")
    ours.write(tmp_path / "model")
    assert ForeignTokenizer(tmp_path / "model" / "tokenizer.json").special == ours.special
    assert ours("the boat")["input_ids"].tolist() == [[2, 5, 6, 3]]
    assert ours.encode_masked("the boat") == [5, 6] and ours.mask_id == 6
    made.add_tokens(["x y"])
    with pytest.raises(UserError, match="cls_token '<S>' is not a piece"):
        in_folder(tmp_path, without(made, "<s>"), cls_token="<S>")


def without(made, token):
    contents = json.loads(made.to_str())
    vocab = contents["model"]["vocab"]
    vocab["another"] = vocab.pop(token)
    import tokenizers

    return tokenizers.Tokenizer.from_str(json.dumps(contents))


def test_what_the_files_beside_say_is_added(tmp_path):
    made = ZOO["BERT, uncased"]()
    size = made.get_vocab_size()
    tokens = {"<e1>": size, "</e1>": size + 1}
    (tmp_path / "added_tokens.json").write_text(json.dumps(tokens))
    found = in_folder(tmp_path, made).tokenize("the <E1> boat</e1>")
    assert found == ["the", "<e1>", "boat", "</e1>"]
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<e1>": 7}))
    with pytest.raises(UserError, match="gives '<e1>' the id 7"):
        huggingface_tokenizer.read(tmp_path)
    (tmp_path / "added_tokens.json").unlink()
    decoder = {str(size): {"content": "<e1>", "lstrip": True, "special": True}}
    ours = in_folder(tmp_path, made, added_tokens_decoder=decoder)
    assert ours.encode_with_offsets("the  <e1>")[1] == [(0, 3), (3, 9)]
    with pytest.raises(UserError, match='added_tokens_decoder: "99.* is not an id'):
        in_folder(tmp_path, made, added_tokens_decoder={"9" * 5000: {"content": "<e1>"}})


VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "river", "boat", "COVID", "##s"]


def folder_of_vocabulary(folder, lines, **config):
    (folder / "vocab.txt").write_text("".join(f"{line}\n" for line in lines))
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return huggingface_tokenizer.read(folder)


def test_a_vocabulary_alone_is_read_as_transformers_reads_it(tmp_path):
    usual = [*VOCAB, *(f"x{i}" for i in range(20))]
    with pytest.warns(UserWarning, match="no file says .* uncased, so it is"):
        ours = folder_of_vocabulary(tmp_path, usual)
    assert ours.tokenize("The boats [MASK]") == ["the", "boat", "##s", "[MASK]"]
    with pytest.warns(UserWarning, match="cased, so it is not"):
        ours = folder_of_vocabulary(tmp_path, [*usual, *"ABCDEFG"])
    assert ours.tokenize("The B") == ["[UNK]", "B"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert folder_of_vocabulary(tmp_path, usual, do_lower_case=False).tokenize("The") == [
            "[UNK]"
        ]


@pytest.mark.parametrize("read", [folder_of_vocabulary, None], ids=["folder", "file"])
def test_lines_keep_their_numbers(tmp_path, read):
    """Blank and repeated lines; of a piece that stands in several lines the last counts."""
    lines = [*VOCAB[:4], "a", "b", "", "\u2028", "##a", "b", "c", ""]
    path = tmp_path / "vocab.txt"
    if read:
        ours = read(tmp_path, lines, do_lower_case=True)
    else:
        path.write_text("".join(f"{line}\n" for line in lines))
        ours = BertTokenizer(path)
        ours.write(tmp_path / "..")
        assert BertTokenizer(tmp_path / ".." / "vocab.txt").digest() == ours.digest()
        assert ours.encode_batch(["ba b c"])[0].tolist() == [9, 8, 9, 10]
    assert ours.encode("ba b c") == [9, 8, 9, 10] and ours.vocab_size == 12
    assert in_graph(ours)(["ba b c"]).to_list() == [[9, 8, 9, 10]]
    # No [MASK]: all but hiding works.
    assert ours("a")["input_ids"].tolist() == [[2, 4, 3]]
    with pytest.raises(UserError, match=r"no token that hides another \(\[MASK\]\)"):
        ours.encode_masked("a [MASK]")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c["model"].update(type="BPE", merges=[], dropout=0.1), "dropout=0.1 draws"),
        (lambda c: c["model"].update(type="Letters"), "the library tokenizers cannot read it"),
        (lambda c: c.update(normalizer={"type": "Upside"}), "the library tokenizers cannot read"),
        (lambda c: c.update(normalizer={}), "the library tokenizers cannot read"),
        (lambda c: c["post_processor"].update(single=[]), 'joins texts as "" and'),
        (lambda c: c["post_processor"]["special_tokens"].clear(), r"the field \[CLS\] is missing"),
        (lambda c: c["added_tokens"][0].update(id=3), "added_tokens gives '.PAD.' the id 3"),
        (lambda c: c["model"]["vocab"].update(a="b"), "vocab: a must be a whole number"),
        (
            lambda c: c["post_processor"]["single"].pop(0),
            r'joins texts as "TEXT \[SEP\]" and "\[CLS\] TEXT \[SEP\] TEXT \[SEP\]"',
        ),
        (
            lambda c: c["post_processor"]["single"].extend(c["post_processor"]["single"] * 99),
            r'joins texts as "\[CLS\] TEXT .{,80}"?\.\.\. and "\[CLS\] TEXT',
        ),
    ],
)
def test_files_that_are_refused(tmp_path, edit, message):
    contents = json.loads(tokenizer_zoo.ZOO["BERT, special tokens added"]().to_str())
    edit(contents)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(contents))
    with pytest.raises(UserError, match=f"{path}.*{message}"):
        huggingface_tokenizer.read(tmp_path)


def test_others_come_as_our_own_where_they_are_the_same(tmp_path):
    own = own_json.as_own(in_folder(tmp_path, ZOO["BERT, uncased"]()), "word_piece", "Google")
    assert own.rules == (True, None, True) and own.tokenize("The boats") == ["the", "boat", "##s"]
    for name, message in (
        ("ß becomes ss", "normalizer"),
        ("words of at most 5 characters", "normalizer"),
        ("accents kept", 'added token "<e1>"'),
        ("special tokens of other names", 'unk_token "<unk>"'),
    ):
        with pytest.raises(UserError, match=f"Google.*no place for this tokeniser's {message}"):
            own_json.as_own(in_folder(tmp_path, ZOO[name]()), "word_piece", "Google")


def test_pieces_say_what_continues_a_word(tmp_path):
    ours = in_folder(tmp_path, ZOO["prefix @@, cut at blanks"]())
    assert ours.readable[ours.vocab.index("@@s")] == "##s" and ours.decode(ours.encode("runs"))
    assert ours.decode(ours.encode("boats the")) == "boats the"
    assert ours.continues[ours.vocab.index("@@s")] and not ours.continues[5]
    unigrams = in_folder(tmp_path, ZOO["unigrams"]())
    assert not unigrams.continues[unigrams.vocab.index("▁boat")]
    assert unigrams.continues[unigrams.vocab.index("boat")]
    with pytest.raises(UserError, match="do not say where words begin"):
        _ = in_folder(tmp_path, ZOO["word ends"]()).continues


def test_kinds_of_characters_in_many_steps():
    step = {"type": "Digits", "individual_digits": False}
    kinds = [
        foreign_tables.word_kinds({"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}})
        for steps in ([step], [step] * 30)
    ]
    np.testing.assert_array_equal(*kinds)
    assert kinds[0][ord("1")] != kinds[0][ord("a")]
