"""Learns a WordPiece vocabulary from text and writes it in BERT's layout.

    python -m data_prep.vocab --input='corpus/*.gz' --vocab_size=30522 --output=vocab.txt

The text's words are counted (one pass, files in parallel, memory independent of the corpus's size),
then `data_prep.corpus.wordpiece_learner` learns the pieces. The same text gives the same
vocabulary, whatever the number of workers. 117 MB of books and Wikipedia take 22 seconds on one
core.

Layout: large vocabularies have the ids of the released ones, [PAD] 0, [unused0] to [unused98] 1 to
99, [UNK] [CLS] [SEP] [MASK] 100 to 103, [unused99] to [unused993] 104 to 998; small ones (under
20,000) just [PAD] [UNK] [CLS] [SEP] [MASK] 0 to 4. Then come the single characters by code point,
then all other pieces, most used first, as in the released vocabularies.

--kind chooses one of an extension's `learners` in place of WordPiece.
"""

import functools
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping

from absl import flags

from data_prep.corpus import input_look, languages, shares
from data_prep.corpus.input_files import expand_inputs, places_of
from data_prep.corpus.text_files import INVALID_UTF8, text_lines
from data_prep.jobs import checked_json, command_flags, commands, storage, vocabularies
from data_prep.jobs.output_folder import earlier
from data_prep.jobs.outputs import check_outputs
from data_prep.jobs.processes import Processes
from data_prep.jobs.progress import progress_bar
from official_bert.common.errors import UserError
from official_bert.extension import find, names
from official_bert.tokenization import SPECIAL_TOKENS, BertTokenizer, tokenizer_class
from official_bert.tokenization.reference import MAX_WORD_CHARACTERS, Rules, basic_tokenize

_LARGE_VOCAB = 20_000  # from here on the layout of the released vocabularies
_UNUSED_OF_BERT = 994
_UNUSED_BEFORE_SPECIALS = 99

# Distinct blank-separated chunks, and distinct words, held at a time: about 100 bytes each.
_MAX_CHUNKS = 1_000_000
_MAX_WORDS = 4_000_000

_PLAIN_WORDS = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z]")


def learn_vocab(
    inputs: str | list[str],
    vocab_size: int,
    do_lower_case: bool = True,
    num_unused: int | None = None,
    character_coverage: float | None = None,
    accept_loss: bool = False,
    **counting,
) -> list[str]:
    """Learn a vocabulary from text files.

    Args:
      vocab_size: entries.
      num_unused: free slots; by default 994 from 20,000 entries on, else 0.
      character_coverage: share of the text whose characters become entries; by default 0.99999 from
        20,000 entries on, else 0.9999. Words with other characters will be [UNK].
      accept_loss: go on where more than 5% of the words are [UNK].
      inputs, do_lower_case, **counting: as for `count_words`.

    Returns:
      The pieces; the position is the id.

    Raises:
      UserError: as `count_words`, a vocab_size that is too small for the special tokens and
        characters, or too large for the text; too many [UNK] (unless `accept_loss`).
    """
    shape = vocab_size, num_unused, character_coverage
    return _learn(inputs, shape, accept_loss, do_lower_case=do_lower_case, **counting)[0]


def _learn(inputs, shape, accept_loss, **counting) -> tuple[list[str], Mapping[str, int], int]:
    """Return (pieces, count of each word, number of words that are [UNK])."""
    counts, facts = count_words(inputs, **counting)
    vocab = vocab_from_counts(counts, *shape)
    known = {entry for entry in vocab if len(entry) == 1}
    unknown = sum(count for word, count in counts.items() if not known.issuperset(word))
    unknown += facts["too long"]
    advice = "raise --character_coverage or --vocab_size, or look at what the input holds"
    shares.check_unknown(unknown, sum(counts.values()), advice, accept_loss)
    return vocab, counts, unknown


def count_words(
    inputs: str | list[str],
    do_lower_case: bool = True,
    num_workers: int = 1,
    progress: bool = False,
    invalid_utf8: str = "error",
    language_exponent: float = 1.0,
    strip_accents: bool | None = None,
) -> tuple[dict[str, int], Counter]:
    """Count the words of the basic tokeniser in files.

    Where more than 4 million different words turn up, the rarest are forgotten on the way.

    Args:
      inputs: files or globs, plain or packed; any text will do, one sentence a line or not.
      do_lower_case: make lower case and strip accents (an uncased vocabulary of WordPieces).
      num_workers: processes.
      progress: show a bar on stderr.
      invalid_utf8: what to do with bytes that are not UTF-8.
      language_exponent: below 1, small languages count for more; 0.7 in multilingual BERT. The
        language of a file is its folder.
      strip_accents: strip accents; by default as do_lower_case. Records and models must do the
        same.

    Returns: {word: count}, and counts of "invalid_utf8" (lines) and "too long" (words).

    Raises:
      UserError: as `expand_inputs`, the files are not plain text, or hold no word.
    """
    rules = Rules(do_lower_case, strip_accents)
    paths = expand_inputs(inputs)
    input_look.check(input_look.look(paths))
    languages.check(language_exponent)
    by_language, facts = {}, Counter()
    count = functools.partial(_count_file, rules=rules, invalid_utf8=invalid_utf8)
    with (
        Processes(min(num_workers, len(paths))) as processes,
        progress_bar(progress, total=len(paths), unit="file", leave=False) as bar,
    ):
        # In the files' order, so that sums never depend on timing.
        for path, (counts, file_facts) in zip(paths, processes.map(count, paths), strict=True):
            language = languages.language_of(path) if language_exponent < 1 else ""
            total = by_language.setdefault(language, Counter())
            total.update(counts)
            _forget_rare(total)
            facts.update(file_facts)
            bar.update()
    if facts["invalid_utf8"]:
        print(f"{facts['invalid_utf8']:,} lines held bytes that are not UTF-8", file=sys.stderr)
    if lost := shares.warning_of_marks(facts["stripped"], facts["chunks"]):
        print(lost, file=sys.stderr)
    if not any(by_language.values()):
        raise UserError(f"no word in the input ({len(paths)} files)")
    several = len(by_language) > 1
    return _weighted(by_language, language_exponent) if several else dict(total), facts


def _weighted(by_language: dict[str, Counter], exponent: float) -> dict[str, int]:
    sizes = {language: words.total() for language, words in by_language.items()}
    weights = languages.weights(sizes, exponent)
    total = Counter()
    for language, words in by_language.items():
        total.update({w: round(count * weights[language]) for w, count in words.items()})
    return {word: count for word, count in total.items() if count}


def vocab_from_counts(
    counts: Mapping[str, int],
    vocab_size: int,
    num_unused: int | None = None,
    character_coverage: float | None = None,
) -> list[str]:
    """Return the vocabulary for {word: count}; arguments as in `learn_vocab`."""
    from data_prep.corpus.wordpiece_learner import find_alphabet, learn_pieces

    large = vocab_size >= _LARGE_VOCAB
    if num_unused is None:
        num_unused = _UNUSED_OF_BERT if large else 0
    if character_coverage is None:
        character_coverage = 0.99999 if large else 0.9999
    if not 0 < character_coverage <= 1:
        raise UserError(f"--character_coverage={character_coverage} is not between 0 and 1")
    reserved = _reserved(num_unused)
    alphabet = find_alphabet(counts, character_coverage)
    needed = len(reserved) + len(alphabet.characters) + len(alphabet.inside)
    if vocab_size < needed:
        raise UserError(
            f"--vocab_size={vocab_size} is too small: {len(reserved)} special and unused tokens "
            f"and {len(alphabet.characters)} characters ({len(alphabet.inside)} of them also with "
            f"##) need {needed}; take a larger one or lower --character_coverage (now "
            f"{character_coverage})"
        )
    pieces = learn_pieces(counts, alphabet, vocab_size - needed)
    return reserved + alphabet.characters + pieces


def _reserved(num_unused: int) -> list[str]:
    """Return the special tokens and unused slots, in the order of the released vocabularies."""
    pad, *others = SPECIAL_TOKENS
    unused = [f"[unused{number}]" for number in range(num_unused)]
    before = _UNUSED_BEFORE_SPECIALS if num_unused >= _UNUSED_BEFORE_SPECIALS else 0
    return [pad, *unused[:before], *others, *unused[before:]]


def _count_file(path: str, rules: Rules, invalid_utf8: str) -> tuple[dict[str, int], Counter]:
    # Text repeats its blank-separated chunks, so each is cut once for all its occurrences.
    chunks, words, facts = Counter(), Counter(), Counter()
    for line in text_lines(path, invalid_utf8, facts):
        chunks.update(line.split(" "))
        if len(chunks) > _MAX_CHUNKS:
            _count_chunks(chunks, words, rules, facts)
            _forget_rare(words)
    _count_chunks(chunks, words, rules, facts)
    return dict(words), facts


def _count_chunks(chunks: Counter, words: Counter, rules: Rules, facts: Counter) -> None:
    facts["chunks"] += chunks.total()
    for chunk, count in chunks.items():
        if rules.accents_go and shares.loses_marks(chunk):
            facts["stripped"] += count
        for word in _words(chunk, rules):
            if len(word) <= MAX_WORD_CHARACTERS:
                words[word] += count
            else:
                facts["too long"] += count
    chunks.clear()


def _words(chunk: str, rules: Rules) -> Iterable[str]:
    """Apply `basic_tokenize` to a text without blanks; plain ASCII takes a faster way."""
    if chunk.isascii() and chunk.isprintable():
        return _PLAIN_WORDS.findall(chunk.lower() if rules.do_lower_case else chunk)
    return basic_tokenize(chunk, *rules)


def _forget_rare(words: Counter) -> None:
    """Drop the rarest words where there are more than _MAX_WORDS, down to half of that."""
    least = 1
    while len(words) > _MAX_WORDS or (least > 1 and len(words) > _MAX_WORDS // 2):
        for word in [word for word, count in words.items() if count <= least]:
            del words[word]
        least += 1


def main(argv) -> None:
    del argv
    start = time.monotonic()
    paths = expand_inputs(FLAGS.input)
    recorded = ("kind", "vocab_size", "do_lower_case", "strip_accents", "num_unused")
    recorded += ("invalid_utf8", "character_coverage", "language_exponent")
    options = {name: FLAGS[name].value for name in recorded}
    input_look.look(paths)  # refuses what is not text before all of it is read
    options["inputs"] = [storage.fingerprint(path) for path in paths]
    record = f"{FLAGS.output}.json"
    inputs, outputs = [*places_of(FLAGS.input), *paths], [FLAGS.output, record]
    check_outputs(inputs, files=outputs, overwrite=True)
    if not FLAGS.overwrite:
        if all(map(storage.exists, outputs)):
            # With two commands at once, one may write the vocabulary last, the other its record.
            earlier(record, options | {"sha256": storage.sha256(FLAGS.output)}, FLAGS.output)
            print(f"{FLAGS.output} is finished already")
            return
        for path in outputs:
            storage.check_free(path)
    learn = _learn_word_pieces if FLAGS.kind == BertTokenizer.kind else _learn_others
    tokenizer = learn(paths)
    storage.check_unchanged(paths, options["inputs"])
    digest = vocabularies.write_tokenizer(FLAGS.output, tokenizer, FLAGS.overwrite)
    checked_json.write(record, options | {"sha256": digest}, FLAGS.overwrite, own=False)
    print(f"made in {time.monotonic() - start:.1f} s")


def _learn_others(paths):
    for name in ("num_unused", "character_coverage", "language_exponent", "strip_accents"):
        if FLAGS[name].value != FLAGS[name].default:
            raise UserError(f"--{name} is of WordPieces, not of --kind={FLAGS.kind}")
    file_name = tokenizer_class(FLAGS.kind).file_name
    if not FLAGS.output.endswith(os.path.splitext(file_name)[1]):
        raise UserError(
            f"--output={FLAGS.output}: --kind={FLAGS.kind} is read by the end of its name; call it "
            f"{file_name}"
        )
    tokenizer = find("learners", FLAGS.kind)(paths, FLAGS.vocab_size, FLAGS.invalid_utf8, True)
    print(f"{FLAGS.output}: {tokenizer.vocab_size:,} pieces")
    return tokenizer


def _learn_word_pieces(paths):
    counting = command_flags.values(count_words)
    shape = FLAGS.vocab_size, FLAGS.num_unused, FLAGS.character_coverage
    vocab, counts, unknown = _learn(paths, shape, FLAGS.accept_loss, progress=True, **counting)
    total = sum(counts.values())
    print(
        f"{FLAGS.output}: {len(vocab):,} entries from {total:,} words ({len(counts):,} different), "
        f"of which {unknown / total:.2%} will be [UNK]"
    )
    return BertTokenizer(vocab, FLAGS.do_lower_case)


FLAGS = flags.FLAGS


def _define_flags() -> None:
    flags.DEFINE_string("input", None, "Text files or globs, plain or compressed.", required=True)
    flags.DEFINE_string("output", None, "The vocabulary file to write.", required=True)
    flags.DEFINE_integer("vocab_size", 30522, "Entries.", lower_bound=6)
    kinds = BertTokenizer.kind, *names("learners")
    flags.DEFINE_enum("kind", BertTokenizer.kind, kinds, "Of the vocabulary.")
    command_flags.define(learn_vocab, ("vocab_size", "do_lower_case"), least={"num_unused": 0})
    command_flags.define(count_words, invalid_utf8=INVALID_UTF8)
    flags.DEFINE_bool("overwrite", False, "Rename what stands at --output to NAME.~1~ first.")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
