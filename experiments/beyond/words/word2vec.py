"""Vectors of words learnt from text, word2vec's (Mikolov et al. 2013), by the library gensim.

    official-bert word2vec --input='corpus/*.gz' --output=vectors.txt
    official-bert word2vec --input='corpus/*.gz' --output=vectors.txt --kind=cbow

skip_gram predicts the words around a word from it, cbow (continuous bag of words) a word from the
mean of those around it; in both 5 words on either side, and 5 random words for each that is right.
The file has word2vec's text format, which --config.word_vectors of `experiments.finetune` reads.
The same text and seed give the same file.
"""

import functools
import logging
import tempfile
from pathlib import Path

from absl import flags

from data_prep.corpus import input_look
from data_prep.corpus.input_files import expand_inputs, places_of
from data_prep.corpus.text_files import INVALID_UTF8, text_lines
from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from experiments.beyond.common.words import WordTokenizer
from experiments.beyond.words.vectors import LEARNT_WIDTH
from official_bert.common.errors import UserError, check_choice, check_installed
from official_bert.common.files import atomic_write

KINDS = ("skip_gram", "cbow")


def learn(
    inputs,
    kind: str = "skip_gram",
    seed: int = 1,
    do_lower_case: bool = True,
    invalid_utf8: str = "error",
    **changes,
):
    """Return the words of text files and their vectors, the most frequent word first.

    Words are cut as GLUE's baselines cut texts of which they know no word.

    Args:
      inputs: files or globs, plain or compressed, a sentence a line.
      kind: what is predicted from what.
      seed: of the first vectors and of what is drawn.
      do_lower_case: whether words are in lower case.
      invalid_utf8: what to do with bytes that are not UTF-8.
      **changes: of gensim's Word2Vec, in place of what stands here.

    Returns: (list of words, float32 [words, LEARNT_WIDTH]).

    Raises:
      UserError: gensim is not installed, there is no such kind or input, or no word five times.
    """
    check_choice("kind", kind, KINDS, "word2vec")
    logging.getLogger("gensim").setLevel(logging.WARNING)
    check_installed("gensim", "word vectors are learnt by gensim", "words")
    from gensim.models import Word2Vec

    paths = expand_inputs(inputs)
    input_look.check(input_look.look(paths))
    settings = {
        "vector_size": LEARNT_WIDTH, "window": 5, "negative": 5, "ns_exponent": 0.75,
        "sample": 1e-3, "min_count": 5, "epochs": 5, "workers": 1, "seed": seed,
        "sg": int(kind == "skip_gram"),
    } | changes  # fmt: skip
    cut = WordTokenizer([]).words_of
    words_of = functools.lru_cache(1 << 16)(lambda chunk: " ".join(cut(chunk)))  # they repeat
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text")
        with text.open("w", encoding="utf-8") as file:
            for path in paths:
                for line in text_lines(path, invalid_utf8):
                    words = " ".join(map(words_of, line.split()))
                    file.write((words.lower() if do_lower_case else words) + "\n")
        try:
            found = Word2Vec(corpus_file=str(text), **settings).wv
        except RuntimeError:  # what gensim raises without a vocabulary
            raise UserError(
                f"no word is there {settings['min_count']} times ({len(paths)} files)"
            ) from None
    return found.index_to_key, found.vectors


def write(path, words, vectors, overwrite: bool = False) -> None:
    """Write word2vec's text format, which `experiments.beyond.words.vectors` reads."""
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n")
        for word, vector in zip(words, vectors, strict=True):
            file.write(f"{word} {' '.join(f'{number:.6g}' for number in vector)}\n")


def main(argv) -> None:
    del argv
    inputs = [*places_of(FLAGS.input), *expand_inputs(FLAGS.input)]
    check_outputs(inputs, files=[FLAGS.output], overwrite=FLAGS.overwrite)
    words, vectors = learn(FLAGS.input, **command_flags.values(learn))
    write(FLAGS.output, words, vectors, FLAGS.overwrite)
    print(f"{FLAGS.output}: {len(words):,} words, {vectors.shape[1]} numbers each")


FLAGS = flags.FLAGS


def _define_flags() -> None:
    command_flags.define(learn, least={"seed": 0}, kind=KINDS, invalid_utf8=INVALID_UTF8)
    flags.DEFINE_string("input", None, "Text files or globs, plain or compressed.", required=True)
    flags.DEFINE_string("output", None, "The file of vectors to write.", required=True)
    flags.DEFINE_bool("overwrite", False, "Rename what stands at --output to NAME.~1~ first.")


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
