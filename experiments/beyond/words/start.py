"""GLUE's baselines on given word vectors, as fine-tuning runs: CBOW, and BiLSTMs with attention.

A FinetuneConfig asks for one by `model="cbow"` or `model="bilstm_attention"`, with the vectors'
file in `word_vectors` and, for the latter, a folder of ELMo's in `elmo`, in their place or beside
them. Vectors and ELMo are not trained; a batch brings what its words have.
"""

import dataclasses
import functools
import os
from typing import Any

import numpy as np

from experiments.beyond.common.baselines import UNSAVED
from experiments.beyond.common.task_words import words_in
from experiments.beyond.common.words import WordTokenizer
from experiments.beyond.elmo.shape import ElmoConfig, check_elmo_folder
from experiments.beyond.words.options import WordOptions
from experiments.beyond.words.vectors import LEARNT_WIDTH, read_vectors, vectors_width
from experiments.training.settings.flops import LSTM_RATE, lstm_flops
from experiments.training.settings.options import replaced
from experiments.training.start.initial_state import BertSource
from official_bert.common.checksums import state
from official_bert.common.errors import UserError
from official_bert.extension import load
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS

CBOW, BILSTM = NAMES = ("cbow", "bilstm_attention")


@dataclasses.dataclass(frozen=True)
class WordStart:
    """The start of a run on word vectors, in place of an `InitialState`.

    Attributes:
      name: of `NAMES`.
      tokenizer: WordTokenizer.
      vectors: float32 [its entries, D]; zeros where there is none, D = 0 without a file.
      width: of the BiLSTMs.
      rate: of dropout.
      pairs: whether the task is about two texts.
      elmo: an `ELMo` whose states are read too, or None.
    """

    name: str
    tokenizer: WordTokenizer
    vectors: np.ndarray
    width: int
    rate: float
    pairs: bool
    elmo: Any = None
    bert = head = None

    @property
    def key(self):
        """The part of the configuration that decides the model apart from its weights."""
        elmo = self.elmo and self.elmo.config
        return self.name, self.vectors.shape[1], self.width, self.rate, self.pairs, elmo

    def complete(self, batch: dict) -> dict:
        """Return the batch with "vectors", float32 [B, L, D], and ELMo's "states" [B, L, layers,
        E]."""
        batch = {**batch, "vectors": self.vectors[batch["input_ids"]]}
        return {**batch, "states": elmo_states(self._states, batch)} if self.elmo else batch

    @functools.cached_property
    def _states(self):
        from keras import ops

        from official_bert.backend.compiled import compiled

        return compiled(
            self.elmo, lambda batch: ops.stack(self.elmo(batch)["hidden_states"], axis=2)
        )

    def model(self, config, head, seed):
        """Return a new `text_classifiers.TextClassifier` for `Task.head`."""
        from experiments.beyond.words import model as text_classifiers

        inputs = self.vectors.shape[1]
        options = {"rate": self.rate, "seed": seed}
        if self.name == CBOW:
            return text_classifiers.CBOW(inputs, head, self.pairs, **options)
        if self.elmo:
            options["elmo"] = self.elmo.config
        return text_classifiers.BiLSTMAttention(inputs, self.width, head, self.pairs, **options)

    def save(self, path, model, settings):
        """Write a model folder, with the vectors of all words: texts to come have others."""
        load("experiments.beyond.words.kept:save")(path, self, model, settings)

    def training_flops(self, config, rows, length):
        """Return the FLOPs of one step; ELMo's own are not counted."""
        vectors, elmo = self.vectors.shape[1], self.elmo and self.elmo.config
        return 3 * _flops(config, vectors, elmo, 2 if self.pairs else 1, rows * length)


class WordVectors(BertSource):
    """Given vectors of words, a pre-trained ELMo's, or both."""

    has_seeds = True
    rate = LSTM_RATE
    leaves = UNSAVED
    lacks = frozenset(("bilstm", "mean_pooling", "features", "freeze", "vocab"))
    takes = (WordOptions,)

    def accepts(self, options):
        return type(options) in self.takes

    def corpus_cell(self, learnt, seed, do_lower_case):
        options = {"kind": learnt, "do_lower_case": do_lower_case, "seed": seed}
        # About 30,000 words, nine characters a number.
        sizes = {"cost": 400, "bytes": 3e4 * LEARNT_WIDTH * 9}
        return f"vectors/{learnt}/{seed}", "vectors", options, sizes

    def given(self, config, made):
        read = {"word_vectors": f"{made['learnt']}//vectors.txt"} if "learnt" in made else {}
        read |= {"elmo": made["model"]} if "model" in made else {}
        return replaced(config, **read)

    def check_finetuning(self, config, task):
        """Raise UserError where the vectors are missing, or the task is not about whole texts."""
        name, read = f"--config.model={config.model}", WordOptions.of(config)
        if not read.word_vectors and not read.elmo:
            raise UserError(
                f"{name} reads word vectors: --config.word_vectors=FILE of GloVe's format"
                + (", or --config.elmo=FOLDER" if config.model == BILSTM else "")
            )
        if read.word_vectors and not os.path.isfile(read.word_vectors):
            raise UserError(f"--config.word_vectors={read.word_vectors}: no such file")
        if read.elmo and config.model != BILSTM:
            raise UserError(f"--config.elmo is read by {BILSTM}, not by {config.model}")
        if read.elmo:
            check_elmo_folder(read.elmo, "--config.elmo=")
        if config.feature_width % 2:
            raise UserError("--config.feature_width must be even: half of it reads from either end")
        if task.head["head"] != "classification" or task.head.get("windows"):
            what = "windows of texts" if task.head.get("windows") else task.head["head"]
            raise UserError(f"{name} tells one or two texts apart; {config.task} is {what}")
        return None, None

    def finetuning_start(self, config, task, examples):
        return start(config, task, examples)

    def planned_bert(self, config):
        return None

    def planned_work(self, config, bert, train_examples, dev_examples):
        elmo = bert if isinstance(bert, ElmoConfig) else None
        # Every example is taken as two texts of full length: an upper bound.
        length, epochs = config.max_seq_length, config.num_train_epochs
        # Where the file is missing the run itself will say so.
        path = WordOptions.of(config).word_vectors
        width = vectors_width(path) if os.path.isfile(path) else 0
        if path.startswith("@"):  # they are still to be learnt
            width = LEARNT_WIDTH
        one = _flops(config, width, elmo, 2, length)
        states = elmo.encoder_flops(2, length) if elmo else 0.0
        trained = epochs * train_examples
        work = one * (3 * trained + dev_examples) + states * (trained + dev_examples)
        return [(work, self.rate)]


def _flops(config, vectors: int, elmo, texts: int, tokens: int) -> float:
    """Return the FLOPs of a forward pass of GLUE's BiLSTM on so many words in all; 0 for CBOW.

    Args:
      vectors: width of the word vectors.
      elmo: ElmoConfig of what it reads beside them, or None; its own work is not in it.
    """
    if config.model == CBOW:
        return 0.0
    width, read = config.feature_width, vectors + (elmo.hidden_size if elmo else 0)
    # Each text is a row as long as both.
    attending = [2 * width] * (texts == 2)
    return lstm_flops([read, width, *attending], width, texts * tokens)


def start(config, task, examples) -> WordStart:
    """Return the WordStart of a FinetuneConfig.

    Args:
      config: FinetuneConfig.
      task: of `get_task`.
      examples: {split: examples} of what is read already.
    """
    tokenizer, vectors = WordTokenizer([]), np.zeros((len(SPECIAL_TOKENS), 0), np.float32)
    read = WordOptions.of(config)
    if read.word_vectors:
        tokenizer, vectors = _read(read.word_vectors, *state(read.word_vectors))
    rate = config.dropout if config.dropout >= 0 else 0.2
    first, *_ = examples.get("train") or task.examples("train")
    pairs, elmo = len(task.texts(first)) == 2, None
    if read.elmo:
        from experiments.beyond.elmo.model import load_elmo

        spelt = words_in(task, config, examples, tokenizer.words_of)
        ids = [tokenizer.word_id(word) for word in spelt]
        words = tokenizer.vocab[len(SPECIAL_TOKENS) :]
        tokenizer = WordTokenizer(words, spelt)
        vectors = np.concatenate([vectors[: len(SPECIAL_TOKENS)], vectors[ids]])
        elmo = load_elmo(read.elmo, tokenizer.vocab)
    return WordStart(config.model, tokenizer, vectors, config.feature_width, rate, pairs, elmo)


def elmo_states(states_of, batch) -> np.ndarray:
    """Return ELMo's states of a batch of one or two texts a row, each read on its own.

    Args:
      states_of: function of input_ids and input_mask -> [B, L, layers, E].
      batch: input_ids, input_mask, segment_ids int32 [B, L].

    Returns: float32 [B, L, layers, E].
    """
    real, segments = batch["input_mask"], batch["segment_ids"]
    masks = [real * (segments == 0)]
    if segments.any():
        masks.append(real * (segments == 1))
        masks[1][:, 0] = 1  # what begins a text
    rows = [{"input_ids": batch["input_ids"], "input_mask": mask} for mask in masks]
    read = [np.asarray(states_of(each)) for each in rows]
    return read[0] if len(read) == 1 else np.where(segments[..., None, None] == 1, *read[::-1])


@functools.lru_cache(maxsize=1)
def _read(path, *_state):
    words, vectors = read_vectors(path)
    fresh = [index for index, word in enumerate(words) if word not in SPECIAL_TOKENS]
    tokenizer = WordTokenizer(words[index] for index in fresh)
    table = np.zeros((tokenizer.vocab_size, vectors.shape[1]), np.float32)
    table[len(SPECIAL_TOKENS) :] = vectors[fresh]
    return tokenizer, table
