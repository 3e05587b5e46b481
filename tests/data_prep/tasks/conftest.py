"""A vocabulary of a few words and letters, enough for every text of these tests."""

import string

import hypothesis
import pytest

from official_bert.tokenization import BertTokenizer

# The first example of a test may import a library: no time limit on single examples.
hypothesis.settings.register_profile("tasks", deadline=None)
hypothesis.settings.load_profile("tasks")

WORDS = (
    "the a of in is was who what where cat dog sat on mat ran big red city river north paris "
    "london france home born lives peter europe ##s ##ed ##ing"
)


@pytest.fixture(scope="session")
def tokenizer() -> BertTokenizer:
    letters = list(string.ascii_lowercase + string.digits + string.punctuation)
    pieces = [f"##{letter}" for letter in string.ascii_lowercase + string.digits]
    return BertTokenizer(
        [
            "[PAD]",
            "[UNK]",
            "[CLS]",
            "[SEP]",
            "[MASK]",
            *dict.fromkeys(WORDS.split() + letters + pieces),
        ]
    )


@pytest.fixture
def write(tmp_path):
    """Return write(name, text or bytes) -> path of the new file."""

    def write_file(name: str, content) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write_file
