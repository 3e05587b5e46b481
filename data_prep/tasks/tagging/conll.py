"""Named entities, CoNLL-2003 (section 5.3): a tag for each word, from its first sub-token, no CRF.

The files also tag chunks and parts of speech; `column` chooses. A word may also be tagged at its
last sub-token, where a left-to-right model has seen the whole word.

The paper includes "the maximal document context provided by the data": a document is one sequence,
cut into overlapping windows, and each word is tagged in the window where it has most context. In
training it has its label only there, so every word counts once an epoch.
"""

import numpy as np

from data_prep.tasks import metrics, split_files
from data_prep.tasks.files import formats
from data_prep.tasks.split_files import HoldingOut
from data_prep.tasks.tagging import conll_files
from data_prep.tasks.tagging.conll_columns import COLUMNS
from data_prep.tasks.tagging.conll_files import TagColumns
from data_prep.tasks.tagging.tagged_document import TaggedDocument
from data_prep.tasks.task import Inputs, TfdsTask, head_of, label_list
from official_bert.common.errors import UserError, check_choice
from official_bert.common.files import atomic_write
from official_bert.span_answers import shares
from official_bert.tokenization.windows import overlapping
from official_bert.tokenization.word_groups import word_spans

_ENDINGS = (".txt", ".conll", ".conllu", ".tsv", ".jsonl", ".json", ".parquet")
_USUAL_FILES = {
    split: (first, *(name + ending for name in names for ending in _ENDINGS))
    for split, first, names in (
        ("train", "eng.train", ("train",)),
        ("dev", "eng.testa", ("valid", "dev", "validation")),
        ("test", "eng.testb", ("test",)),
    )
}
_MANY_SENTENCES = 1000  # of one document; CoNLL-2003's longest has 197
_MANY_WORDS = 200  # of a sentence, on average
_ESCAPED = str.maketrans({"\n": r"\n", "\r": r"\r", "\t": r"\t"})  # tokens of spaCy may hold these


class Conll(HoldingOut, TfdsTask):
    """An example is a document (`context="document"`) or a sentence (`context="sentence"`)."""

    unit, gold = "sentences", "tags"
    baseline_is = "remembers the words of the training data and their tags"
    prediction_file = "predictions.txt"
    reading_options = ("word_column", "tag_column", "tag_names")
    about_windows = "documents are read in as many windows as they need, stride apart"

    def __init__(
        self,
        data_dir: str = "",
        *,
        labels: str | list[str] | tuple[str, ...] = (),
        column: str = "entities",
        word_column: str = "",
        tag_column: str = "",
        tag_names: str | list[str] | tuple[str, ...] = "labels",
        label_piece: str = "first",
        context: str = "document",
        stride: int = 0,
        **options,
    ):
        """
        Args:
          data_dir: folder of eng.train, eng.testa and eng.testb, or train.txt, valid.txt, test.txt,
            or train.jsonl, dev.jsonl, test.jsonl (see `conll_files.read`); or one file, which is
            then the training file. Empty: TFDS, which has sentences without documents and order, so
            each sentence is a document, and the paper's context is missing.
          labels: the tags (of phrases in IOB2, whatever the files have), a list or names with
            commas between; empty: those of the training file.
          column: "entities", "chunks" or "part_of_speech"; the metric is F1 of entities or chunks,
            or accuracy.
          word_column, tag_column: columns of words and tags, as numbers (from 1) or names of
            fields. By default words are in the first column (in the second behind numbers of
            tokens), tags in the column that has such tags, or in fields with usual names.
          tag_names: names of the numbers, from 0, that stand in place of tags (`ClassLabel` of
            Hugging Face's `datasets`); "labels": `labels`, if they are given.
          label_piece: the sub-token with a word's tag, "first" as in the paper, or "last".
          context: "document", or "sentence" for no context beyond the sentence.
          stride: tokens from the start of one window to the next; 0: half the window.
        """
        super().__init__(data_dir, **options)
        check_choice("column", column, COLUMNS)
        check_choice("label_piece", label_piece, ("first", "last"))
        check_choice("context", context, ("document", "sentence"))
        if stride < 0:
            raise UserError(f"stride={stride}; it is at least 0 (half the window)")
        self.context, self.stride = context, stride
        self.column, self.label_piece = COLUMNS[column], label_piece
        self.metrics = self.column.metrics
        self._given = given = label_list(labels)
        self._labels = self.column.as_labels(given)
        if given and (missing := set(self.column.labels(self._labels)).difference(self._labels)):
            raise UserError(
                f"labels: {', '.join(sorted(missing))} is missing; O, and B- and I- of each"
            )
        names = given if tag_names == "labels" else label_list(tag_names)
        self._layout = TagColumns(self.column, word_column, tag_column, tuple(names))

    @property
    def labels(self) -> list[str]:
        """The labels in the order of the model's outputs.

        For tags of phrases they are O, then B- and I- of each kind.
        """
        if not self._labels:
            documents = self._documents("train")
            tags = {tag for document in documents for line in document.tags for tag in line}
            self._labels = self.column.labels(tags)
            if len(self._labels) < 2:
                raise UserError(
                    f"task {self.name}: every word of the training data has the tag "
                    f"{self._labels[0]} in the column {self.column.name}; choose another column"
                )
        return self._labels

    @property
    def head(self) -> dict:
        return head_of("tagging", self.labels, "tagging")

    def settings(self) -> dict:
        return {
            "labels": self._given or list(self.labels),
            "column": self.column.name,
            "word_column": self._layout.word_column,
            "tag_column": self._layout.tag_column,
            # Found labels are sorted, so they say nothing about numbers.
            "tag_names": list(self._layout.names),
            "label_piece": self.label_piece,
            "context": self.context,
            "stride": self.stride,
        }

    def _read_split(self, split: str) -> list[TaggedDocument]:
        documents = self._documents(split, {self.column.kind(tag) for tag in self.labels})
        documents = self._of_split(split, documents)
        sentences = sum(len(document.sentences) for document in documents)
        words = sum(len(words) for document in documents for words in document.sentences)
        if words > _MANY_WORDS * sentences:
            formats.announce(
                f"{self.name}: {split}: {words:,} words in {sentences:,} sentences; a blank line "
                "(of rows: a row) ends a sentence"
            )
        if self.context == "document":
            self._say_where_documents_are_none(documents, split)
            return documents
        return [one for document in documents for one in document.by_sentence()]

    def example(self, fields: dict) -> TaggedDocument:
        """Make an example of running text (words are those of `word_groups`), or of "words".

        These are the words of a text, or the sentences of a document.
        """
        if words := fields.get("words"):
            sentences = [words] if isinstance(words[0], str) else words
            return TaggedDocument(str(fields.get("id", "")), tuple(map(tuple, sentences)))
        spans = tuple(word_spans(fields["text"]))
        words = tuple(fields["text"][start:end] for start, end in spans)
        return TaggedDocument(str(fields.get("id", "")), (words,), None, (spans,))

    def inputs(self, path: str, format: str = "") -> Inputs:
        """Read a word a line, rows with lists of words, or running text; see `conll_files`."""
        return conll_files.inputs(self, path, format, self._layout, self.context == "sentence")

    def answers(self, rows: list[dict], prediction: dict) -> list[dict]:
        return conll_files.answers(rows, prediction, self._layout)

    def texts(self, example: TaggedDocument) -> list[str]:
        """Return the texts that `features` will encode: every word with a blank before it.

        Some tokenisers count the blank as part of the word.
        """
        return [f" {word}" for sentence in example.sentences for word in sentence]

    def features(self, example: TaggedDocument, tokenizer, max_seq_length: int) -> list[dict]:
        """Return a feature `[CLS] window [SEP]` for each window of the document.

        `label_ids` [length]: the tag's index at the first (or last) sub-token of the words that
        this window tags, -1 elsewhere. `word_ids`: at the same places, the word's index in the
        document.
        """
        ids, word_of = [], []
        for index, word in enumerate(self.texts(example)):
            # A word of control characters only has no pieces, but needs a place for its tag.
            pieces = tokenizer.encode(word) or [tokenizer.unk_id]
            ids += pieces
            others = [-1] * (len(pieces) - 1)
            word_of += [index, *others] if self.label_piece == "first" else [*others, index]
        word_of = np.array(word_of, np.int64)
        tags = None
        if example.tags is not None:
            index_of = {label: index for index, label in enumerate(self.labels)}
            tags = np.array([index_of[tag] for line in example.tags for tag in line] + [-1])
        features = []
        for feature, window, owns in overlapping(tokenizer, None, ids, max_seq_length, self.stride):
            mine = np.where(owns, word_of[window], -1)
            feature["word_ids"] = [-1, *mine.tolist(), -1]
            if tags is not None:
                feature["label_ids"] = [-1, *tags[mine].tolist(), -1]
            features.append(feature)
        return features

    def clusters(self, examples: list) -> list:
        return [example.id.partition("/")[0] for example in examples]

    def predictions(self, examples, features, outputs) -> list[dict]:
        """Return {"id", "words", "tags", "probabilities", "entities"} of each example.

        Words, tags and the tags' probabilities have a list for each sentence. An entity (or chunk,
        or word with its part of speech) is {"type", "text", "sentence", "first", "last",
        "probability" (the lowest of its words) and, for running text, "start", "end" (characters)}.
        """
        labels = self.labels
        counts = [sum(map(len, example.sentences)) for example in examples]
        chosen = [np.zeros(count, np.int64) for count in counts]
        probability = [np.ones(count) for count in counts]
        for feature, logits in zip(features, outputs["logits"], strict=True):
            words = np.asarray(feature["word_ids"])
            places = np.flatnonzero(words >= 0)
            if len(places):
                rows = shares(np.asarray(logits)[places])
                index = feature["example_index"]
                chosen[index][words[places]] = rows.argmax(axis=1)
                probability[index][words[places]] = rows.max(axis=1)
        found = []
        for index, example in enumerate(examples):
            ends = np.cumsum([len(sentence) for sentence in example.sentences])[:-1]
            prediction = {
                "id": example.id,
                "words": [list(sentence) for sentence in example.sentences],
                "tags": [[labels[i] for i in part] for part in np.split(chosen[index], ends)],
                "probabilities": [part.tolist() for part in np.split(probability[index], ends)],
            }
            found.append(prediction | {"entities": self._phrases(example, prediction)})
        return found

    def score(self, examples, predictions) -> dict[str, float]:
        return self.column.score(*self._gold_and_predicted(examples, predictions))

    def baseline(self, train_examples, examples) -> dict[str, float]:
        """Return the scores of tags from training: of known entities, or of known words.

        Entities are the phrases that were entities in training, with their most frequent type, the
        longest first, as in the shared task (published for testa: precision .7833, recall .6523, F1
        .7118). Chunks and parts of speech are each word's most frequent training tag.
        """
        train = [pair for e in train_examples for pair in zip(e.sentences, e.tags, strict=True)]
        words = [sentence for example in examples for sentence in example.sentences]
        return self.score(examples, [{"tags": self.column.baseline(train, words)}])

    def write(self, path, predictions) -> list[str]:
        """Write a word and its tag a line, with blank lines and -DOCSTART- in between.

        Line ends and tabs of a word are written as `\\n`, `\\r` and `\\t`.
        """
        path = self._output_path(path)
        blanks = any(" " in w for one in predictions for words in one["words"] for w in words)
        between = "\t" if blanks else " "
        with atomic_write(path) as file:
            for prediction in predictions:
                file.write("-DOCSTART- O\n\n")
                for words, tags in zip(prediction["words"], prediction["tags"], strict=True):
                    pairs = zip(words, tags, strict=True)
                    lines = (f"{word.translate(_ESCAPED)}{between}{tag}\n" for word, tag in pairs)
                    file.write("".join(lines) + "\n")
        return [path]

    def statistics(self, examples, predictions):
        """Return a row for each document, for F1 and for accuracy.

        It has true positives, false positives and false negatives of phrases; or the number of
        words with the right tag, and of words.
        """
        phrases, words = np.zeros((len(examples), 3)), np.zeros((len(examples), 2))
        for index, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
            for gold, tags in zip(example.tags, prediction["tags"], strict=True):
                right = sum(truth == answer for truth, answer in zip(gold, tags, strict=True))
                words[index] += [right, len(gold)]
                gold, found = (set(self.column.phrases(each)) for each in (gold, tags))
                phrases[index] += [len(gold & found), len(found - gold), len(gold - found)]
        found = {"f1": ("f1", phrases), "accuracy": ("mean", words)}
        return {metric: found[metric] for metric in self.metrics if metric in found}

    def analysis(self, examples, predictions, mistakes: int = 20) -> dict:
        """Return scores and confusion of kinds (without B- and I-), and the worst sentences."""
        gold, predicted = self._gold_and_predicted(examples, predictions)
        kind = self.column.kind
        kinds = list(dict.fromkeys(map(kind, self.labels)))
        flat = [[kind(tag) for line in lines for tag in line] for lines in (gold, predicted)]
        return {
            "confusion": metrics.confusion(*flat, kinds),
            "per_class": self.column.per_class(gold, predicted),
            "mistakes": self._mistakes(gold, predicted, predictions, mistakes),
        }

    def _gold_and_predicted(self, examples, predictions):
        """Return the tags of every sentence, gold and predicted."""
        golds = self._golds(examples, "texts have no tags")
        answers = [prediction["tags"] for prediction in predictions]
        return tuple([list(tags) for lines in each for tags in lines] for each in (golds, answers))

    def _mistakes(self, gold, predicted, predictions, number: int) -> list[dict]:
        """Return the sentences with wrong phrases, the most confident mistakes first."""
        sentences = [
            (f"{prediction['id']}/{index}", words, prediction["probabilities"][index])
            for prediction in predictions
            for index, words in enumerate(prediction["words"])
        ]
        found = []
        for (name, words, sure), truth, answer in zip(sentences, gold, predicted, strict=True):
            # The same phrase may begin with I- or with B-.
            if self.column.phrases(truth) != self.column.phrases(answer):
                tags = zip(sure, truth, answer, strict=True)
                found.append(
                    {
                        "id": name,
                        "text": " ".join(words),
                        "gold": self._shown(words, truth),
                        "predicted": self._shown(words, answer),
                        "confidence": max(p for p, one, other in tags if one != other),
                    }
                )
        return sorted(found, key=lambda mistake: -mistake["confidence"])[:number]

    def _phrases(self, example: TaggedDocument, prediction: dict) -> list[dict]:
        found = []
        for sentence, tags in enumerate(prediction["tags"]):
            for kind, first, end in self.column.phrases(tags):
                phrase = {
                    "type": kind,
                    "text": " ".join(example.sentences[sentence][first:end]),
                    "sentence": sentence,
                    "first": first,
                    "last": end - 1,
                    "probability": min(prediction["probabilities"][sentence][first:end]),
                }
                if example.offsets is not None:
                    places = example.offsets[sentence]
                    phrase |= {"start": places[first][0], "end": places[end - 1][1]}
                found.append(phrase)
        return found

    def _shown(self, words, tags) -> str:
        """Return the phrases of a sentence, as "EU/ORG, German/MISC"."""
        found = self.column.phrases(tags)
        return ", ".join(f"{' '.join(words[first:end])}/{kind}" for kind, first, end in found)

    def _documents(self, split: str, kinds=None) -> list[TaggedDocument]:
        if not self.reads_tfds:
            # Train and dev of one file share its tags.
            path = self._path(self.file_of(split))
            if split == "test":
                return conll_files.read_test(self, path, kinds, self._layout)
            return conll_files.read(path, kinds, self._layout)
        rows, features = split_files.read_tfds(
            "conll2003/conll2003", split, self.tfds_dir, "the folder of the CoNLL-2003 files"
        )
        return conll_files.from_tfds(rows, features[self.column.feature].names, kinds, self.column)

    def _say_where_documents_are_none(self, documents: list[TaggedDocument], split: str) -> None:
        if self.reads_tfds:
            formats.announce(
                f"{self.name}: TFDS has no documents, so every sentence stands alone; the "
                "CoNLL-2003 files in data_dir give the paper's context"
            )
        elif len(documents) == 1 and len(documents[0].sentences) > _MANY_SENTENCES:
            formats.announce(
                f"{self.name}: {self._path(self.file_of(split))} is one document of "
                f"{len(documents[0].sentences)} sentences; put -DOCSTART- lines between documents, "
                "or set context=sentence"
            )

    def _of_split(self, split: str, documents: list[TaggedDocument]) -> list[TaggedDocument]:
        """Return the part of the training file that belongs to a split.

        It is whole documents, or some sentences of a single document.
        """
        if not self.holds_out or split == "test":
            return documents
        units = [one for document in documents for one in document.by_sentence()]
        keys = [one.text for one in units]
        if len(documents) > 1:
            keys = [document.text for document in documents for _ in document.sentences]
        kept = self._part(split, units, keys, self._path("train"))
        together = {document.id: [] for document in documents}
        for one in kept:
            together[one.id.partition("/")[0]].append(one)
        return [TaggedDocument.of(name, parts) for name, parts in together.items() if parts]

    def _usual_names(self, split: str) -> tuple[str, ...]:
        return _USUAL_FILES[split]
