"""Unigrams of words as TensorFlow operations; equal to a `ForeignTokenizer` of XLM-RoBERTa's kind.

Characters are replaced and words divided by tables of the library's own answers, as for foreign
WordPieces; tensorflow-text's SentencepieceTokenizer cuts each word, with a blank before it.

Dimensions in comments: B texts, C characters, W words, P pieces.
"""

import struct

import tensorflow as tf
import tensorflow_text as tf_text

from experiments.beyond.sentence_piece.charsmap import Charsmap
from experiments.beyond.sentence_piece.unigrams import BLANK, UNKNOWN
from official_bert.common.errors import UserError
from official_bert.common.json_files import shorten
from official_bert.common.protocol_buffers import field
from official_bert.tokenization.graph import foreign_tables
from official_bert.tokenization.graph.added_tokens import AddedTokens
from official_bert.tokenization.graph.characters import PagedTable, changes, utf8_sizes
from official_bert.tokenization.graph.foreign_tables import ADDED
from official_bert.tokenization.graph.in_graph import TextsToPieces, pieces_of
from official_bert.tokenization.graph.in_graph_foreign import Normalizer, words_of
from official_bert.tokenization.library import tokenizer_json
from official_bert.tokenization.library.foreign import ForeignTokenizer

# Two cuts of a word often have the same score ("0" "00", "00" "0"), and rounding must not decide
# between them: float32 adds such multiples up to 1024 exactly, as the library float64.
_SCORE_STEP = 2.0**-14


class InGraphUnigrams(TextsToPieces):
    """Maps texts to ids; bytes that are not UTF-8 are ignored."""

    def __init__(self, tokenizer: ForeignTokenizer):
        """Build the tables (seconds).

        Raises:
          UserError: a graph cannot compute a part of the tokeniser; the message names it.
        """
        super().__init__(name="in_graph_unigrams")
        contents = tokenizer.contents
        _check(tokenizer)
        words = {**contents, "pre_tokenizer": {"type": "WhitespaceSplit"}}
        self._steps: list = []
        waiting: list = []
        for step in [*tokenizer_json.steps(contents, "normalizer"), {"type": "end"}]:
            if step["type"] in ("Precompiled", "end"):
                sequence = {"type": "Sequence", "normalizers": waiting}
                found = foreign_tables.normalizer_steps({**words, "normalizer": sequence})
                self._steps += map(Normalizer, found)
                waiting = []
                if step["type"] == "Precompiled":
                    self._steps.append(Charsmap(step))
            else:
                waiting.append(step)
        self._kind = PagedTable(foreign_tables.word_kinds(words))
        self._added = AddedTokens(tokenizer, normalized=False)
        self._added_later = AddedTokens(tokenizer, normalized=True)
        known = {char for piece, _ in contents["model"]["vocab"] for char in piece}
        # Stands for an added token.
        self._unseen = next(code for code in range(0x10FFFF, 0, -1) if chr(code) not in known)
        self._model = tf_text.SentencepieceTokenizer(_model(contents["model"]), out_type=tf.int32)
        self.resources = (self._model,)

    def _pieces(self, texts):
        added = self._added, self._added_later
        characters, word, rows = words_of(texts, added, self._steps, self._kind)
        # Before each word stands a blank, with the place of its first character.
        is_token = characters.points >= ADDED
        begins = changes(word, filling=-1) & ~is_token
        source = tf.repeat(tf.range(tf.size(word)), 1 + tf.cast(begins, tf.int32))
        is_blank = tf.concat([source[1:] == source[:-1], [False]], 0)[: tf.size(source)]
        characters, word = characters.take(source), tf.gather(word, source)
        points = tf.where(tf.gather(is_token, source), self._unseen, characters.points)
        points = tf.where(is_blank, ord(BLANK), points)
        spelt = tf.RaggedTensor.from_value_rowids(
            points, word, nrows=tf.size(rows), validate=False
        )  # [W, (characters)]
        spelt = tf.strings.unicode_encode(spelt, "UTF-8")
        # [W, (pieces)], in bytes of the words
        ids, starts, ends = self._model.tokenize_with_offsets(spelt)
        word_of_piece = ids.value_rowids()
        sizes = tf.strings.length(spelt)
        before = tf.gather(tf.cumsum(sizes, exclusive=True), word_of_piece)  # [P]
        sizes = utf8_sizes(points)
        character = tf.repeat(tf.range(tf.size(sizes)), sizes)  # [bytes]
        first = tf.gather(character, before + tf.cast(starts.values, tf.int32))
        last = tf.gather(character, before + tf.cast(ends.values, tf.int32) - 1)
        found = tf.gather(characters.points, first)
        ids = self._added.ids_or(ids.values, found)
        rows = tf.gather(rows, word_of_piece)
        places = tf.gather(characters.starts, first), tf.gather(characters.ends, last)
        return pieces_of(tf.size(texts), rows, ids, *places)


def _check(tokenizer: ForeignTokenizer) -> None:
    contents, model = tokenizer.contents, tokenizer.contents["model"]
    cuts = tokenizer_json.steps(contents, "pre_tokenizer")
    expected = {"replacement": BLANK, "prepend_scheme": "always", "split": True}
    normalizer = tokenizer_json.part("normalizer", contents.get("normalizer"))
    told = ""
    if [cut["type"] for cut in cuts] != ["WhitespaceSplit", "Metaspace"] or any(
        cuts[1].get(name) != value for name, value in expected.items()
    ):
        told = f"pre_tokenizer {shorten(contents.get('pre_tokenizer'))}"
    elif normalizer is None or BLANK in normalizer.normalize_str(f"a{BLANK}a"):
        told = f"normalizer, which keeps {BLANK}"
    elif model.get("byte_fallback"):
        told = "model, which spells in bytes what is unknown"
    elif model.get("unk_id") not in {token["id"] for token in tokenizer.added_tokens}:
        told = "model, whose piece for what is unknown is not an added token"
    elif len({piece for piece, _ in model["vocab"]} - {""}) < len(model["vocab"]):
        told = "model with a piece that is empty or stands twice"
    if told:
        raise UserError(
            f"a TensorFlow graph cannot compute this tokeniser's {told}: export token ids instead "
            "(experiments.export --format=onnx)"
        )


def _model(model) -> bytes:
    """Return a SentencePiece model with these pieces, which takes a text as it is."""
    written = []
    for index, (piece, score) in enumerate(model["vocab"]):
        score = round(score / _SCORE_STEP) * _SCORE_STEP
        content = field(1, piece.encode()) + b"\x15" + struct.pack("<f", score)
        kind = b"\x18" + bytes([UNKNOWN]) if index == model["unk_id"] else b""
        written.append(field(1, content + kind))
    as_it_is = b"".join(bytes([number << 3, 0]) for number in (3, 4, 5))
    return b"".join([*written, field(3, as_it_is)])
