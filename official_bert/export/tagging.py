"""A label for every word of a text (section 5.3): named entities and the like.

A word has the label of its first WordPiece, or of its last where the model was trained so
(`label_piece`). Texts too long for the encoder are read in overlapping windows, so every word gets
a label.
"""

from collections.abc import Callable

import tensorflow as tf

from official_bert.export.served_model import ServedModel, valid_utf8
from official_bert.tokenization import reference
from official_bert.tokenization.graph import in_graph_packing as packing
from official_bert.tokenization.graph import in_graph_windows
from official_bert.tokenization.graph.in_graph import BasicWords
from official_bert.tokenization.word_groups import LAST_CODE, RULES


class ServedTagger(ServedModel):
    """Labels of words; M is the most words of a text, and rows are filled with "", -1 and 0.

    `words`, `labels` string [B, M]; `start`, `end` int32 [B, M], the characters of each word;
    `probabilities` float32 [B, M], of the label chosen. No text is cut.

    The further signature `words` takes text that is cut into words already: `words` string [B, M],
    filled up with "", -> `labels`, `probabilities` [B, M].
    """

    head = "tagging"

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        self.labels = tf.constant(settings.labels, tf.string)
        # WordPieces end where words end. Other pieces may not, and depend on the blank before a
        # word, which in training every word has. For them, words are cut first.
        self.basic_words = None
        if loaded.tokenizer.kind == "word_piece":
            self.word_finder = WordFinder(loaded.tokenizer.vocab)
        else:
            self.basic_words = BasicWords(RULES)
            self.word_finder = WordFinder([chr(code) for code in range(LAST_CODE)])

    def _answer_texts(self, text):
        if self.basic_words is None:
            ids, starts, ends = self.tokenize_with_offsets(text)
        else:
            ids, starts, ends = self.basic_words.words(text)
            ids = ids.with_values(tf.minimum(ids.values, LAST_CODE - 1))
        begins = self.word_finder.begins_word(ids, starts, ends)
        labelled = begins
        if self.settings.label_piece == "last":  # what follows begins a word, or nothing follows
            labelled = tf.concat([begins[1:], [True]], axis=0)[: tf.size(begins)]
        row = tf.boolean_mask(tf.cast(ids.value_rowids(), tf.int32), begins)
        word_of_piece = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        word_ends = tf.math.segment_max(ends.values, word_of_piece)
        start = tf.boolean_mask(starts.values, begins)
        words = _cut_out(text, row, start, word_ends)
        if self.basic_words is None:
            labels, probabilities = self._labels(tf.boolean_mask(self._logits(ids), labelled))
        else:
            counts = tf.math.bincount(row, minlength=tf.size(text), maxlength=tf.size(text))
            labels, probabilities = self._labels_of_words(words, counts)

        def rows(values, filling):
            ragged = tf.RaggedTensor.from_value_rowids(values, row, tf.size(text), validate=False)
            return ragged.to_tensor(filling)

        return {
            "words": rows(words, ""),
            "labels": rows(labels, ""),
            "start": rows(start, -1),
            "end": rows(word_ends, -1),
            "probabilities": rows(probabilities, 0.0),
        }

    def answer_words(self, words):
        """Map string [B, M] -> `labels` string, `probabilities` float32 [B, M]."""
        shape, words = tf.shape(words), valid_utf8(words)
        counts = tf.fill(shape[:1], shape[1])
        labels, probabilities = self._labels_of_words(tf.reshape(words, [-1]), counts)
        return {
            "labels": tf.reshape(labels, shape),
            "probabilities": tf.reshape(probabilities, shape),
        }

    def _labels_of_words(self, words, counts):
        """Map words [W] and `counts` [B], the number in each text, to labels and probabilities [W].

        A word without pieces has the label "".
        """
        # A blank precedes every word, as in training.
        behind_blanks = tf.where(words == "", "", tf.strings.join([" ", words]))
        pieces = self.tokenize(behind_blanks)  # [W, (pieces)]
        lengths = packing.token_counts(pieces)
        texts = tf.repeat(tf.range(tf.size(counts)), counts)
        per_text = tf.math.unsorted_segment_sum(lengths, texts, tf.size(counts))
        ids = tf.RaggedTensor.from_row_lengths(pieces.values, per_text, validate=False)
        answered = tf.where(lengths > 0)[:, 0]  # words that have a piece
        if self.settings.label_piece == "last":
            labelled = tf.cumsum(lengths) - 1
        else:
            labelled = tf.cumsum(lengths, exclusive=True)
        labelled = tf.gather(labelled, answered)
        labels, probabilities = self._labels(tf.gather(self._logits(ids), labelled))
        places, shape = answered[:, None], tf.shape(words)
        return (
            tf.tensor_scatter_nd_update(tf.fill(shape, ""), places, labels),
            tf.tensor_scatter_nd_update(tf.zeros(shape), places, probabilities),
        )

    def answer_padded_ids(self, input_ids, input_mask, segment_ids):
        """Return `labels` string [B, L], `logits` float32 [B, L, labels]."""
        packed = self._checked(packing.from_padded(input_ids, input_mask, segment_ids))
        logits = self._to_padded(packed, input_mask)["logits"]
        return {"labels": tf.gather(self.labels, tf.argmax(logits, axis=-1)), "logits": logits}

    def extra_signatures(self):
        return {"words": (self.answer_words, {"words": tf.TensorSpec([None, None], tf.string)})}

    def _logits(self, ids):
        """Map ragged ids [B, (pieces)] -> float32 [P, labels], from windows joined again."""
        lengths = packing.token_counts(ids)
        room = tf.fill(tf.shape(lengths), self.settings.max_seq_length - 2)
        plan = in_graph_windows.windows(lengths, room, tf.maximum(room // 2, 1))
        texts = plan.tokens.with_values(tf.gather(ids.values, plan.tokens.values))
        packed = packing.assemble([texts], self.cls_id, self.sep_id)
        answer, _ = self.answers.answer_packed(packed)
        # Token t of window w is at place t + 1 of its row, behind [CLS].
        window = tf.boolean_mask(plan.window_of_token, plan.owns)
        place = 1 + packing.positions_in_rows(packing.token_counts(plan.tokens))
        places = tf.stack([window, tf.boolean_mask(place, plan.owns)], axis=1)
        owned = tf.gather_nd(answer["logits"], places)
        at = tf.boolean_mask(plan.tokens.values, plan.owns)
        shape = [tf.size(ids.values), tf.shape(owned)[1]]
        return tf.scatter_nd(at[:, None], owned, shape)

    def _labels(self, logits):
        """Map [words, labels] -> label names and their probabilities, [words]."""
        best = tf.argmax(logits, axis=1)
        probabilities = tf.reduce_max(tf.nn.softmax(logits), axis=1)
        return tf.gather(self.labels, best), probabilities


def _cut_out(texts, row, start, end):
    """Return the words [W] of texts [B]: characters [start, end) of texts[row].

    `tf.strings.substr` would take a copy of the whole text for each of its words.
    """
    points = tf.strings.unicode_decode(texts, "UTF-8")
    lengths = end - start
    first = tf.gather(tf.cast(points.row_starts(), tf.int32), row) + start
    characters = tf.gather(
        points.values, tf.repeat(first, lengths) + packing.positions_in_rows(lengths)
    )
    words = tf.RaggedTensor.from_row_lengths(characters, lengths, validate=False)
    return tf.strings.unicode_encode(words, "UTF-8")


class WordFinder(tf.Module):
    """Groups pieces into words; `vocab` is the list of pieces.

    Words are like CoNLL's. Blanks separate them, and punctuation at either side is a word of its
    own ("Baghdad." is two words, "19-year-old" one). The full stop of an abbreviation stays with it
    ("U.N.", "J."). Every ideograph is a word.
    """

    def __init__(self, vocab: list[str]):
        super().__init__(name="word_finder")
        self._is_punctuation = _marked(vocab, reference.is_punctuation)
        self._is_ideograph = _marked(vocab, reference.is_ideograph)
        self._is_dot = _marked(vocab, lambda piece: piece == ".")

    def begins_word(self, ids, starts, ends):
        """Return whether each piece is the first of its word.

        Args:
          ids, starts, ends: ragged int32 [B, (pieces)], as the in-graph tokeniser gives them.

        Returns:
          bool [P], P the number of pieces of all texts.
        """
        pieces, begin, end = ids.values, starts.values, ends.values
        place = tf.range(tf.size(pieces))
        rows = tf.cast(ids.value_rowids(), tf.int32)
        new_row = tf.concat([[True], rows[1:] != rows[:-1]], axis=0)[: tf.size(pieces)]
        gap = tf.concat([[True], begin[1:] > end[:-1]], axis=0)[: tf.size(pieces)]
        new_chunk = new_row | gap  # blanks separate chunks
        chunk = tf.cumsum(tf.cast(new_chunk, tf.int32)) - 1
        chunks = tf.reduce_max(tf.concat([chunk, [-1]], axis=0)) + 1

        punctuation = tf.gather(self._is_punctuation, pieces)
        inner = tf.where(punctuation, tf.int32.max, place)
        core_first = tf.math.unsorted_segment_min(inner, chunk, chunks)
        core_last = _largest(tf.where(punctuation, -1, place), chunk, chunks)
        core_last += self._abbreviation(
            place, chunk, chunks, core_first, core_last, begin, end, pieces
        )

        ideograph = tf.gather(self._is_ideograph, pieces)
        after_ideograph = tf.concat([[False], ideograph[:-1]], axis=0)[: tf.size(pieces)]
        outside = (place <= tf.gather(core_first, chunk)) | (place > tf.gather(core_last, chunk))
        return new_chunk | outside | ideograph | after_ideograph

    def _abbreviation(self, place, chunk, chunks, core_first, core_last, begin, end, pieces):
        """Return int32 [chunks], 1 where a chunk's core takes in the full stop behind it."""
        dot = tf.gather(self._is_dot, pieces)
        of_first, of_last = tf.gather(core_first, chunk), tf.gather(core_last, chunk)
        inner_dot = dot & (place > of_first) & (place < of_last)
        one_letter = (place == of_first) & (place == of_last) & (end - begin == 1)
        short = _largest(tf.cast(inner_dot | one_letter, tf.int32), chunk, chunks)
        dot_behind = _largest(tf.cast(dot & (place == of_last + 1), tf.int32), chunk, chunks)
        has_core = tf.cast(core_last >= 0, tf.int32)
        return tf.maximum(short, 0) * tf.maximum(dot_behind, 0) * has_core


def _largest(values, segments, count):
    return tf.math.unsorted_segment_max(values, segments, count)


def _marked(vocab: list[str], test: Callable[[str], bool]) -> tf.Tensor:
    """Mark the pieces of one character that passes a test: bool [V]."""
    return tf.constant([len(piece) == 1 and test(piece) for piece in vocab])
