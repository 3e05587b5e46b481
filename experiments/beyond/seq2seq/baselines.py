"""Texts that no network writes, as the first that a reader would try.

- `model="nearest-source"`: the target of the training source that is most alike, by cosines of
  weighted words (TF-IDF).
- `model="ibm-model-1"`: each word's likeliest translation, in the order of the source (IBM Model 1;
  Brown et al. 1993), and words that are new as they are.
- `model="opening"`: of questions; the two words that most training targets begin with, then the
  sentence without the answer, and a question mark.
"""

import collections
import re

import numpy as np

from experiments.beyond.common.baselines import WithoutNetwork
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS

_ITERATIONS = 10
_AT_ONCE = 256  # sources, beside all of training


class TextBaseline(WithoutNetwork):
    """Rules in the place of a network."""

    head, does = "text", "writes texts"

    def learn(self, config, task, train, logged):
        # Targets are spelt as the vocabulary of the other rows spells them; no piece is needed.
        task.tokenizer = BertTokenizer(SPECIAL_TOKENS, config.do_lower_case)
        pairs = [(task.plain(pair.source), task.plain(pair.target)) for pair in train]
        for name, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            if not any(re.search(r"\w", text) for text in texts):
                raise UserError(f"{config.data_dir}: no {name} of train has a word to learn from")
        written = KINDS[config.model](pairs)

        def answer(asked):
            texts = written([task.plain(one.source) for one in asked])
            return [{"id": one.id, "output": text} for one, text in zip(asked, texts, strict=True)]

        return answer, 0


def nearest_source(pairs):
    """Return a function of sources -> targets of their nearest training sources."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(token_pattern=r"\w+")
    known = weights.fit_transform(source for source, _ in pairs)

    def written(sources):
        asked = weights.transform(sources)
        parts = (asked[i : i + _AT_ONCE] @ known.T for i in range(0, len(sources), _AT_ONCE))
        return [pairs[place][1] for part in parts for place in part.toarray().argmax(axis=1)]

    return written


def ibm_model_1(pairs):
    """Return a function of sources -> their words' likeliest translations.

    A word of a target comes from one word of the source, or from none: t(target word | source word)
    is learnt by ten steps of expectation and maximisation.
    """
    numbers = [collections.defaultdict(int) for _ in range(2)]
    for index in numbers:
        index.default_factory = index.__len__
    numbers[0][""]  # no word
    links, targets = [], 0
    for source, target in pairs:
        read = [0, *(numbers[0][word] for word in _words(source))]
        for word in _words(target):
            links += [(one, numbers[1][word], targets) for one in read]
            targets += 1
    links = np.array(links)
    kinds, kind = np.unique(links[:, :2], axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    chance = np.ones(len(kinds))  # t of each kind of link
    for _ in range(_ITERATIONS):
        shares = chance[kind] / np.bincount(links[:, 2], chance[kind])[links[:, 2]]
        counts = np.bincount(kind, shares)
        chance = counts / np.bincount(kinds[:, 0], counts)[kinds[:, 0]]
    words, best = [*numbers[1]], {}
    for place in np.argsort(-chance, kind="stable"):
        best.setdefault(kinds[place, 0], words[kinds[place, 1]])
    likeliest = {word: best[number] for word, number in numbers[0].items() if number in best}

    def written(sources):
        return [" ".join(likeliest.get(word, word) for word in _words(s)) for s in sources]

    return written


def opening(pairs):
    """Return a function of "answer: sentence" -> a question; without a colon all is the
    sentence."""
    begins = collections.Counter(" ".join(target.split()[:2]) for _, target in pairs)
    [(first, _)] = begins.most_common(1)

    def written(sources):
        parts = (("" if ": " in source else ": ") + source for source in sources)
        parts = (part.partition(": ") for part in parts)
        rests = (sentence.replace(answer, " ", 1).strip(" .") for answer, _, sentence in parts)
        return [f"{first} {' '.join(rest.split())}?" for rest in rests]

    return written


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


KINDS = {"nearest-source": nearest_source, "ibm-model-1": ibm_model_1, "opening": opening}
