"""VideoBERT (`experiments.beyond.video.model`) as a run: learns from videos, is asked zero-shot.

A FinetuneConfig asks for it by `model="videobert"`, or by a name of `NAMES` for a part left out;
`bert` has its sizes, or `init_from` is the BERT that it begins as. Nothing is fine-tuned: an epoch
draws as many rows of each of the three kinds as there are segments, then the model fills in "now
let me show you how to [MASK] the [MASK]" beside clips that it has not seen.
"""

import dataclasses

import numpy as np

from experiments.beyond.common.shape import check_plain
from experiments.beyond.video.options import VideoOptions
from experiments.beyond.video.rows import Tokens, VideoRows
from experiments.beyond.video.task import ASKED, LEAVES
from experiments.beyond.video.visual_words import VisualWords
from experiments.training.finetuning.one_shot_models import OneShotModel, take_steps
from experiments.training.start import initial_state, preflight
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError
from official_bert.tokenization import BertTokenizer

QUESTION = "now let me show you how to [MASK] the [MASK]"
_ASKED_AT_ONCE = 64


@dataclasses.dataclass(frozen=True)
class Idea:
    """The part of VideoBERT that an ablation keeps.

    Attributes:
      centroids: visual words' rows begin as frozen centroids; otherwise random, and are trained.
      joint_masks: rows of text and clips are masked too.
      clips: are beside the question; otherwise it is asked of the language alone.
    """

    centroids: bool = True
    joint_masks: bool = True
    clips: bool = True


NAMES = {
    "videobert": Idea(),
    "videobert-language-alone": Idea(clips=False),
    "videobert-random-rows": Idea(centroids=False),
    "videobert-no-joint-masks": Idea(joint_masks=False),
}


class VideoBert(OneShotModel):
    """VideoBERT, whole or without some of its parts."""

    head, does = "shown_words", "reads videos"
    has_seeds = True
    leaves = LEAVES
    takes = (VideoOptions,)

    def check_finetuning(self, config, task):
        super().check_finetuning(config, task)
        source = VideoOptions.of(config).init_from
        if not source:
            check_plain(config.bert_config, config.model)
            return config.bert_config, None
        bert, tokenizer = preflight.peek(source, "init_from")
        if bert:
            check_plain(bert, config.model)
        if not bert or bert.attention_direction != "bidirectional":
            raise UserError(f"--config.init_from={source}: it is not a folder of a BERT")
        if _tokenizer(config, task).vocab != tokenizer.vocab:
            raise UserError(
                f"{task.vocab} is not the vocabulary of --config.init_from={source}, "
                "whose rows pieces begin with; copy that model's vocab.txt there"
            )
        return bert, tokenizer

    def learn(self, config, task, train, logged):
        tensorflow_start.import_tensorflow()
        return learn(config, task, train, logged)

    def planned_bert(self, config):
        return config.bert_config

    def planned_work(self, config, bert, train_examples, dev_examples):
        # Four segments a video: an estimate.
        rows = 3 * 4 * train_examples * config.num_train_epochs
        return [(3 * bert.encoder_flops(rows, config.max_seq_length), None)]


def learn(config, task, train, logged):
    """See `OneShotModel.learn`; examples are Videos to learn from and Segments to be asked."""
    import keras

    from experiments.beyond.video import model as video
    from official_bert.optimization import WarmupLinearDecay

    idea, source = NAMES[config.model], VideoOptions.of(config).init_from
    start = source and initial_state.load(source)
    bert = start.config if start else config.bert_config
    tokenizer = start.tokenizer if start else _tokenizer(config, task)
    question, length = tokenizer.encode_masked(QUESTION), config.max_seq_length
    if 2 * len(question) + 3 > length:
        raise UserError(
            f"--config.max_seq_length={length}: the question has {len(question)} pieces, and its "
            f"clips need as many places; give {2 * len(question) + 3} or more"
        )
    segments = [segment for one in train for segment in one.segments]
    words = VisualWords(_clips(task, segments), task.k, task.depth, config.seed)
    shape = len(words.centroids), bert.embedding_width
    rows = np.random.default_rng(config.seed).normal(size=shape) * bert.initializer_range
    if idea.centroids:
        rows = video.rows_of_centroids(words.centroids, shape[1])
    between = tokenizer.vocab_size  # the id after the text's
    bert = dataclasses.replace(bert, vocab_size=between + 1 + shape[0])
    tokens = Tokens(tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id,
                    between, bert.vocab_size)  # fmt: skip
    shown = _Shown(task, words, between + 1)
    told = [[(tokenizer.encode(s.text), shown(s)) for s in one.segments] for one in train]
    cut = sum(len(pieces) + len(ids) + 3 > length for one in told for pieces, ids in one)
    task.notes["train"] = {"segments too long for a row, cut": cut}
    batches = VideoRows(
        told, tokens, config.train_batch_size, length, idea.joint_masks, config.seed
    )
    model = video.pretrainer(bert, rows, idea.centroids, config.seed)
    if start:
        video.begin_as(model, start.model, between)
    steps = max(1, round(config.num_train_epochs * len(segments) / config.train_batch_size))
    rate = WarmupLinearDecay(config.learning_rate, int(config.warmup_proportion * steps), steps)
    model.compile(
        keras.optimizers.Adam(
            rate,
            beta_2=config.adam_beta_2,
            epsilon=config.adam_epsilon,
            global_clipnorm=config.clip_norm or None,
        )
    )
    take_steps(
        steps,
        lambda step: model.train_on_batch(batches.batch(step), return_dict=True),
        logged,
        config.log_every,
    )
    candidates = {what: _ids(tokenizer, task.words[what]) for what in ASKED}
    others = sum(int((ids < 0).sum()) for ids in candidates.values())
    task.notes["dev"] = {"words that are no piece, never the answer": others}

    def answer(asked):
        scores = {what: [] for what in ASKED}
        for start in range(0, len(asked), _ASKED_AT_ONCE):
            some = asked[start : start + _ASKED_AT_ONCE]
            rows = [tokens.row(question, shown(s) if idea.clips else [], length)
                    for s in some]  # fmt: skip
            batch = tokens.pad_rows(rows, length)
            places = np.stack([np.flatnonzero(ids == tokens.mask) for ids in batch["input_ids"]])
            logits = _logits(model, batch, places)
            for number, what in enumerate(ASKED):
                ids = candidates[what]
                scores[what].append(np.where(ids < 0, -np.inf, logits[:, number, ids]))
        outputs = {what: np.concatenate(found) for what, found in scores.items()}
        return task.predictions(asked, [], outputs)

    return answer, steps


def _tokenizer(config, task):
    return BertTokenizer(task.vocab, do_lower_case=config.do_lower_case)


class _Shown:
    """Function of a Segment -> the ids of its visual words."""

    def __init__(self, task, words, first):
        self._task, self._words, self._first = task, words, first

    def __call__(self, segment) -> list[int]:
        return (self._first + self._words(_clips(self._task, [segment]))).tolist()


def _clips(task, segments):
    """Return float32 [clips of the segments, width]."""
    parts = [task.features[s.first : s.first + s.clips] for s in segments]
    return np.concatenate(parts).astype(np.float32)


def _ids(tokenizer, words):
    """Return int [words]; -1 for a word of several pieces, which one [MASK] cannot be, or of
    [UNK]."""
    pieces = [tokenizer.encode(word) for word in words]
    return np.array([x[0] if len(x) == 1 and x[0] != tokenizer.unk_id else -1 for x in pieces])


def _logits(model, batch, places):
    """Return [B, P, V] at places [B, P]."""
    from keras import ops

    from official_bert.layers import gather_positions

    encoded = model.encoder(batch)["sequence_output"]
    states = gather_positions(encoded, ops.convert_to_tensor(places, "int32"))
    return ops.convert_to_numpy(model.objectives[0].scores(model, states))
