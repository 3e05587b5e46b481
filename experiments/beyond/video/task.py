"""Videos told and shown (VideoBERT's question): which verb and which noun go with some clips.

A folder holds features.npy, floats [clips, width], a row a clip, S3D's for instance (1,024 numbers
for 1.5 seconds); vocab.txt, WordPieces for the texts; and segments.jsonl, a stretch of a video a
line, in the order of time,

    {"video": "7", "split": "train", "first": 0, "clips": 6, "text": "now we cut the onion"}

`first` is the row of its first clip. Without "text" it is shown alone. Lines of the split "dev"
have "verb" and "noun", which are asked for: "now let me show you how to [MASK] the [MASK]", beside
the clips. Where lines of "train" name theirs too, questions know which pairs were told in words.
"""

import collections
import dataclasses
import functools
import re

import numpy as np

from data_prep.tasks.files import reading
from data_prep.tasks.task import Task, find_file, head_of
from official_bert.common.checksums import sha256_file
from official_bert.common.errors import UserError, check_choice
from official_bert.common.json_files import field, fields_of
from official_bert.common.outside_files import open_file

ASKED = ("verb", "noun")
LEAVES = (
    "it leaves scores and predictions, no model; segments to answer are lines of its "
    'segments.jsonl with "split": "dev"'
)  # of a run
TOPS = (1, 5)
_GROUPS = {"": (True, False), "new_": (False,), "told_": (True,)}  # name: values of `told`


@dataclasses.dataclass(frozen=True)
class Segment:
    """A line of segments.jsonl; `told`: whether train has a text about its verb and noun."""

    video: str = ""
    split: str = ""
    first: int = 0
    clips: int = 0
    text: str = ""
    verb: str = ""
    noun: str = ""
    told: bool = False


@dataclasses.dataclass(frozen=True)
class Video:
    """`files`: a digest of features and vocabulary, so that other ones are other examples."""

    segments: tuple[Segment, ...]
    files: str


class Videos(Task):
    """Videos to learn from, segments to ask about."""

    name = "videos"
    splits = ("train", "dev")
    metrics = tuple(f"{g}{what}_top{k}" for g in _GROUPS for what in ASKED for k in TOPS)
    scoring = "each segment alone; new_: of pairs that no text tells, told_: of the others"

    def __init__(self, data_dir: str = "", *, k: int = 12, depth: int = 4):
        """
        Args:
          data_dir: the folder.
          k, depth: of hierarchical k-means; there are at most k ** depth visual words.
        """
        super().__init__(data_dir)
        if k < 2 or depth < 1:
            raise UserError(f"k={k}, depth={depth}: k is 2 or more, depth 1 or more")
        self.k, self.depth = k, depth

    @property
    def head(self):
        return head_of("shown_words", problem="ranking")

    def settings(self):
        return {"k": self.k, "depth": self.depth}

    @functools.cached_property
    def features(self) -> np.ndarray:
        """floats [clips, width], mapped from the file.

        Raises:
          UserError: the file is missing, or is no such array.
        """
        path = self._file("features.npy")
        open_file(path).close()  # no pipe, no device
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # numpy raises many kinds
            raise UserError(f"{path}: no array of NumPy ({error})") from None
        whole = isinstance(array, np.ndarray) and array.ndim == 2 and array.shape[1] > 0
        if not whole or array.dtype.kind != "f":
            what = f"{array.dtype} {list(array.shape)}" if hasattr(array, "shape") else "several"
            raise UserError(f"{path}: expected floats [clips, width], not {what}")
        for start in range(0, len(array), 1 << 14):
            with np.errstate(over="ignore"):
                squares = np.square(array[start : start + (1 << 14)].astype(np.float32)).sum(axis=1)
            if not (finite := np.isfinite(squares)).all():
                told = "a number is not finite, or too large for its square to be"
                raise UserError(f"{path} row {start + finite.argmin()}: {told}")
        return array

    @property
    def vocab(self) -> str:
        """The path of the vocabulary."""
        return self._file("vocab.txt")

    @functools.cached_property
    def words(self) -> dict[str, list[str]]:
        """{"verb" and "noun": those that are told apart}."""
        return {w: sorted({getattr(s, w) for s in self._segments} - {""}) for w in ASKED}

    def _read_split(self, split):
        """Return the Videos of train, the Segments of dev."""
        found = [segment for segment in self._segments if segment.split == split]
        if split == "train":
            videos = collections.defaultdict(list)
            for segment in found:
                videos[segment.video].append(segment)
            files = "".join(map(sha256_file, (self._file("features.npy"), self.vocab)))
            return [Video(tuple(segments), files) for segments in videos.values()]
        labels = {(s.verb, s.noun) for s in self._segments if s.split == "train" and s.text}
        return [dataclasses.replace(s, told=(s.verb, s.noun) in labels) for s in found]

    @functools.cached_property
    def _segments(self) -> list[Segment]:
        path, rows = self._file("segments.jsonl"), len(self.features)
        split_of: dict[str, str] = {}
        return [
            _segment(values, rows, split_of, f"{path} line {number}")
            for number, values in reading.json_lines(reading.Lines(path))
            if values is not None
        ]

    def _file(self, name) -> str:
        return find_file(self.data_dir, [name], "videos")

    def predictions(self, examples, features, outputs):
        """Return the five likeliest words, of `outputs["verb"]` and `["noun"]`, scores [N, words];
        one of -inf is none."""
        found = [{"video": e.video, "first": e.first} for e in examples]
        for what in ASKED:
            ranked = np.argsort(-outputs[what], axis=1, kind="stable")[:, : max(TOPS)]
            for answer, scores, row in zip(found, outputs[what], ranked, strict=True):
                answer[what] = [self.words[what][i] for i in row if scores[i] > -np.inf]
        return found

    def score(self, examples, predictions):
        """Return the shares of the segments whose word is the first, or among the first five."""
        scores, both = {}, list(zip(examples, predictions, strict=True))
        for group, told in _GROUPS.items():
            asked = [(e, p) for e, p in both if e.told in told]
            for what, k in ((what, k) for what in ASKED for k in TOPS if asked):
                hits = [getattr(e, what) in p[what][:k] for e, p in asked]
                scores[f"{group}{what}_top{k}"] = sum(hits) / len(hits)
        return scores

    def baseline(self, train_examples, examples):
        """Score the words that texts say most often."""
        texts = [words_of(s.text) for video in train_examples for s in video.segments]
        said = collections.Counter(word for text in texts for word in text)
        best = {
            what: sorted(self.words[what], key=lambda word: -said[word.lower()])[: max(TOPS)]
            for what in ASKED
        }
        return self.score(examples, [best] * len(examples))

    def clusters(self, examples):
        """Return the pair."""
        return [f"{e.verb} {e.noun}" for e in examples]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without the marks around them."""
    return re.findall(r"\w+(?:['-]\w+)*", text.lower())


def _segment(values: dict, rows: int, split_of: dict[str, str], where: str) -> Segment:
    """Return a line's Segment, checked against the number of clips and the videos' splits so
    far."""
    for name, kind in (("video", str), ("split", str), ("first", int), ("clips", int)):
        field(values, name, kind, where)
    if "told" in values:
        raise UserError(f"{where}: unknown field told; it follows from text, verb and noun")
    found = Segment(**fields_of(Segment, values, where))
    check_choice("split", found.split, Videos.splits, where)
    if found.first < 0 or found.clips < 1 or found.first + found.clips > rows:
        raise UserError(
            f"{where}: first {found.first} and clips {found.clips} are not within the {rows} rows "
            "of features.npy"
        )
    if split_of.setdefault(found.video, found.split) != found.split:
        raise UserError(
            f"{where}: split is {found.split!r}, but video {found.video} began in the other"
        )
    for name, other in (ASKED, ASKED[::-1]):
        if not getattr(found, name) and (found.split == "dev" or getattr(found, other)):
            raise UserError(f"{where}: {name} is missing; a question needs verb and noun")
    return found
