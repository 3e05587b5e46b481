"""Vocabulary learning: the algorithm against a slow reference, the layout, the command."""

from collections import Counter

import pytest
from corpora import documents
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import call

from data_prep import sample, vocab
from data_prep.corpus import wordpiece_learner
from data_prep.vocab import count_words, learn_vocab, vocab_from_counts
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer, load_vocab
from official_bert.tokenization.reference import Rules, basic_tokenize, wordpiece_tokenize


def slow_pieces(counts, num_pieces, iterations):
    """Return the algorithm of wordpiece_learner's docstring with a dict of strings, or None."""
    kept = best = None
    for _ in range(iterations):
        substrings = Counter()
        for word, count in counts.items():
            starts, position = range(len(word)), 0
            if kept is not None:
                starts = []
                for piece in wordpiece_tokenize(word, kept):
                    starts.append(position)
                    position += len(piece.removeprefix("##"))
            for start in starts:
                for end in range(start + 1, len(word) + 1):
                    substrings["##" * bool(start) + word[start:end]] += count

        def useful(threshold, substrings=substrings):
            own = dict(substrings)
            longest_first = sorted(own, key=lambda piece: -len(piece.removeprefix("##")))
            keep = {}
            for piece in longest_first:
                body = piece.removeprefix("##")
                if len(body) > 1 and own[piece] >= threshold:
                    keep[piece] = own[piece]
                    for end in range(1, len(body)):
                        own[piece[: len(piece) - len(body) + end]] -= keep[piece]
            return keep

        low, high = 1, max(substrings.values()) + 1
        if len(useful(low)) < num_pieces:
            break
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if len(useful(middle)) >= num_pieces else (low, middle)
        keep = useful(low)

        def rank(piece, keep=keep):
            body = piece.removeprefix("##")
            return keep[piece], len(body), not piece.startswith("##"), body

        best = sorted(keep, key=rank)[len(keep) - num_pieces :]
        characters = {c for word in counts for c in word}
        kept = {*best, *characters, *("##" + c for c in characters)}
    return None if best is None else set(best)


@settings(max_examples=150)
@given(
    counts=st.dictionaries(
        st.text("abcé", min_size=1, max_size=7), st.integers(1, 30), min_size=1, max_size=25
    ),
    num_pieces=st.integers(0, 25),
    iterations=st.integers(1, 3),
)
def test_the_learner_equals_the_slow_reference(counts, num_pieces, iterations):
    alphabet = wordpiece_learner.find_alphabet(counts, 1.0)
    expected = slow_pieces(counts, num_pieces, iterations)
    if expected is None:  # not enough substrings
        with pytest.raises(UserError, match="text is too small"):
            wordpiece_learner.learn_pieces(counts, alphabet, num_pieces, iterations)
        return
    pieces = wordpiece_learner.learn_pieces(counts, alphabet, num_pieces, iterations)
    assert len(pieces) == len(set(pieces)) == num_pieces + len(alphabet.inside)
    assert {piece for piece in pieces if len(piece.removeprefix("##")) > 1} == expected
    # Sorted by how often the greedy tokeniser uses them.
    known = {*pieces, *alphabet.characters}
    uses = Counter()
    for word, count in counts.items():
        for piece in wordpiece_tokenize(word, known):
            uses[piece] += count
    assert pieces == sorted(pieces, key=lambda piece: (-uses[piece], piece))


@settings(max_examples=300)
@given(
    chunk=st.text(
        st.one_of(
            st.characters(codec="ascii", exclude_characters=" "), st.characters(codec="utf-8")
        )
    ).filter(lambda text: " " not in text),
    do_lower_case=st.booleans(),
)
def test_words_are_the_basic_tokenisers(chunk, do_lower_case):
    for rules in (Rules(do_lower_case), Rules(do_lower_case, not do_lower_case)):
        assert list(vocab._words(chunk, rules)) == basic_tokenize(chunk, *rules)


def test_counts_do_not_depend_on_workers_or_flushing(tmp_path, monkeypatch):
    paths = sample.corpus_files()[:2]
    expected = Counter()
    for document in documents(paths):
        for sentence in document:
            expected.update(basic_tokenize(sentence, True))
    assert count_words(paths)[0] == expected
    assert count_words(paths, num_workers=2)[0] == expected
    monkeypatch.setattr(vocab, "_MAX_CHUNKS", 100)
    assert count_words(paths[:1])[0] == count_words(paths[:1], num_workers=1)[0]
    assert list(count_words(paths)[0].items()) == list(count_words(paths)[0].items())
    monkeypatch.setattr(vocab, "_MAX_WORDS", 1000)
    pruned = count_words(paths)[0]
    assert len(pruned) <= 1000 and pruned["the"] == expected["the"]


def test_layouts(tmp_path):
    counts = count_words(sample.corpus_files()[:8])[0]
    small = vocab_from_counts(counts, 4096)
    assert small[:6] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "!"]
    assert len(small) == len(set(small)) == 4096 and {"the", "said", "##ing"} < set(small)
    assert vocab_from_counts(dict(reversed(counts.items())), 4096) == small

    large = vocab_from_counts(counts, 20_000)
    assert len(large) == 20_000
    assert [large[i] for i in (0, 1, 99, 104)] == ["[PAD]", *(f"[unused{i}]" for i in (0, 98, 99))]
    assert large[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert large[998] == "[unused993]" and large[999] == "!"

    some = vocab_from_counts(counts, 4096, num_unused=3)
    assert some[:8] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *large[1:4]]


def test_it_is_as_good_as_hugging_faces_trainer():
    """Pieces a word on text that was not learned from, at the same size."""
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    train, other = sample.corpus_files()[:8], sample.corpus_files()[8:10]
    counts = count_words(train)[0]
    ours = set(vocab_from_counts(counts, 6000))
    theirs = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=200))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs.train_from_iterator(
        ((word + " ") * count for word, count in counts.items()),
        trainers.WordPieceTrainer(vocab_size=6000, special_tokens=["[UNK]"], show_progress=False),
    )
    held_out = count_words(other)[0]

    def pieces_a_word(pieces):
        cut = sum(len(wordpiece_tokenize(w, pieces)) * n for w, n in held_out.items())
        return cut / sum(held_out.values())

    assert 1 < pieces_a_word(ours) < 1.01 * pieces_a_word(set(theirs.get_vocab()))


def test_cased_vocabularies_keep_case_and_accents(write):
    path = write("text.txt", "Café CAFÉ café Café. " * 20)
    cased = learn_vocab(path, 23, do_lower_case=False, character_coverage=1.0)
    assert "Café" in cased and "cafe" not in cased
    uncased = learn_vocab(path, 14, do_lower_case=True, character_coverage=1.0)
    assert "cafe" in uncased and "é" not in uncased


def test_character_coverage():
    counts = {"aaaa": 1000, "bb": 100, "é": 1}
    assert wordpiece_learner.find_alphabet(counts, 0.99).characters == ["a", "b"]
    assert wordpiece_learner.find_alphabet(counts, 1.0).characters == ["a", "b", "é"]
    assert wordpiece_learner.find_alphabet(counts, 1.0).inside == ["a", "b"]


def test_errors(write):
    path = write("text.txt", "a few words of text")
    for size, coverage, message in (
        (20, 1.0, r"vocab_size=20 is too small: 5 special.* 10 characters"),
        (500, 1.0, "text is too small for .* choose a smaller vocab_size"),
        (500, 1.5, "not between 0 and 1"),
    ):
        with pytest.raises(UserError, match=message):
            learn_vocab(path, size, character_coverage=coverage)
    with pytest.raises(UserError, match="no word in the input"):
        learn_vocab(write("text.txt", "\n \n"), 500)


def test_accents_of_an_uncased_vocabulary_can_stay(write):
    """Issue: records with --strip_accents=false had no vocabulary to go with."""
    path = write("de.txt", "Die schöne Straße führt über die Brücke. Ähnlich schön.\n" * 20)
    kept = learn_vocab(path, 50, character_coverage=1.0, strip_accents=False)
    assert {"ö", "ü", "ä"} <= {piece.removeprefix("##") for piece in kept}
    assert not any(piece != piece.lower() for piece in kept[5:])
    tokenizer = BertTokenizer(kept, do_lower_case=True, strip_accents=False)
    assert tokenizer.unk_id not in tokenizer.encode("Die schöne Brücke.")
    assert not {"ö", "ü"} & {piece.removeprefix("##") for piece in learn_vocab(path, 45)}


def test_words_that_lose_their_vowels_are_said(write, capsys):
    path = write("hi.txt", "कुल और कल, बच्चे यहाँ हैं। " * 50)
    count_words(path)
    assert "66% of the words lose marks" in capsys.readouterr().err
    count_words(path, strip_accents=False)
    count_words(path, do_lower_case=False)
    count_words(write("de.txt", "schöne Brücke, Ã "))
    assert capsys.readouterr().err == ""


def test_too_many_unknown_words_stop(write):
    letters = "".join(f"the cat {chr(0x0E01 + i % 40)} " for i in range(300))
    path = write("a.txt", letters + "x" * 300)
    with pytest.raises(UserError, match=r"3\d\.\d% of the text is \[UNK\].*--accept_loss"):
        learn_vocab(path, 14, character_coverage=0.85)
    assert len(learn_vocab(path, 14, character_coverage=0.85, accept_loss=True)) == 14


def test_the_command(tmp_path, capsys):
    source, output = sample.corpus_files()[0], tmp_path / "vocab.txt"

    def run(*flags):
        code = call(vocab, f"--input={source}", f"--output={output}", "--num_workers=1", *flags)
        return code, "".join(capsys.readouterr())

    code, told = run("--vocab_size=1000")
    assert code == 0 and "1,000 entries from" in told and "will be [UNK]" in told
    assert load_vocab(output) == learn_vocab(source, 1000)
    capsys.readouterr()
    assert "finished already" in run("--vocab_size=1000")[1]
    whole = output.read_bytes()
    output.write_bytes(whole[:-2] + b"\n")  # as another command's, at the same time, would be
    code, told = run("--vocab_size=1000")
    assert code == 2 and "sha256: was" in told
    output.write_bytes(whole)
    code, told = run("--vocab_size=1200")
    assert code == 2 and "--overwrite" in told and len(load_vocab(output)) == 1000
    assert run("--vocab_size=1200", "--overwrite")[0] == 0
    assert len(load_vocab(output)) == 1200
