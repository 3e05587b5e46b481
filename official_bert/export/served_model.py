"""Common parts of all exported heads: the encoder, the tokeniser, the labels, the inputs."""

import tensorflow as tf

from official_bert import window_pooling
from official_bert.export import packing
from official_bert.export.packed_encoder import PackedEncoder
from official_bert.export.settings import ServingSettings


def valid_utf8(texts):
    """Strings of any shape as Python's `bytes.decode("utf-8", "ignore")` reads them."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


class ServedModel(tf.Module):
    """A model that answers texts and token ids. A head is a subclass with three things:

    `text_inputs`, {input name: shape} of string tensors; `_answer_texts(**texts)` and
    `answer_ids(packed)`, which return dictionaries of dense tensors. Where a text can be too long,
    the answer to texts has `truncated` bool [B]: a part of the row's text was not read.

    Args:
      loaded: `LoadedModel`, with the head that the subclass serves.
      tokenizer: `InGraphTokenizer`, or that of another kind, of the model's vocabulary.
      settings: lengths, labels and so on.
    """

    kind = ""
    text_inputs: dict[str, list]

    def __init__(self, loaded, tokenizer, settings: ServingSettings):
        super().__init__(name=self.kind)
        # Functions hide what tf.Module would otherwise track and save with functions of its own.
        self._tokenize = lambda texts: tokenizer(texts)
        self._tokenize_with_offsets = lambda texts: tokenizer.tokenize_with_offsets(texts)
        self.settings = settings
        self.encoder = PackedEncoder(loaded.encoder, settings.precision)
        known = loaded.tokenizer
        self.pad_id, self.cls_id, self.sep_id = known.pad_id, known.cls_id, known.sep_id
        self.between = tuple(known.between)
        self._concat_pooling = getattr(loaded.model, "concat_pooling", False)
        self._bilstm = None
        if getattr(loaded.model, "bilstm", None) is not None:
            layer = loaded.model.bilstm
            # Tracing a tracked Keras layer again would fail; the variables it reads are kept here.
            self._bilstm = lambda sequence, mask: layer(sequence, mask)
            self.bilstm_variables = [weight.value for weight in layer.variables]

    def answer_texts(self, *texts, **named) -> dict[str, tf.Tensor]:
        """Answers strings; bytes that are no UTF-8 are dropped, and places in the answer count the
        characters of what is left."""
        named |= dict(zip(self.text_inputs, texts, strict=False))
        return self._answer_texts(**{name: valid_utf8(text) for name, text in named.items()})

    def _answer_texts(self, **texts) -> dict[str, tf.Tensor]:
        raise NotImplementedError

    def answer_ids(self, packed: packing.Packed) -> dict[str, tf.Tensor]:
        raise NotImplementedError

    def answer_padded_ids(self, input_ids, input_mask, segment_ids) -> dict[str, tf.Tensor]:
        """Answers int32 [B, L] each."""
        packed = self._checked(packing.from_padded(input_ids, input_mask, segment_ids))
        return self.answer_ids(packed)

    def extra_signatures(self) -> dict:
        """{signature: (function, {input name: TensorSpec})}, what a head has beside the three."""
        return {}

    @property
    def ids_rank(self) -> int:
        """Dimensions of the inputs of the `token_ids` signature."""
        return 2

    def tokenize(self, texts):
        """Strings [B] -> ragged int32 ids [B, (tokens)]."""
        return self._tokenize(texts)

    def tokenize_with_offsets(self, texts):
        """Strings [B] -> `ids`, `starts`, `ends`: ragged int32 [B, (tokens)]."""
        return self._tokenize_with_offsets(texts)

    def pack_single(self, ids) -> packing.Packed:
        settings = self.settings
        return packing.single(
            ids, self.cls_id, self.sep_id, settings.max_seq_length, settings.truncation
        )

    def pack_pair(self, first, second) -> packing.Packed:
        settings = self.settings
        return packing.pair(
            first,
            second,
            self.cls_id,
            self.sep_id,
            settings.max_seq_length,
            settings.truncation,
            self.between,
        )

    def pack_texts(self, texts: list) -> tuple[packing.Packed, tf.Tensor]:
        """Ragged ids of one text or of a pair; the packed rows, and bool [B], which were cut."""
        packed = self.pack_single(*texts) if len(texts) == 1 else self.pack_pair(*texts)
        return packed, packing.was_cut(packed, texts, self.between)

    def sequence_output(self, packed):
        """float32 [N, H]: the last layer, or what the BiLSTM of Table 5 makes of it."""
        sequence = self.encoder.encode(packed)
        if self._bilstm is None:
            return sequence
        rows = packing.Rows(packed)
        read = self._bilstm(rows.spread(sequence), tf.cast(rows.mask, tf.int32))
        return rows.collect(tf.reshape(read, [-1, tf.shape(read)[-1]]))

    def summary(self, packed):
        """float32 [B, H], [B, 3 H] with concat pooling: the vector that classifiers read."""
        sequence = self.sequence_output(packed)
        if self._bilstm is None:
            vector = tf.cast(self.encoder.pooled(sequence, packed), tf.float32)
        else:
            vector = self.encoder.summary_token(sequence, packed)
        if not self._concat_pooling:
            return vector
        rows = packing.Rows(packed)
        spread = tf.cast(rows.spread(sequence), tf.float32)
        return window_pooling.concat(vector, spread, rows.mask)

    def _checked(self, packed):
        """Refuses ids that the tables do not have: on a GPU they would read zeros silently."""
        config = self.encoder.config
        for name, values, limit in (
            ("input_ids", packed.ids, config.vocab_size),
            # A successor with one row for all segments, or none, is asked about pairs as well.
            ("segment_ids", packed.segments, max(config.type_vocab_size, 2)),
            ("length", packed.positions, config.max_position_embeddings),
        ):
            fits = tf.reduce_all((values >= 0) & (values < limit))
            tf.debugging.Assert(fits, [f"{name} must be below {limit} and not negative"])
        return packed
