"""The answer to a question, marked in a passage (sections 4.2 and 4.3).

The rules are those of `official_bert.span_answers`. Every window gives its n best starts and ends.
A span starts at a token that has its most context there, is at most `max_answer_length` tokens
long, and scores start + end; the spans of all windows compete. With `allow_no_answer` (SQuAD 2.0)
the empty answer scores start + end at [CLS], the lowest over the windows.
"""

import tensorflow as tf

from official_bert.export.served_model import ServedModel
from official_bert.tokenization.graph import in_graph_packing as packing
from official_bert.tokenization.graph import in_graph_windows

_NOTHING = -1e9  # score of a pair that is not a span


class ServedSpan(ServedModel):
    """Answers to questions about passages, `question` and `context` [B]; outputs, each [B].

    `answer` string, `start`, `end` int32: the answer is characters start to end of the context;
    `probability` float32, the answer's share among the `n_best_size` best spans of different text.
    No answer is "", -1, -1. `truncated` bool: the question was cut; passages are read whole, in
    windows.
    """

    head = "span"
    text_inputs = {"question": [None], "context": [None]}

    def _answer_texts(self, question, context):
        settings = self.settings
        questions = self.tokenize(question)
        asked = packing.token_counts(questions)
        kept = tf.minimum(asked, settings.max_query_length)
        questions = packing.cut(questions, kept)
        contexts, starts, ends = self.tokenize_with_offsets(context)

        room = settings.max_seq_length - 2 - len(self.between) - kept
        stride = tf.fill(tf.shape(room), settings.doc_stride)
        plan = in_graph_windows.windows(packing.token_counts(contexts), room, stride)
        passages = plan.tokens.with_values(tf.gather(contexts.values, plan.tokens.values))
        texts = [tf.gather(questions, plan.text), passages]
        packed = packing.assemble(texts, self.cls_id, self.sep_id, self.between)
        answer, rows = self.answers.answer_packed(packed)
        logits = answer["start_logits"], answer["end_logits"]  # [W, L] each
        # The passage begins behind [CLS], question and [SEP].
        first = 1 + len(self.between) + tf.gather(kept, plan.text)  # [W]
        spans, scores = self._spans(logits, rows, first, plan)
        # A pair that is not a span has token 0, which a batch without passage tokens lacks.
        starts, ends = (
            tf.gather(tf.concat([characters.values, [0]], axis=0), spans[..., side])
            for side, characters in enumerate((starts, ends))
        )
        begin_end = tf.stack([starts, ends], axis=-1)  # [W, candidates, 2], characters
        scores, begin_end = _by_text(scores, begin_end, plan.text, tf.size(question))
        # The empty answer stands at [CLS].
        at_cls = sum(side[:, 0] for side in logits)
        empty = tf.math.unsorted_segment_min(at_cls, plan.text, tf.size(question))
        return {**self._best(context, scores, begin_end, empty), "truncated": kept < asked}

    def answer_padded_ids(self, input_ids, input_mask, segment_ids):
        """Return `start_logits`, `end_logits` float32 [B, L]."""
        packed = self._checked(packing.from_padded(input_ids, input_mask, segment_ids))
        return self._to_padded(packed, input_mask)

    def _spans(self, logits, rows, first, plan):
        """Return the n * n pairs of best starts and ends of each window.

        Returns:
          int32 [W, n * n, 2], first and last token of spans as places among the tokens of all
          contexts, and their scores [W, n * n], `_NOTHING` where a pair is not a span.
        """
        count = tf.minimum(self.settings.n_best_size, rows.length)
        logits = (tf.where(rows.mask, side, _NOTHING) for side in logits)
        (start_logits, starts), (end_logits, ends) = (tf.math.top_k(x, count) for x in logits)
        # Places within the passage of the window, [W, n].
        starts, ends = starts - first[:, None], ends - first[:, None]
        starts, ends = starts[:, :, None], ends[:, None, :]
        sizes = packing.token_counts(plan.tokens)
        begin = tf.cumsum(sizes, exclusive=True)[:, None, None]
        sizes = sizes[:, None, None]
        inside = (starts >= 0) & (ends < sizes) & (starts < sizes)
        ordered = (starts <= ends) & (ends < starts + self.settings.max_answer_length)
        # A batch may have no passage token at all; the added entry gives gather something to read.
        owns = tf.concat([plan.owns, [False]], axis=0)
        tokens = tf.concat([plan.tokens.values, [0]], axis=0)
        last = tf.size(tokens) - 1
        place = tf.where(inside, begin + starts, last)
        is_span = inside & ordered & tf.gather(owns, place)
        scores = start_logits[:, :, None] + end_logits[:, None, :]
        scores = tf.where(is_span, scores, _NOTHING)
        pairs = tf.stack(
            [
                tf.gather(tokens, tf.where(is_span, begin + starts, last)),
                tf.gather(tokens, tf.where(is_span, begin + ends, last)),
            ],
            axis=-1,
        )
        flat = tf.shape(scores)[0], count * count
        return tf.reshape(pairs, [*flat, 2]), tf.reshape(scores, flat)

    def _best(self, context, scores, begin_end, empty):
        """Return the outputs from candidates: scores [B, S], characters [B, S, 2].

        `empty` is the score of the empty answer, [B].
        """
        size = self.settings.n_best_size
        # Twice as many as are kept: some have the text of a better one.
        scores, order = tf.math.top_k(scores, tf.minimum(2 * size, tf.shape(scores)[1]))
        begin_end = tf.gather(begin_end, order, batch_dims=1)
        begin, end = begin_end[..., 0], begin_end[..., 1]
        found = scores > _NOTHING / 2
        texts = tf.strings.substr(
            tf.repeat(context[:, None], tf.shape(begin)[1], axis=1),
            tf.where(found, begin, 0),
            tf.where(found, end - begin, 0),
            unit="UTF8_CHAR",
        )
        words = tf.strings.strip(tf.strings.regex_replace(texts, r"[\s\pZ]+", " "))
        same = words[:, :, None] == words[:, None, :]
        earlier = tf.linalg.band_part(tf.ones(tf.shape(same)[1:]), -1, 0) > 0
        earlier = earlier & ~tf.eye(tf.shape(same)[1], dtype=tf.bool)
        repeated = tf.reduce_any(same & earlier, axis=2)
        kept = found & ~repeated & (words != "")
        rank = tf.cumsum(tf.cast(kept, tf.int32), axis=1)
        kept &= rank <= size
        scores = tf.where(kept, scores, _NOTHING)

        best = tf.argmax(scores, axis=1)
        answer, begin, end, score = (
            tf.gather(values, best, batch_dims=1) for values in (texts, begin, end, scores)
        )
        no_answer = ~tf.reduce_any(kept, axis=1)
        rivals = scores
        if self.settings.allow_no_answer:
            odds = empty - score
            no_answer |= odds > self.settings.null_score_diff_threshold
            # The empty answer takes the place of the last of n spans where it is better.
            loses = (rank == size) & (empty[:, None] > scores)
            rivals = tf.concat([tf.where(loses, _NOTHING, scores), empty[:, None]], axis=1)
        probabilities = tf.nn.softmax(rivals)
        of_none = probabilities[:, -1] if self.settings.allow_no_answer else 1.0
        return {
            "answer": tf.where(no_answer, "", answer),
            "start": tf.where(no_answer, -1, begin),
            "end": tf.where(no_answer, -1, end),
            "probability": tf.where(
                no_answer, of_none, tf.gather(probabilities, best, batch_dims=1)
            ),
        }


def _by_text(scores, begin_end, text, batch):
    """Gather the candidates of windows [W, S] by text: [B, S'], filled with `_NOTHING`."""
    scores = tf.RaggedTensor.from_value_rowids(scores, text, batch, validate=False)
    begin_end = tf.RaggedTensor.from_value_rowids(begin_end, text, batch, validate=False)
    scores, begin_end = scores.to_tensor(_NOTHING), begin_end.to_tensor(0)  # [B, windows, S, ...]
    most = tf.shape(scores)[1] * tf.shape(scores)[2]
    scores, begin_end = tf.reshape(scores, [batch, most]), tf.reshape(begin_end, [batch, most, 2])
    # One more candidate that is not a span gives a batch without rows a first column, too.
    scores = tf.pad(scores, [[0, 0], [0, 1]], constant_values=_NOTHING)
    return scores, tf.pad(begin_end, [[0, 0], [0, 1], [0, 0]])
