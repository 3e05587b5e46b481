"""The words of a task, for models with a vector for each word."""

from experiments.training.start.examples import read_present
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS


def words_in(task, config, examples, words_of) -> list[str]:
    """Return the words of every split that there is, each once; `examples`: {split: what is read
    already}, `words_of`: function of a text."""
    found, _ = read_present(task, config, examples, task.splits)  # the run says what is missing
    known = (example for split in found.values() for example in split)
    words = {word for one in known for text in task.texts(one) for word in words_of(text)}
    return sorted(words - {*SPECIAL_TOKENS})
