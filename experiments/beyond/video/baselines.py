"""Answers to VideoBERT's question without a network, as the first that a reader would try.

A logistic regression of scikit-learn with its default settings learns from the segments of train
whose text has one of the words that are asked for. `model="video-counts"` reads how often a segment
has each visual word, `model="video-features"` the mean of its clips' features.
"""

import numpy as np

from experiments.beyond.common.baselines import WithoutNetwork
from experiments.beyond.video.task import ASKED, LEAVES, words_of
from experiments.beyond.video.visual_words import VisualWords
from official_bert.common.errors import UserError


class VideoBaseline(WithoutNetwork):
    """A linear model of a segment's clips."""

    head, does = "shown_words", "reads videos"
    leaves = LEAVES

    def learn(self, config, task, train, logged):
        return learn(task, train, config.model == "video-counts", config.seed), 0


def learn(task, train, counts: bool, seed: int):
    """Fit one regression for the verbs and one for the nouns.

    Returns: function of Segments -> predictions.
    Raises:
      UserError: no text of train has a verb, or a noun, that is asked for.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    segments = [segment for video in train for segment in video.segments]
    if counts:
        clips = np.concatenate([_clips(task, segment) for segment in segments])
        words = VisualWords(clips, task.k, task.depth, seed)

    def read(segment):
        clips = _clips(task, segment)
        if counts:
            return np.bincount(words(clips), minlength=len(words.centroids))
        return clips.mean(axis=0)

    models = {}
    for what in ASKED:
        place = {word.lower(): i for i, word in enumerate(task.words[what])}
        told = [(s, place[w]) for s in segments for w in words_of(s.text) if w in place]
        if not told:
            raise UserError(f"{task.data_dir}: no text of train has a {what} that is asked for")
        features, labels = np.stack([read(s) for s, _ in told]), [label for _, label in told]
        kind = LogisticRegression(max_iter=1000) if len({*labels}) > 1 else DummyClassifier()
        models[what] = kind.fit(features, labels)

    def answer(asked):
        features, scores = np.stack([read(segment) for segment in asked]), {}
        for what, model in models.items():
            scores[what] = np.full((len(asked), len(task.words[what])), -np.inf)
            scores[what][:, model.classes_] = model.predict_log_proba(features)
        return task.predictions(asked, [], scores)

    return answer


def _clips(task, segment) -> np.ndarray:
    return task.features[segment.first : segment.first + segment.clips].astype(np.float32)
