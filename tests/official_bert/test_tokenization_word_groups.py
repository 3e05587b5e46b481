import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.tasks import get_task
from official_bert.tokenization import BertTokenizer
from official_bert.tokenization.word_groups import word_spans

_MARKS = string.punctuation + "“”’…—«»¿،。"
_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_MARKS, *"中国北京"]
_PIECES += [*"aäbeéJSUßя5€", *(f"##{char}" for char in "aäbeéjJsSuUßя5€"), *"jsu"]
_SENTENCES = {
    "The U.S. and U.N.-backed forces left Baghdad.":
        "The|U.S.|and|U.N.-backed|forces|left|Baghdad|.",
    "Jean-Claude (aged 19) said: \"It's the 19-year-old's!\"":
        "Jean-Claude|(|aged|19|)|said|:|\"|It's|the|19-year-old's|!|\"",
    "J. Smith, St. John Inc., e.g. at 3.5%.": "J.|Smith|,|St|.|John|Inc|.|,|e.g.|at|3.5|%|.",
    "Wait... what?! $5 U.N.. -- A.": "Wait|.|.|.|what|?|!|$|5|U.N.|.|-|-|A.",
    "“Élan” — 北京的U.S.大使": "“|Élan|”|—|北|京|的|U.S.|大|使",
    " \t\n": "", ".": ".", "中.": "中|.", "Zeit\u00adung\u200b \u200b x": "Zeit\u00adung|x",
}  # fmt: skip


def words(text):
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(("text", "expected"), _SENTENCES.items())
def test_words_of_hard_sentences(text, expected):
    assert words(text) == [word for word in expected.split("|") if word]


def test_predicted_texts_are_cut_so():
    example = get_task("conll2003", labels=["O"]).example({"text": "The U.S. won."})
    assert example.sentences == (("The", "U.S.", "won", "."),)
    assert example.offsets == (((0, 3), (4, 8), (9, 12), (12, 13)),)


@pytest.fixture(scope="module")
def served():
    """Return served(text, do_lower_case): the (start, end) of the words that a SavedModel finds."""
    import tensorflow as tf

    from official_bert.export.tagging import WordFinder
    from official_bert.tokenization.graph.in_graph import InGraphTokenizer

    letters = string.ascii_letters + string.digits + "Éé的大使"
    vocab = list(dict.fromkeys([*_PIECES, *letters, *(f"##{char}" for char in letters)]))
    tokenizers = [InGraphTokenizer(BertTokenizer(vocab, lower)) for lower in (False, True)]
    finder = WordFinder(vocab)

    def spans(text, do_lower_case):
        pieces = tokenizers[do_lower_case].tokenize_with_offsets(tf.constant([text]))
        begins = finder.begins_word(*pieces).numpy()
        places = zip(pieces.starts.values.numpy(), pieces.ends.values.numpy(), strict=True)
        found = []
        for is_first, (start, end) in zip(begins, places, strict=True):
            if is_first:
                found.append((start, end))
            else:
                found[-1] = (found[-1][0], end)
        return found

    return spans


@pytest.mark.parametrize("do_lower_case", [False, True])
def test_the_words_of_hard_sentences_are_those_of_serving(served, do_lower_case):
    for text in _SENTENCES:
        if "\u200b" not in text:  # serving cuts there where the vocabulary does
            assert word_spans(text) == served(text, do_lower_case), text


@given(
    st.text(st.sampled_from([*"aäbeéJSUßя5€", *_MARKS, *"......--'", *"中国北京", *"   \t\u3000"])),
    st.booleans(),
)
def test_the_words_of_random_text_are_those_of_serving(served, text, do_lower_case):
    assert word_spans(text) == served(text, do_lower_case)
