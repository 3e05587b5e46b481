"""strip_accents and tokenize_chinese_chars, as Hugging Face's models have them."""

import json
import warnings

import pytest
from hypothesis import given, settings
from test_tokenization import assert_fast_equals_reference
from test_tokenization_in_graph import assert_graph_equals_reference
from tokenization_texts import NASTY, every_code_point, texts

from official_bert.checkpoints import model_folder
from official_bert.checkpoints.hugging_face import huggingface_tokenizer
from official_bert.common.errors import UserError
from official_bert.encoder import BertEncoder
from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer, reference
from official_bert.tokenization.graph.in_graph import InGraphTokenizer
from official_bert.tokenization.library import own_json

RULES = [(True, False, True), (True, None, False), (False, True, True), (True, False, False)]
TEXT = "Müller ÉTUDE 彼得x ΟΔΟΣ e\u0301"
# Texts in which many characters meet, and ranges of Unicode with marks, cases and ideographs.
HARD = [TEXT, *NASTY, *every_code_point(0x600), *every_code_point(0x2100)[0x1E00 // 64 :]]


@pytest.fixture(scope="module")
def vocabulary():
    """Return a vocabulary in which every character of the texts is a piece, alone and inside a
    word."""
    words = {w for rules in RULES for text in HARD for w in reference.basic_tokenize(text, *rules)}
    chars = sorted({char for word in words for char in word if not "\ud800" <= char < "\ue000"})
    return [*SPECIAL_TOKENS, *chars, *(f"##{char}" for char in chars)]


@pytest.fixture(scope="module", params=RULES, ids=str)
def tokenizer(request, vocabulary):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return BertTokenizer(vocabulary, *request.param)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ((True,), "muller etude 彼 得 x οδος e"),
        ((True, False), "müller étude 彼 得 x οδος e\u0301"),
        ((True, None, False), "muller etude 彼得x οδος e"),
        ((False, True), "Muller ETUDE 彼 得 x ΟΔΟΣ e"),
        ((False, None), "Müller ÉTUDE 彼 得 x ΟΔΟΣ e\u0301"),
    ],
)
def test_words(rules, words):
    assert reference.basic_tokenize(TEXT, *rules) == words.split()


def test_the_fast_tokeniser_equals_the_reference(tokenizer):
    assert_fast_equals_reference(tokenizer, HARD)

    @settings(max_examples=100)
    @given(texts())
    def check(text):
        assert_fast_equals_reference(tokenizer, [text])

    check()


def test_offsets_belong_to_the_references_pieces(tokenizer):
    for text in HARD:
        ids, spans = tokenizer.encode_with_offsets(text)
        assert ids == tokenizer.encode(text)
        assert all(0 <= start < end <= len(text) for start, end in spans)


@pytest.mark.parametrize("tokenizer", RULES[2:], indirect=True, ids=str)  # tables take seconds
def test_the_graph_equals_the_reference(tokenizer):
    assert_graph_equals_reference(tokenizer, InGraphTokenizer(tokenizer), HARD)


GERMAN = [*SPECIAL_TOKENS, "müller", "muller", "彼得", "彼", "得"]


@pytest.mark.parametrize("without", [(), ("vocab.txt",), ("tokenizer.json",)], ids=str)
def test_a_hugging_face_folder_says_its_rules(tmp_path, without):
    """`strip_accents: false` and `tokenize_chinese_chars: false` were not read."""
    original = BertTokenizer(GERMAN, True, False, False)
    huggingface_tokenizer.write(tmp_path, original, 512)
    for name in without:
        (tmp_path / name).unlink()
    tokenizer = huggingface_tokenizer.read(tmp_path)
    assert own_json.as_own(tokenizer, "word_piece", "x").rules == original.rules
    assert tokenizer.tokenize("Müller 彼得") == ["müller", "彼得"]
    (tmp_path / "tokenizer_config.json").unlink()
    if without != ("tokenizer.json",):
        found = own_json.as_own(huggingface_tokenizer.read(tmp_path), "word_piece", "x")
        assert found.rules == original.rules


def test_files_of_a_folder_that_contradict_each_other(tmp_path):
    huggingface_tokenizer.write(tmp_path, BertTokenizer(GERMAN, True, False, False), 512)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"strip_accents": True}))
    with pytest.raises(UserError, match="strip_accents=false, but tokenizer_config.json beside it"):
        huggingface_tokenizer.read(tmp_path)
    path.write_text(json.dumps(config | {"do_lower_case": False}))
    with pytest.raises(UserError, match="pass do_lower_case, or correct the wrong one"):
        huggingface_tokenizer.read(tmp_path)
    for lower in (False, True):
        found = huggingface_tokenizer.read(tmp_path, do_lower_case=lower)
        assert found.do_lower_case is lower
    # transformers does not look at these fields where the class is not a BERT's.
    changed = {"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}
    path.write_text(json.dumps(config | changed))
    assert huggingface_tokenizer.read(tmp_path).do_lower_case


def test_model_folders_keep_the_rules(tmp_path, config):
    pieces = [*GERMAN, *(f"x{i}" for i in range(config.vocab_size - len(GERMAN)))]
    encoder = BertEncoder(config)
    model_folder.save(tmp_path / "model", encoder, BertTokenizer(pieces, True, False, False))
    assert model_folder.load(tmp_path / "model").tokenizer.rules == (True, False, False)
    path = tmp_path / "model" / "model.json"
    stored = json.loads(path.read_text())
    del stored["checksums"]  # the file is changed by hand
    before = {k: v for k, v in stored.items() if k not in reference.Rules._fields[1:]}
    path.write_text(json.dumps(before))  # a folder of before there were such rules
    assert model_folder.load(tmp_path / "model").tokenizer.rules == (True, None, True)
    path.write_text(json.dumps(stored | {"strip_accents": "no"}))
    with pytest.raises(UserError, match="strip_accents must be true or false, not .no"):
        model_folder.load(tmp_path / "model")


def test_lower_casing_for_a_cased_vocabulary_gives_a_warning():
    cased = [*SPECIAL_TOKENS, "The", "the", "House", "##s"]
    with pytest.warns(UserWarning, match="2 of 9 WordPieces have capital letters.*do_lower_case"):
        BertTokenizer(cased)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BertTokenizer(cased, do_lower_case=False)
        BertTokenizer([*SPECIAL_TOKENS, "the", "##s"])
