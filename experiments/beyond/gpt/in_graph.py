"""OpenAI GPT's tokeniser as TensorFlow operations, for SavedModels; equal to `WordEndTokenizer`.

Its words are those of BERT. Dimension in comments: C characters.
"""

import numpy as np
import tensorflow as tf

from experiments.beyond.byte_pair.in_graph import Merges
from experiments.beyond.gpt.word_ends import END, WordEndTokenizer
from official_bert.tokenization import reference
from official_bert.tokenization.graph.characters import PagedTable
from official_bert.tokenization.graph.code_points import CODE_POINTS
from official_bert.tokenization.graph.in_graph import BasicWords, TextsToPieces, pieces_of


class InGraphWordEnds(TextsToPieces):
    """Texts to ids. Bytes that are not UTF-8 are ignored."""

    def __init__(self, tokenizer: WordEndTokenizer):
        super().__init__(name="in_graph_word_ends")
        self._words = BasicWords(reference.Rules())
        self._merge = Merges(tokenizer.vocab, tokenizer.merges)
        inside, last = np.full((2, CODE_POINTS), tokenizer.unk_id)
        spelt = [piece.removesuffix(END) for piece in tokenizer.vocab]
        for index, (piece, text) in enumerate(zip(tokenizer.vocab, spelt, strict=True)):
            if len(text) == 1:
                (inside if piece == text else last)[ord(text)] = index
        self._inside, self._last = PagedTable(inside), PagedTable(last)
        lengths = np.array([len(text) for text in spelt], np.int32)
        lengths[tokenizer.unk_id] = 1  # stands for one character
        self._lengths = tf.constant(lengths)

    def _pieces(self, texts):
        characters, word, _ = self._words.split(texts)
        ends_word = tf.concat([word[1:] != word[:-1], [True]], 0)[: tf.size(word)]
        points = characters.points
        ids = self._merge(tf.where(ends_word, self._last(points), self._inside(points)), word)
        piece = tf.repeat(tf.range(tf.size(ids)), tf.gather(self._lengths, ids))  # [C]
        row = tf.math.segment_min(characters.rows, piece)
        starts = tf.math.segment_min(characters.starts, piece)
        ends = tf.math.segment_max(characters.ends, piece)
        return pieces_of(tf.size(texts), row, ids, starts, ends)
