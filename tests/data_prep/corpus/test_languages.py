"""Small languages count for more: weights, vocabularies, records."""

from pathlib import Path

import pytest
from corpora import VOCAB, write_corpus

from data_prep.corpus import languages
from data_prep.create_pretraining_data import create
from data_prep.pretraining import token_store
from data_prep.vocab import count_words
from official_bert.common.errors import UserError


def test_weights_smooth_the_shares():
    sizes = {"en": 900.0, "is": 90.0, "ga": 10.0}
    found = languages.weights(sizes, 0.7)
    shares = {name: size * found[name] / 1000 for name, size in sizes.items()}
    smoothed = {name: (size / 1000) ** 0.7 for name, size in sizes.items()}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares == pytest.approx({n: s / sum(smoothed.values()) for n, s in smoothed.items()})
    assert languages.weights(sizes, 1.0) == pytest.approx(dict.fromkeys(sizes, 1.0))
    with pytest.raises(UserError, match="language_exponent=0"):
        languages.check(0)


@pytest.fixture
def corpus(tmp_path, write):
    """Return a large language of words with s, a small one with ing and 9: 300 and 30 documents."""
    for name, ending, documents in (("en", "s", 300), ("is", "ing", 30)):
        path = write_corpus(tmp_path / "plain.txt", documents, seed=documents, sentences=(3, 9))
        words = Path(path).read_text().split(" ")
        text = " ".join(w + ending if w.isalpha() else w for w in words)
        write(f"corpus/{name}/a.txt", text.replace(" .", " 9 .") if name == "is" else text)
    return str(tmp_path / "corpus" / "*" / "*.txt")


def test_words_of_small_languages_are_counted_for_more(corpus):
    plain, smoothed = count_words(corpus)[0], count_words(corpus, language_exponent=0.5)[0]
    assert sum(smoothed.values()) == pytest.approx(sum(plain.values()), rel=0.01)

    counts = {name: count_words(corpus.replace("/*/", f"/{name}/"))[0] for name in ("en", "is")}
    sizes = {name: sum(words.values()) for name, words in counts.items()}
    weights = languages.weights(sizes, 0.5)
    assert weights["is"] > 2 > 1 > weights["en"]
    small = set(counts["is"]) - set(counts["en"])
    assert len(small) > 20
    assert all(smoothed[word] == round(plain[word] * weights["is"]) for word in small)


def test_documents_of_small_languages_come_several_times(corpus, tmp_path, vocab):
    options = {"max_seq_length": 64, "dupe_factor": 1, "num_workers": 1, "progress": False}

    def documents(name, **more):
        store = str(tmp_path / f"store-{name}")
        create(corpus, vocab, str(tmp_path / name), token_store=store, **options, **more)
        opened = token_store.TokenStore(store)
        found = []
        for index in range(len(opened.blocks("train"))):
            block = opened.read("train", index)
            ends = block.sentence_offsets[block.document_offsets]
            found += [bytes(block.tokens[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        return found

    plain, smoothed = documents("plain"), documents("smoothed", language_exponent=0.5)
    assert len(plain) == len(set(plain)) == 330 and set(smoothed) < set(plain)
    nine = VOCAB.index("9").to_bytes(2, "little") + VOCAB.index(".").to_bytes(2, "little")
    small = [document for document in smoothed if document.endswith(nine)]
    assert len(set(small)) == 30 and 65 < len(small) < 95  # about sqrt(10) / (1 + sqrt(10)) of 330
    assert 220 < len(set(smoothed) - set(small)) < 280  # of 300
    assert documents("again", language_exponent=0.5) == smoothed
