"""Served models: texts in, answers out, in one graph; the inputs and outputs of each head."""

import tensorflow as tf

from official_bert.export.packed_encoder import PackedAnswers
from official_bert.export.settings import ServingSettings
from official_bert.tokenization.graph import in_graph_packing as packing
from official_bert.tokenization.graph import in_graph_windows


def valid_utf8(texts):
    """Drop bytes that are not UTF-8 from strings of any shape, as Python's "ignore" does."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


class ServedModel(tf.Module):
    """A model that answers texts and token ids.

    A head is a subclass. It has `text_inputs`, {input name: shape} of string tensors, and overrides
    `answer_ids(packed)`, which returns a dictionary of dense tensors, or `_answer_texts(**texts)`.
    Where a text can be too long, the answer to texts has `truncated`, bool [B]: whether a part of
    the row's text was not read.

    Args:
      loaded: `LoadedModel`, with the head that the subclass serves.
      tokenizer: `TextsToPieces` of the model's vocabulary, such as `InGraphTokenizer`.
      settings: lengths, labels and so on.
    """

    head = ""
    text_inputs: dict[str, list] = {"text": [None]}
    ids_rank = 2  # of the inputs of the `token_ids` signature

    def __init__(self, loaded, tokenizer, settings: ServingSettings):
        super().__init__(name=self.head)
        # tf.Module would track the tokeniser and save its functions too; plain functions hide it.
        # The first maps strings [B] to ragged int32 ids [B, (tokens)]; the second returns `Pieces`.
        self.tokenize = lambda texts: tokenizer(texts)
        self.tokenize_with_offsets = lambda texts: tokenizer.tokenize_with_offsets(texts)
        self.resources = tokenizer.resources
        self.settings, self.own = settings, loaded.tokenizer
        self.cls_id, self.sep_id = self.own.cls_id, self.own.sep_id
        self.between = tuple(self.own.between)
        self.answers = self.computed(loaded)
        self.parts = self.answers.parts

    def computed(self, loaded):
        """Return the `Answers` to compute with, which hold copies of the weights."""
        return PackedAnswers(loaded, self.head, self.settings, self.settings.precision)

    def answer_texts(self, *texts, **named) -> dict[str, tf.Tensor]:
        """Answer strings; bytes that are not UTF-8 are dropped.

        Places in the answer count the characters that are left.
        """
        named |= dict(zip(self.text_inputs, texts, strict=False))
        return self._answer_texts(**{name: valid_utf8(text) for name, text in named.items()})

    def _answer_texts(self, **texts) -> dict[str, tf.Tensor]:
        packed, cut = self.pack_texts([self.tokenize(texts[name]) for name in self.text_inputs])
        return {**self.answer_ids(packed), "truncated": cut}

    def answer_ids(self, packed: packing.Packed) -> dict[str, tf.Tensor]:
        return self.answers.answer_packed(packed)[0]

    def answer_padded_ids(self, input_ids, input_mask, segment_ids) -> dict[str, tf.Tensor]:
        """Answer token ids, int32 [B, L] each."""
        packed = self._checked(packing.from_padded(input_ids, input_mask, segment_ids))
        return self.answer_ids(packed)

    def _to_padded(self, packed, input_mask) -> dict[str, tf.Tensor]:
        """Return the outputs of tokens in rows as long as the mask's, zero at padding."""
        answer, rows = self.answers.answer_packed(packed)
        columns = {name: tf.boolean_mask(x, rows.mask) for name, x in answer.items()}
        return {name: packing.to_padded(x, input_mask) for name, x in columns.items()}

    def extra_signatures(self) -> dict:
        """Return {signature: (function, {input name: TensorSpec})} beside the three."""
        return {}

    def pack_texts(self, texts: list) -> tuple[packing.Packed, tf.Tensor]:
        """Pack the ragged ids of a text or a pair; return the rows, and bool [B], which were
        cut."""
        settings = self.settings
        packed = packing.of_texts(texts, self.own, settings.max_seq_length, settings.truncation)
        return packed, packing.was_cut(packed, texts, self.between)

    def _checked(self, packed):
        """Refuse ids that the tables lack: on a GPU they would silently be read as zeros."""
        config = self.answers.config
        for name, values, limit in (
            ("input_ids", packed.ids, config.vocab_size),
            # A successor with one row for all segments, or none, is asked about pairs as well.
            ("segment_ids", packed.segments, max(config.type_vocab_size, 2)),
            ("length", packed.positions, config.max_position_embeddings),
        ):
            fits = tf.reduce_all((values >= 0) & (values < limit))
            tf.debugging.Assert(fits, [f"{name} must be below {limit} and not negative"])
        return packed


class ServedClassifier(ServedModel):
    """Classification and regression of a text or a pair of texts; B texts and C labels.

    single_label: `labels` string [B], `probabilities` float32 [B, C], `logits` float32 [B, C].
    multi_label: the same, but `labels` [B, C'] lists those with a probability above one half, the
    shorter rows filled with "".
    regression: `values` float32 [B].

    Answers to texts also have `truncated` bool [B]. A model that pools windows reads texts in
    windows, and takes token ids [B, W, L]; a window whose mask is zero does not count.
    """

    head = "classification"

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        self.problem, self.pooling = loaded.model.problem, getattr(loaded.model, "windows", "")
        self.ids_rank = 3 if self.pooling else 2
        self.text_inputs = {name: [None] for name in settings.input_fields or ("text",)}
        if self.problem != "regression":
            self.labels = tf.constant(settings.labels, tf.string)

    def _answer_texts(self, **texts):
        if not self.pooling:
            return super()._answer_texts(**texts)
        ids = [self.tokenize(texts[name]) for name in self.text_inputs]
        settings, between = self.settings, self.between if len(ids) == 2 else ()
        rows, text, cut = in_graph_windows.pack_windows(
            ids,
            settings.max_seq_length - 2 - len(between),
            settings.windows,
            settings.window_overlap,
            settings.truncation,
        )
        packed = packing.assemble(rows, self.cls_id, self.sep_id, between)
        return {**self.answer_ids(packed, text), "truncated": cut}

    def answer_padded_ids(self, input_ids, input_mask, segment_ids):
        if not self.pooling:
            return super().answer_padded_ids(input_ids, input_mask, segment_ids)
        real = tf.reduce_any(input_mask > 0, axis=2)  # [B, W]
        filled = tf.reduce_all(tf.reduce_any(real, axis=1))
        tf.debugging.Assert(filled, ["input_mask: a text must be of one window or more"])
        rows = [tf.boolean_mask(x, real) for x in (input_ids, input_mask, segment_ids)]
        packed = self._checked(packing.from_padded(*rows))
        return self.answer_ids(packed, tf.cast(tf.where(real)[:, 0], tf.int32))

    def answer_ids(self, packed, text=None):
        """Answer packed rows; `text`, int32 [rows], is the text that each window belongs to."""
        pool = {}
        if text is not None:
            pool["pool"] = lambda vectors: in_graph_windows.pooled(vectors, text, self.pooling)
        answer, _ = self.answers.answer_packed(packed, **pool)
        if self.problem == "regression":
            return answer
        if self.problem == "single_label":
            labels = tf.gather(self.labels, tf.argmax(answer["logits"], axis=1))
        else:
            chosen = tf.where(answer["probabilities"] > 0.5)
            count = tf.shape(answer["logits"], tf.int64)[0]
            labels = tf.RaggedTensor.from_value_rowids(
                tf.gather(self.labels, chosen[:, 1]), chosen[:, 0], count
            ).to_tensor("")
        return {"labels": labels, **answer}


class ServedMultipleChoice(ServedModel):
    """Multiple choice (section 4.4): a row for each ending, a softmax over their scores.

    Inputs `context` [B] and `choices` [B, C]; outputs `choice` int32 [B], `probabilities` and
    `logits` float32 [B, C], and for texts `truncated` bool [B], whether a choice was cut. A choice
    is the whole second text, such as a started sentence with one of its endings.
    """

    head = "multiple_choice"
    text_inputs = {"context": [None], "choices": [None, None]}
    ids_rank = 3  # [B, C, L]

    def _answer_texts(self, context, choices):
        shape = tf.shape(choices)
        each = tf.repeat(context, tf.fill([shape[0]], shape[1]))  # [B * C]
        first, second = self.tokenize(each), self.tokenize(tf.reshape(choices, [-1]))
        packed, cut = self.pack_texts([first, second])
        answer = self._answer(packed, shape[1])
        return {**answer, "truncated": tf.reduce_any(tf.reshape(cut, shape), axis=1)}

    def answer_padded_ids(self, input_ids, input_mask, segment_ids):
        shape = tf.shape(input_ids)
        flat = [tf.reshape(x, [-1, shape[2]]) for x in (input_ids, input_mask, segment_ids)]
        return self._answer(self._checked(packing.from_padded(*flat)), shape[1])

    def _answer(self, packed, choices):
        answer, _ = self.answers.answer_packed(packed, choices=choices)
        choice = tf.argmax(answer["logits"], axis=1, output_type=tf.int32)
        return {"choice": choice, **answer}


class ServedEmbedding(ServedModel):
    """`embedding` float32 [B, D]: the vector of [CLS], or the mean over all tokens of the text.
    For texts also `truncated` bool [B].

    D is H, or 4H for "concat_last_four". The mean counts [CLS] and [SEP], as
    sentence-transformers does.
    """

    head = "embedding"


class ServedFeatures(ServedModel):
    """A vector for each token, padded to the longest row L (section 5.3).

    `features` float32 [B, L, D], `pooled_output` float32 [B, H], `input_ids` int32 [B, L], and
    for texts `start` and `end` int32 [B, L], the characters of each token, -1 at [CLS], [SEP] and
    padding, and `truncated` bool [B].
    """

    head = "features"

    def _answer_texts(self, text):
        ids, starts, ends = self.tokenize_with_offsets(text)
        packed, cut = self.pack_texts([ids])
        answer = {**self.answer_ids(packed), "truncated": cut}
        rows = packing.PackedRows(packed)
        for name, values in (("start", starts), ("end", ends)):
            kept = tf.minimum(packing.token_counts(values), self.settings.max_seq_length - 2)
            values = packing.cut(values, kept, self.settings.truncation)
            offsets = packing.assemble([values], -1, -1)
            answer[name] = tf.where(rows.mask, rows.spread(offsets.ids), -1)
        return answer

    def answer_ids(self, packed):
        answer, rows = self.answers.answer_packed(packed)
        return {
            **answer,
            "input_ids": tf.where(rows.mask, rows.spread(packed.ids), self.own.pad_id),
        }


class ServedMaskedWords(ServedModel):
    """The masked language model of section 3.1 at work.

    Outputs, M being the most masks of a text of the batch and k `top_k`:

    `words` string [B, M, k], best first; `probabilities` float32 [B, M, k]; `token_ids` int32
    [B, M, k]; and for texts `start` and `end` int32 [B, M], the characters of each "[MASK]" (or of
    the vocabulary's own mask), and `truncated` bool [B]. Rows with fewer masks are filled with "",
    0, 0 and -1. A mask that is cut off with the end of a text is not answered. A word that starts
    with "##" continues the one before it.
    """

    head = "masked_words"

    def __init__(self, loaded, tokenizer, settings):
        super().__init__(loaded, tokenizer, settings)
        self.mask, self.mask_id = loaded.tokenizer.special.mask, loaded.tokenizer.mask_id
        self.vocabulary = tf.constant(loaded.tokenizer.readable, tf.string)

    def _answer_texts(self, text):
        # The tokeniser reads "[MASK]" as brackets and a word, as in training. So the text between
        # masks is tokenised, and the masks are put in afterwards.
        pieces = tf.strings.split(text, self.mask)  # [B, (masks + 1)]
        last = tf.cast(pieces.row_splits[1:] - 1, tf.int32)  # a row's last piece: no mask after it
        follows = tf.tensor_scatter_nd_update(
            tf.ones_like(pieces.values, tf.int32), last[:, None], tf.zeros_like(last)
        )
        # A blank before a mask belongs to the word that it hides.
        stripped = tf.strings.regex_replace(pieces.values, r"\s+$", "")
        ids = self.tokenize(tf.where(follows > 0, stripped, pieces.values))
        masks = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(follows)], self.mask_id),
            tf.cast(follows, ids.row_splits.dtype),
            validate=False,
        )
        masked = tf.concat([ids, masks], axis=1)  # each piece, and the mask behind it
        per_row = tf.math.segment_sum(masked.row_lengths(), pieces.value_rowids())
        joined = tf.RaggedTensor.from_row_lengths(masked.values, per_row, validate=False)
        packed, cut = self.pack_texts([joined])
        answer = self.answer_ids(packed)
        return {**answer, **self._offsets(pieces, answer["words"]), "truncated": cut}

    def answer_ids(self, packed):
        hidden = self.answers.encoder.encode(packed)
        places = tf.cast(tf.where(packed.ids == self.mask_id)[:, 0], tf.int32)  # [masks]
        row_ids = tf.repeat(tf.range(tf.size(packed.row_lengths)), packed.row_lengths)
        probabilities, ids = (
            tf.squeeze(best, 0) for best in self.answers.best_words(tf.gather(hidden, places)[None])
        )
        count = probabilities.shape[1]

        def rows(values, filling):
            ragged = tf.RaggedTensor.from_value_rowids(
                values, tf.gather(row_ids, places), tf.size(packed.row_lengths), validate=False
            )
            return ragged.to_tensor(filling, shape=[None, None, count])

        return {
            "words": rows(tf.gather(self.vocabulary, ids), ""),
            "probabilities": rows(probabilities, 0.0),
            "token_ids": rows(ids, 0),
        }

    def _offsets(self, pieces, words):
        """Return the characters of the masks that are answered, int32 [B, M] each."""
        characters = tf.strings.length(pieces.values, unit="UTF8_CHAR")
        ends = tf.cumsum(pieces.with_values(characters + len(self.mask)).to_tensor(0), axis=1)
        ends = ends[:, : tf.shape(words)[1]]
        answered = words[:, :, 0] != ""
        return {
            "start": tf.where(answered, ends - len(self.mask), -1),
            "end": tf.where(answered, ends, -1),
        }
