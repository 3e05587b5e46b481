"""Word senses: the one that a word has in a sentence (GlossBERT, Huang et al. 2019; WordNet).

A context and the gloss of each sense of the word are a pair, yes or no; the sense with the highest
yes wins. Quotation marks stand around the word, and the word before the gloss, as in GlossBERT's
"Sent-CLS-WS". data_dir holds WordNet's database, as Debian's wordnet-base installs it in
/usr/share/wordnet. Its glosses quote sentences; they are the contexts, and no part of a gloss. A
tenth of the words is dev, with all of their sentences: no word is trained on and asked about.
"""

import collections
import dataclasses
import functools
import re

import numpy as np

from data_prep.corpus.text_files import text_lines
from data_prep.tasks import metrics
from data_prep.tasks.classification.sequence_classification import (
    SequenceClassification,
    TextExample,
)
from data_prep.tasks.files.reading import is_held_out
from data_prep.tasks.task import find_file
from official_bert.common.errors import UserError

KINDS = ("noun", "verb", "adj", "adv")
_QUOTED = re.compile(r'"([^"]+)"')
_DEV = 26 / 256  # share of the words
_ENDINGS = "(?:s|es|d|ed|r|er|st|est|ing|ly)?"


@dataclasses.dataclass(frozen=True)
class WordNet:
    """One part of speech.

    Attributes:
      senses: {word: its synsets, the most frequent first}.
      synsets: {synset: (words, gloss, quoted sentences)}.
      forms: {word: its irregular forms}.
    """

    senses: dict[str, tuple[str, ...]]
    synsets: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]]
    forms: dict[str, tuple[str, ...]]


class WordSenses(SequenceClassification):
    """Pairs of a context and a gloss, scored by context."""

    name = "word_senses"
    splits = ("train", "dev")
    metrics = ("sense_accuracy", "f1")
    input_fields = ("context", "gloss")
    baseline_is = "takes the first sense"
    scoring = "of each word in a sentence the gloss with the highest probability of yes"

    def __init__(self, data_dir: str = "", *, dev_words: int = 0):
        """Take the folder of WordNet and the size of the dev split.

        Args:
          data_dir: folder of WordNet's data.noun, index.noun, noun.exc and so on.
          dev_words: so many words in sentences are the dev split, with all their glosses; 0: all.
            (max_dev_examples would part glosses of a word from each other.)
        """
        super().__init__(data_dir)
        if dev_words < 0:
            raise UserError(f"dev_words={dev_words}; it is a number of words in sentences, or 0")
        self.dev_words = dev_words

    @property
    def labels(self):
        return ["no", "yes"]

    def settings(self):
        return {"dev_words": self.dev_words} if self.dev_words else {}

    def _read_split(self, split):
        chosen = [one for one in self._instances if (split == "dev") == is_held_out(one[1], _DEV)]
        if split == "dev" and 0 < self.dev_words < len(chosen):
            spread = range(self.dev_words)  # over all words, which stand by part of speech
            chosen = [chosen[i * len(chosen) // self.dev_words] for i in spread]
        return [pair for one in chosen for pair in _pairs(*one)]

    @functools.cached_property
    def _instances(self):
        """(id "word.kind.number", word, context, glosses, number of the right one) of all."""
        found = []
        for kind in KINDS:
            net, numbers = self._read(kind), collections.Counter()
            for synset, (words, _, sentences) in net.synsets.items():
                for sentence in sentences:
                    for word in words:
                        senses = net.senses.get(word, ())
                        place = len(senses) > 1 and synset in senses and _place(word, net, sentence)
                        if not place:
                            continue
                        marked = '{}" {} "{}'.format(*_cut(sentence, place))
                        glosses = [net.synsets[sense][1] for sense in senses]
                        name = f"{word}.{kind}"
                        identity = f"{name}.{numbers[name]}"
                        found.append((identity, word, marked, glosses, senses.index(synset)))
                        numbers[name] += 1
                        break  # another word of the same sense would ask the same
        return found

    def _read(self, kind) -> WordNet:
        senses = self._once(f"index.{kind}", _index_line)
        synsets = self._once(f"data.{kind}", _data_line)
        named = {(word, synset) for word, all_ in senses.items() for synset in all_}
        if lone := named ^ {(word, name) for name, one in synsets.items() for word in one[0]}:
            raise UserError(
                f"{self.data_dir}: of index.{kind} and data.{kind} only one says that "
                f"{min(lone)[0]!r} has the sense {min(lone)[1]}; are both whole?"
            )
        forms = collections.defaultdict(tuple)
        for form, words in self._lines(f"{kind}.exc", _exception_line):
            for word in words:
                forms[word] += (form,)
        return WordNet(senses, synsets, forms)

    def _once(self, name, parsed) -> dict:
        """Return {key: value} of the lines of a file; raise UserError where two lines of a key
        differ."""
        found = {}
        for key, value in self._lines(name, parsed):
            if found.setdefault(key, value) != value:
                raise UserError(
                    f"{self.data_dir}/{name}: {key!r} is there twice, with two contents"
                )
        return found

    def _lines(self, name, parsed):
        """Yield (key, value) of each line but the licence's.

        Raises:
          UserError: the file is missing, or a line is none that `parsed` knows.
        """
        path = find_file(self.data_dir, [name], "WordNet (Debian: wordnet-base)")
        for number, line in enumerate(text_lines(path), 1):
            if not line.startswith("  "):
                try:
                    yield parsed(line)
                except (ValueError, IndexError):
                    told = f"{path} line {number}: no line of WordNet's database"
                    raise UserError(told) from None

    def score(self, examples, predictions):
        gold, _ = self._gold_and_predicted(examples, predictions)
        right, asked = self._hits(examples, predictions).sum(axis=0)
        answers = [prediction["label"] for prediction in predictions]
        f1 = metrics.classification_scores(gold, answers, self.labels)["f1"]
        return {"sense_accuracy": float(right / max(1, asked)), "f1": f1}

    def statistics(self, examples, predictions):
        hits = self._hits(examples, predictions)
        return super().statistics(examples, predictions) | {"sense_accuracy": ("mean", hits)}

    def _hits(self, examples, predictions) -> np.ndarray:
        """Return float64 [pairs, 2]: 1 where a context's chosen gloss is the right one, 1 where a
        gloss is chosen."""
        chosen, hits = {}, np.zeros((len(examples), 2))
        for place, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
            instance, yes = example.id.rpartition("/")[0], prediction["probabilities"][1]
            if yes > chosen.get(instance, (-1, 0))[0]:
                chosen[instance] = yes, place
        for _, place in chosen.values():
            hits[place] = examples[place].label == "yes", 1
        return hits

    def baseline(self, train_examples, examples):
        """Return the first sense, the most frequent one."""
        firsts = (float(example.id.endswith("/0")) for example in examples)
        return self.score(
            examples,
            [{"label": self.labels[int(p)], "probabilities": [1 - p, p]} for p in firsts],
        )

    def clusters(self, examples):
        """Return the word."""
        return [example.text_b.partition(" : ")[0] for example in examples]


def _index_line(line: str):
    """Return (word, its synsets)."""
    word, *fields = line.split()
    senses = tuple(fields[-int(fields[1]) :])
    if len(senses) != int(fields[1]) or not all(map(str.isdecimal, senses)):
        raise ValueError
    return word.replace("_", " "), senses


def _data_line(line: str):
    """Return (synset, (words, gloss, quoted sentences))."""
    fields, gloss = line.split(" | ", 1)
    fields = fields.split()
    count = int(fields[3], 16)
    words = fields[4 : 4 + 2 * count : 2]
    if len(words) != count:
        raise ValueError
    words = tuple(re.sub(r"\(\w+\)$", "", w).replace("_", " ").lower() for w in words)
    definition, *rest = re.split(r';\s*(?=")', gloss.strip(), maxsplit=1)
    return fields[0], (words, definition, tuple(_QUOTED.findall("".join(rest))))


def _exception_line(line: str):
    """Return (form, words)."""
    form, *words = (each.replace("_", " ") for each in line.split())
    if not words:
        raise ValueError
    return form, words


def _pairs(identity, word, context, glosses, right):
    return [
        TextExample(f"{identity}/{i}", context, f"{word} : {gloss}", "yes" if i == right else "no")
        for i, gloss in enumerate(glosses)
    ]


def _place(word: str, net: WordNet, sentence: str):
    """Return where the word stands in a sentence, in any of its forms; None where it does not."""
    stem = re.escape(word[:-1] if word[-1] in "ey" and len(word) > 2 else word)
    regular = rf"{re.escape(word)}{_ENDINGS}|{stem}(?:ies|ied|ier|iest|ing)|{stem}.ing|{stem}.ed"
    irregular = "|".join(map(re.escape, net.forms.get(word, ())))
    found = re.search(
        rf"\b(?:{regular}{'|' if irregular else ''}{irregular})\b", sentence, re.IGNORECASE
    )
    return found and found.span()


def _cut(text: str, place):
    return text[: place[0]], text[slice(*place)], text[place[1] :]
