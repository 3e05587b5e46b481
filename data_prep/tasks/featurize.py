"""Features of examples (a `FeatureSet`), made on all cores where that pays, and kept on disk.

The key of a file is a hash of the examples themselves (so of the files' content, wherever they came
from), the task's options, the vocabulary, the length, the source code of this package, of the
tokeniser and of `corpus`, and the splitters' versions. So no stale file is ever read.
"""

import functools
import hashlib
import inspect
import json
import os
import pathlib
import sys
import time

from data_prep import corpus, tasks
from data_prep.corpus.sentence_splitter import splitter_version
from data_prep.corpus.shares import MOST_UNKNOWN
from data_prep.jobs.processes import Processes, WorkerDied, available_cores
from data_prep.tasks.feature_set import FeatureSet
from data_prep.tasks.files import formats
from data_prep.tasks.task import Task
from official_bert import tokenization
from official_bert.common.errors import UserError
from official_bert.common.files import set_aside

_CHUNK = 512  # examples in a unit of work
# Workers pay where the rest would take longer than this; starting one takes about a second.
_PARALLEL_FROM_SECONDS = 4.0


def featurize(
    task: Task,
    examples: list,
    tokenizer,
    max_seq_length: int,
    cache_dir: str | os.PathLike | None = None,
    num_processes: int | None = None,
) -> FeatureSet:
    """Return the features of all examples, in order; they do not depend on the number of processes.

    Args:
      cache_dir: folder that is searched for the result first, and keeps it; None: no folder.
      num_processes: number of processes, 1: this one; None: all cores if that is faster.

    Raises:
      UserError: there are no examples, or `max_seq_length` is too small.
    """
    if not examples:
        raise UserError(f"task {task.name}: no examples")
    task.tokenizer = tokenizer
    path = None
    if cache_dir is not None:
        key = cache_key(task, examples, tokenizer, max_seq_length)
        path = pathlib.Path(cache_dir, f"{task.name}-{key[:32]}.npz")
        if path.exists():
            cached = FeatureSet.load(path)
            if cached is not None:
                _look_for_unknown(cached, tokenizer, task.name)
                return cached
            set_aside(path)
    features = FeatureSet.concatenate(
        list(_chunks_of_features(task, examples, tokenizer, max_seq_length, num_processes)),
        len(examples),
        max_seq_length,
    )
    _look_for_unknown(features, tokenizer, task.name)
    if path is not None:
        try:
            features.save(path)
        except UserError as error:
            print(f"features are not kept: {error}", file=sys.stderr)
    return features


def _look_for_unknown(features: FeatureSet, tokenizer, name: str) -> None:
    special = getattr(tokenizer, "special", None)
    if special is None or special.unk is None:
        return
    share = (features.columns["input_ids"].values == tokenizer.unk_id).mean()
    if share > MOST_UNKNOWN:
        formats.announce(
            f"warning: {name}: more than {MOST_UNKNOWN:.0%} of the tokens are {special.unk}: the "
            "model's vocabulary is of other text"
        )


def cache_key(task: Task, examples: list, tokenizer, max_seq_length: int) -> str:
    """Return a hash of everything that decides the features."""
    digest = hashlib.sha256()
    options = [task.name, task.settings(), max_seq_length]
    code = f"{_own_code(type(task), type(tokenizer))} {splitter_version('en')}"
    for part in (json.dumps(options, sort_keys=True), tokenizer.digest(), code):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    for example in examples:
        digest.update(repr(example).encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


class _EncodedBefore:
    """A tokenizer that knows the ids of some texts already.

    One call encodes all texts of a chunk on the fast path, and tasks still ask for one at a time.
    """

    def __init__(self, tokenizer, texts: list[str]):
        self._tokenizer = tokenizer
        texts = list(dict.fromkeys(texts))
        ids, offsets = tokenizer.encode_batch(texts)
        ids = ids.tolist()
        self._ids = {text: ids[offsets[i] : offsets[i + 1]] for i, text in enumerate(texts)}

    def encode(self, text: str) -> list[int]:
        known = self._ids.get(text)
        return self._tokenizer.encode(text) if known is None else known

    def __getattr__(self, name: str):
        return getattr(self._tokenizer, name)


def _chunks_of_features(task, examples, tokenizer, max_seq_length, num_processes):
    chunks = [
        (start, examples[start : start + _CHUNK]) for start in range(0, len(examples), _CHUNK)
    ]
    done = 0
    if num_processes is None:
        seconds = 0.0
        for start, chunk in chunks[:2]:  # the first fills caches, the second shows the speed
            begun = time.perf_counter()
            features = _features_of_chunk(task, start, chunk, tokenizer, max_seq_length)
            seconds = time.perf_counter() - begun
            done += 1
            yield features
        left = seconds * (len(chunks) - done)
        num_processes = available_cores() if left > _PARALLEL_FROM_SECONDS else 1
    num_processes = min(num_processes, len(chunks) - done)
    if num_processes > 1:
        task.head  # noqa: B018  labels are found once, here, not in every worker
        prepare = functools.partial(_prepare_worker, task, tokenizer, max_seq_length)
        try:
            with Processes(num_processes, prepare) as processes:
                for features in processes.map(_work, chunks[done:]):
                    yield features
                    done += 1
        except WorkerDied:
            # The main script cannot be imported again (a notebook cell, standard input).
            print("featurising in one process: workers could not start", file=sys.stderr)
    for start, chunk in chunks[done:]:
        yield _features_of_chunk(task, start, chunk, tokenizer, max_seq_length)


def _features_of_chunk(task, start: int, examples: list, tokenizer, max_seq_length) -> FeatureSet:
    texts = getattr(task, "texts", None)
    if texts is not None:
        tokenizer = _EncodedBefore(tokenizer, [text for e in examples for text in texts(e)])
    features = []
    for index, example in enumerate(examples, start):
        for feature in task.features(example, tokenizer, max_seq_length):
            feature["example_index"] = index
            features.append(feature)
    return FeatureSet.of(features, len(examples), max_seq_length)


def feature_cache() -> pathlib.Path:
    """Return the folder of cached features, which all runs of a user share."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    default = pathlib.Path(base) / "official_bert" / "features"
    return pathlib.Path(os.environ.get("OFFICIAL_BERT_CACHE") or default)


_worker: tuple = ()


def _prepare_worker(task, tokenizer, max_seq_length) -> None:
    global _worker
    _worker = (task, tokenizer, max_seq_length)


def _work(chunk) -> FeatureSet:
    task, tokenizer, max_seq_length = _worker
    start, examples = chunk
    return _features_of_chunk(task, start, examples, tokenizer, max_seq_length)


def _own_code(kind: type, pieces: type) -> str:
    """Hash the code that makes features: of a class of tasks and of a class of tokenisers.

    A class of tasks counts with its own files, a tokeniser with all files of its folder.
    """
    folders = [pathlib.Path(room.__file__).parent for room in (tasks, corpus, tokenization)]
    files = {path for folder in folders for path in folder.rglob("*.py")}
    files |= {pathlib.Path(inspect.getfile(one)) for one in kind.__mro__[:-1]}
    homes = {pathlib.Path(inspect.getfile(one)).parent for one in pieces.__mro__[:-1]}
    return code_hash(*sorted(files.union(*(home.glob("*.py") for home in homes))))


@functools.cache
def code_hash(*files: pathlib.Path) -> str:
    """Hash files of code once in a process, whatever is written to them later."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
