"""A vocabulary of a few words and letters, enough for every text of these tests."""

import string

import pytest

from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer

WORDS = (
    "the a of in is was who what where cat dog sat on mat ran big red city river north paris "
    "london france home born lives peter europe ##s ##ed ##ing"
)


@pytest.fixture(scope="session")
def tokenizer() -> BertTokenizer:
    letters = list(string.ascii_lowercase + string.digits + string.punctuation)
    pieces = [f"##{letter}" for letter in string.ascii_lowercase + string.digits]
    return BertTokenizer([*SPECIAL_TOKENS, *dict.fromkeys(WORDS.split() + letters + pieces)])
