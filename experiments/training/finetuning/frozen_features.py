"""The feature-based approach of section 5.3: the hidden states of a frozen encoder as features.

The states are computed once and kept on disk; a randomly initialised two-layer BiLSTM, 768 wide,
and a classifier on each word (`feature_tagger`) take them as they are. The encoder is not trained,
so the six rows of Table 7 differ only in the hidden states that they read.

A word's vector is that of its first sub-token (or of the one that the task labels), in the window
where it has most context. One pass over the data stores all layers, a file each; every row of Table
7 reads the layers it needs and trains only its own tagger. A sequence is then a sentence of words;
its vectors hold the context of the document.

Vectors are stored as float16: layer normalisation keeps them small, and 11 bits of precision are
more than the 8 of bfloat16, in which encoders are trained.
"""

import hashlib
import inspect
import json
from pathlib import Path

import numpy as np

import official_bert
from data_prep.jobs import checked_json, commands
from data_prep.jobs.progress import progress_bar
from data_prep.tasks.batches import eval_batches
from data_prep.tasks.feature_set import Column, FeatureSet
from data_prep.tasks.featurize import code_hash
from official_bert.common.checksums import crc32c_file
from official_bert.common.errors import UserError
from official_bert.common.files import allocate, atomic_folder
from official_bert.config import BertConfig
from official_bert.features import select_layers

_ROOM = Path(official_bert.__file__).parent
_CODE = (
    *(Path(__file__), _ROOM / "encoder.py", _ROOM / "layers.py"),
    *sorted((_ROOM / "backend").glob("*.py")),
)
_CHECKSUMS = "checksums.json"


class FrozenFeatures:
    """Sentences of one split with the vectors of their words.

    Attributes:
      sentences: FeatureSet with one feature a sentence, in the order of the examples: `input_ids`
        are the words' rows in the files of vectors.
    """

    def __init__(self, layers: list[np.ndarray], sentences: FeatureSet):
        """
        Args:
          layers: float16 [words, H] of each hidden state that is read.
          sentences: of `sentence_features`.
        """
        self.sentences = sentences
        self._layers = layers

    def complete(self, batch: dict) -> dict:
        """Return the batch with `features`, float16 [B, L, layers, H]."""
        rows = batch["input_ids"]
        vectors = np.stack([layer[rows] for layer in self._layers], axis=2)
        return {**batch, "features": vectors}


def open_or_compute(
    folder, layers, build_encoder, examples, windows, batch_size, progress=True
) -> FrozenFeatures:
    """Return the vectors in `folder`; compute them first where it is missing or damaged.

    Args:
      folder: of `cache_folder`, which names everything that decides the vectors.
      layers: which hidden states to read.
      build_encoder: function that returns the BertEncoder; called only if there is work to do.
      examples: tagging examples; their `sentences` are tuples of words.
      windows: the task's FeatureSet, with `word_ids`.
      batch_size: windows that are encoded at once; does not change the result.
      progress: show a progress line on stderr.
    """
    arrays, data = None, (examples, windows, batch_size, progress)
    if not _is_whole(folder, layers):
        try:
            with atomic_folder(folder, overwrite=True) as temporary:
                compute(temporary, build_encoder(), *data)
        except UserError as error:
            if not _is_whole(folder, layers):  # another process may have written it meanwhile
                commands.say(f"the vectors are not kept: {error}")
                arrays = hidden_states(build_encoder(), *data, layers)
    arrays = arrays or [np.load(folder / _file_name(layer), mmap_mode="r") for layer in layers]
    return FrozenFeatures(arrays, sentence_features(examples, windows))


def compute(folder, encoder, examples, windows, batch_size, progress=True) -> None:
    """Write one file a hidden state, float16 [words, H], and the checksums of all."""

    def mapped(layer, shape):
        path = folder / _file_name(layer)
        file = np.lib.format.open_memmap(path, "w+", np.float16, shape)
        allocate(path)
        return file

    layers = range(encoder.config.num_hidden_layers + 1)
    files = hidden_states(encoder, examples, windows, batch_size, progress, layers, mapped)
    for file in files:
        file.flush()
    names = list(map(_file_name, layers))
    checked_json.write(folder / _CHECKSUMS, {name: crc32c_file(folder / name) for name in names})


def hidden_states(encoder, examples, windows, batch_size, progress, layers, make=None):
    """Return the hidden states of some layers, a float16 [words, H] each.

    Args:
      make: function of (layer, shape) that gives the array to fill; None: one in memory.
    """
    from keras import ops

    from official_bert.backend.compiled import compiled

    first_word = _first_words(examples)
    shape = (int(first_word[-1]), encoder.config.hidden_size)
    make = make or (lambda layer, shape: np.zeros(shape, np.float16))
    files = [make(layer, shape) for layer in layers]

    def states_of(batch):
        states = encoder(batch, training=False)["hidden_states"]
        return [ops.cast(states[layer], "float16") for layer in layers]

    compute_states = compiled(encoder, states_of)
    word_ids, example_index = windows.columns["word_ids"], windows.columns["example_index"]
    with progress_bar(progress, total=len(windows), unit="window", desc="hidden states") as bar:
        for rows, batch in eval_batches(windows, batch_size, buckets=8):
            inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
            states = compute_states(inputs)
            for index, row in enumerate(rows):
                words = word_ids[row].astype(np.int64)
                positions = np.flatnonzero(words >= 0)
                targets = first_word[example_index[row]] + words[positions]
                for file, state in zip(files, states, strict=True):
                    file[targets] = state[index, positions]
            bar.update(len(rows))
    return files


def _is_whole(folder, layers) -> bool:
    """Return whether the files of these layers are as `compute` wrote them; print a line if not."""
    if not folder.is_dir():
        return False
    try:
        checksums = checked_json.read(folder / _CHECKSUMS)
        for name in map(_file_name, layers):
            if checksums.get(name) != crc32c_file(folder / name):
                raise UserError(f"the checksum of {name} is wrong")
    except (UserError, OSError) as error:
        commands.say(f"{folder} is damaged ({error}); making it again")
        return False
    return True


def sentence_features(examples, windows: FeatureSet) -> FeatureSet:
    """Return one feature a sentence instead of one a window; words are numbered over all examples.

    Sentences longer than a window are cut. A feature has `input_ids` (numbers of words),
    `word_ids` (the same within the example, as the task's `predictions` reads them),
    `example_index`, `truncated` (0) and, where the windows have them, `label_ids`.
    """
    first_word = _first_words(examples)
    lengths, example_index = [], []
    for index, example in enumerate(examples):
        for sentence in example.sentences:
            cut = _pieces(len(sentence), windows.max_seq_length)
            lengths += cut
            example_index += [index] * len(cut)
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    numbers = np.arange(first_word[-1], dtype=np.int32)
    example_index = np.array(example_index, np.int32)
    columns = {
        "input_ids": Column(numbers, offsets),
        "word_ids": Column(numbers - np.repeat(first_word[example_index], lengths), offsets),
        "example_index": Column(example_index),
        "truncated": Column(np.zeros(len(lengths), np.int8)),
    }
    if "label_ids" in windows.columns:
        words = windows.columns["word_ids"]
        example_of = np.repeat(windows.columns["example_index"].values, words.lengths)
        positions = np.flatnonzero(words.values >= 0)
        targets = first_word[example_of[positions]] + words.values[positions]
        labels = np.full(len(numbers), -1, np.int32)
        labels[targets] = windows.columns["label_ids"].values[positions]
        columns["label_ids"] = Column(labels, offsets)
    return FeatureSet(columns, len(examples), windows.max_seq_length)


def layers_of(bert, combination: str) -> list[int]:
    """Return the numbers of the hidden states that a row of Table 7 reads."""
    return select_layers(range(bert.num_hidden_layers + 1), combination)


def cache_folder(cache, task_name, data_key, bert, weights, precision, seed):
    """Return the folder for a split's vectors, named by a hash of all they depend on, code
    included.

    Args:
      cache: folder of all cached features.
      data_key: hash of examples, task options, vocabulary and length.
      bert: BertConfig; dropout does not matter here.
      weights: the encoder's arrays, or None for random ones of `seed`.
      precision: of the computation.
    """
    fields = {k: v for k, v in bert.to_dict().items() if not k.endswith("dropout_prob")}
    digest = hashlib.sha256(json.dumps([data_key, fields, precision], sort_keys=True).encode())
    digest.update(code_hash(*_CODE, *_others(type(bert))).encode())
    if weights is None:
        digest.update(f"random {seed}".encode())
    for array in weights or ():
        digest.update(np.ascontiguousarray(array).data)
    return cache / "hidden_states" / f"{task_name}-{digest.hexdigest()[:32]}"


def _others(kind: type) -> list[Path]:
    """Return the files beside the configuration of an encoder that is not BERT's."""
    return [] if kind is BertConfig else sorted(Path(inspect.getfile(kind)).parent.glob("*.py"))


def _file_name(layer: int) -> str:
    return f"layer-{layer:02}.npy"


def _first_words(examples) -> np.ndarray:
    """Return the number of each example's first word, int64; the number of all words at the end."""
    counts = [sum(map(len, example.sentences)) for example in examples]
    return np.cumsum([0, *counts], dtype=np.int64)


def _pieces(length: int, longest: int) -> list[int]:
    whole, rest = divmod(length, longest)
    return [longest] * whole + [rest] * (rest > 0)
