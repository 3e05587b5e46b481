"""Texts in, answers out: what a loaded model says, without an export or a server.

    model = official_bert.load("all-MiniLM-L6-v2")
    vectors = model.embed(["A cat sleeps.", "A kitten naps."], normalize=True)
    vectors[0] @ vectors[1]                                   # their cosine
    official_bert.load("bert-base").fill_mask("Paris is the [MASK] of France.")["text"]

Rows of like length share a batch, so that little padding is computed. The weights are those that
the model has when it is asked. Lengths and truncation are those of training if the model's settings
hold them, as in serving.
"""

import dataclasses
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from official_bert import objectives
from official_bert.backend.compiled import compiled
from official_bert.backend.row_batches import MASKS, of_rows
from official_bert.checkpoints.finding import resolve
from official_bert.checkpoints.model_folder import LoadedModel
from official_bert.checkpoints.names import FINE_TUNED
from official_bert.checkpoints.sentence_vectors import (
    NORMALIZE,
    POOLINGS,
    SentenceVectors,
    normalized,
)
from official_bert.common.errors import UserError, check_choice
from official_bert.export import text_answers
from official_bert.export.settings import ServingSettings
from official_bert.export.text_answers import as_texts
from official_bert.extension import find

_POOLINGS = (*POOLINGS, "pooler")
NO_VOCABULARY = "the model came without a vocabulary: it reads token ids only"


def load(
    model: str | os.PathLike, revision: str | None = None, pickle: bool = False, **encoder_options
) -> "Model":
    """Load a model from a folder of any known kind, or by its name.

    A name is looked up in this order: a folder or checkpoint that lies here, a model of this
    package ("tiny-wikipedia"), a preset that the installed KerasHub lists ("bert_tiny_en_uncased"),
    the Hugging Face hub ("google-bert/bert-base-uncased", "bert-base-uncased"). The hub comes last,
    so that no name means another model without a network. "hf://OWNER/NAME" is the hub in any case,
    "NAME@REVISION" a name and its revision in one.

    The GELU form is what the format implies (see the importers); to choose another, import with
    `experiments.convert` first.

    Args:
      model: a model folder, the folder (or prefix) of a Google checkpoint, a Hugging Face folder, a
        KerasHub preset's folder, or a name.
      revision: of a model of the hub: branch, tag or commit.
      pickle: whether weights of the hub may come from a `pytorch_model.bin`, where it has no
        others. PyTorch reads it, without running its code, in a guarded process.
      **encoder_options: passed to `BertEncoder`, for example `remat=True`.

    Raises:
      UserError: nothing that can be read is there, or the hub cannot be asked.
    """
    return Model.from_loaded(resolve.load(model, revision, pickle, **encoder_options))


class Model(LoadedModel):
    """A loaded model whose methods answer texts."""

    @classmethod
    def from_loaded(cls, loaded: LoadedModel) -> "Model":
        return loaded if isinstance(loaded, cls) else cls(**vars(loaded))

    @overload
    def predict(  # type: ignore[overload-overlap]  # a text is a sequence of texts
        self, texts: str, pairs=..., batch_size: int = ..., max_length: int | None = ...
    ) -> dict[str, Any]: ...

    @overload
    def predict(
        self, texts: Sequence[str], pairs=..., batch_size: int = ..., max_length: int | None = ...
    ) -> list[dict[str, Any]]: ...

    def predict(self, texts, pairs=None, batch_size=32, max_length=None):
        """Return a fine-tuned model's answers to texts.

        Args:
          texts: a text, or a list of them: the texts of a classifier or a tagger, the questions of
            a span model, the contexts of multiple choice.
          pairs: the second texts of a classifier of pairs, the passages of a span model, or a list
            of choices for each context.
          batch_size: rows of a batch; answers do not depend on it.
          max_length: tokens of a row; by default as in training. Longer texts are cut, with a
            warning; passages and taggings are read in windows.

        Returns:
          A dictionary a text (for one text, one dictionary), by head: "label", "probabilities"
          {label: share}; "labels" (multi-label); "value" (regression); "answer", "start", "end"
          (characters), "probability"; "choice", "probabilities"; "words", a list of {"word",
          "label", "start", "end", "probability"}; "output", the text of a model that writes.

        Raises:
          UserError: the model has no fine-tuned head or no vocabulary, or a text is empty.
        """
        rows, one = as_texts(texts)
        pairs = [pairs] if one and pairs is not None else pairs
        if self.head in ("none", "pretraining"):
            raise UserError(
                f"the model has no fine-tuned head (its head is {self.head}): use {self.verb}, "
                "or train a head with experiments.finetune"
            )
        settings = self._settings(max_length)
        if self.head == "classification":
            found = self._classify(rows, pairs, settings, batch_size)
        elif self.head in FINE_TUNED:
            found = self._of_tokens(rows, pairs, settings, batch_size)
        else:
            found = self._of_extension(rows, pairs, settings, batch_size)
        return found[0] if one else found

    def embed(
        self,
        texts: str | Sequence[str],
        pooling: str | None = None,
        layer: int = -1,
        normalize: bool | None = None,
        batch_size: int = 32,
        max_length: int | None = None,
        prompt: str | None = None,
    ) -> np.ndarray:
        """Return a vector for each text.

        A folder of sentence-transformers says how its vectors are made (the attribute `vectors`;
        the import's report tells it). That is what is done where nothing else is asked for; other
        models give the mean.

        Args:
          texts: a text or a list of them.
          pooling: "mean" over all tokens, [CLS] and [SEP] too; "cls", the vector of [CLS] (of the
            last token in a left-to-right model); "max", "mean_sqrt_len_tokens", "weightedmean",
            "lasttoken" of sentence-transformers; "pooler", what the next-sentence head reads. Where
            it is given, the folder's further modules are left out.
          layer: which hidden state, 0 the embeddings and -1 the last layer; with any but the last
            the further modules are left out, too.
          normalize: make the vectors' length 1, so that their product is the cosine; None as the
            folder says.
          batch_size, max_length: as for `predict`.
          prompt: what is put before each text: the name of one of the folder's prompts, or a text;
            None for the folder's default.

        Returns:
          float32 [texts, H]; [H] for one text.

        Raises:
          UserError: an option is wrong, a text is empty, the model has no vocabulary, or its folder
            makes vectors in a way that is not implemented.
        """
        texts, one = as_texts(texts)
        if self.encoder is None:
            raise UserError(f"this model has no Transformer, so no vectors: use {self.verb}")
        if pooling is not None:
            check_choice("pooling", pooling, _POOLINGS)
        states = self.config.num_hidden_layers + 1
        if not -states <= layer < states:
            raise UserError(f"layer={layer}; the encoder has hidden states 0 to {states - 1}")
        own = self.vectors or SentenceVectors()
        how = own
        if pooling is not None or layer not in (-1, states - 1):
            poolings = (pooling or own.poolings[0],)
            how = dataclasses.replace(own, poolings=poolings, steps=(), refused="")
        if how.refused:
            raise UserError(f"{how.refused}; pooling='mean' (or another) is done all the same")
        if normalize is False:
            how = dataclasses.replace(how, steps=tuple(s for s in how.steps if s != NORMALIZE))
        prompt = own.prompts.get(own.prompt, "") if prompt is None else prompt
        prompt = own.prompts.get(prompt, prompt)
        settings, without = self._settings(max_length), prompt and not own.include_prompt
        of_prompt = 1 + len(self.tokenizer.encode(own.prepared("", prompt))) if without else 0

        def vectors(batch):
            from keras import ops

            outputs = self.encoder(batch)
            state, mask = ops.cast(outputs["hidden_states"][layer], "float32"), batch["input_mask"]
            if pooling == "pooler":
                vector = ops.cast(outputs["pooled_output"], "float32")
            elif pooling == "cls":
                vector = self.encoder.summary_token(state, mask)
            else:
                vector = how.pooled(state, mask, of_prompt)
            return {"vector": normalized(vector) if normalize else vector}

        rows = self._rows([own.prepared(text, prompt) for text in texts], None, settings)
        # The graph keeps the steps, so no others get their ids.
        key = ("embed", pooling, layer, normalize, of_prompt, how.poolings, *map(id, how.steps))
        found = np.stack([output["vector"] for output in self._run(key, vectors, rows, batch_size)])
        return found[0] if one else found

    @overload
    def fill_mask(  # type: ignore[overload-overlap]
        self, texts: str, top_k: int = ..., batch_size: int = ...
    ) -> dict[str, Any]: ...

    @overload
    def fill_mask(
        self, texts: Sequence[str], top_k: int = ..., batch_size: int = ...
    ) -> list[dict[str, Any]]: ...

    def fill_mask(self, texts, top_k=5, batch_size=32):
        """Return the likeliest words for each [MASK] of a text, by the masked language model.

        Args:
          texts: a text or a list of them, each with one "[MASK]" or more ("<mask>" where the
            vocabulary writes it so).
          top_k: words offered for each.
          batch_size: rows of a batch.

        Returns:
          A dictionary a text (for one text, one dictionary): "text", with the best word in each
          place; "masks", for each [MASK] a list of {"word", "probability"}, the best first. A word
          that starts with "##" continues the one before it.

        Raises:
          UserError: the model has no masked-LM head or reads from left to right, or a text has no
            [MASK] or is too long.
        """
        texts, one = as_texts(texts)
        if self.head != "pretraining":
            raise UserError(f"no masked-LM head (its head is {self.head}): use {self.verb}")
        if self.verb == "generate":
            raise UserError("a left-to-right model cannot fill [MASK]: use generate")
        if not objectives.fills_masks(self.settings):
            known = [objectives.parse_spec(one)[0] for one in self.settings["objectives"]]
            raise UserError(f"the model has no masked-LM head (its heads: {', '.join(known)})")
        if self.tokenizer is None:
            raise UserError(NO_VOCABULARY)
        answers = self._answers("masked_words", ServingSettings(top_k=top_k))

        def ask(rows):
            return self._run(("fill_mask", top_k), answers, rows, batch_size)

        found = text_answers.masked_words(self.tokenizer, ask, texts, self._longest)
        return found[0] if one else found

    def generate(self, texts="", length=64, temperature=0.0, **options):
        """Continue texts by a left-to-right language model.

        Args:
          texts: a text or a list of them; "" for a text from its beginning.
          length: tokens of a row at most, those of the text among them.
          temperature: 0 takes the likeliest token each time; otherwise tokens are drawn.
          **options: top_k, top_p and seed of the draws (`generation.sampling` of the extension);
            beams and length_penalty (`beam_search.search`).

        Returns: the text that follows, or a list of them.

        Raises:
          UserError: the model has no language-model head or does not read left to right, or a text
            is too long, or an option is impossible.
        """
        return find("verbs", "generate")(self, texts, length, temperature, **options)

    def _of_extension(self, texts, pairs, settings, batch_size):
        if pairs is not None:
            raise UserError("this model writes a text for each text: it takes no pairs")
        key, answers, readable = find("heads", self.head).answers(self.model)
        outputs = self._run(key, answers, self._rows(texts, None, settings), batch_size)
        return readable(self.tokenizer, outputs)

    def _classify(self, texts, pairs, settings, batch_size):
        pairs = pairs if pairs is None else as_texts(pairs)[0]
        answers = self._answers(self.head, settings)
        if getattr(self.model, "windows", ""):
            outputs = self._of_windows(answers, texts, pairs, batch_size)
        else:
            outputs = self._run("classify", answers, self._rows(texts, pairs, settings), batch_size)
        labels = list(settings.labels) or [str(i) for i in range(self.model.num_labels)]
        return text_answers.classes(outputs, self.model.problem, labels)

    def _of_windows(self, answers, texts, pairs, batch_size):
        """Return `answers` to texts that are read in windows."""
        from keras import ops

        def vectors(batch):
            return {"vector": self.model.vector(batch, self.encoder(batch))}

        settings = answers.settings
        settings.check_windows(self.tokenizer, pairs is not None)
        pooled, cut = text_answers.window_vectors(
            self.tokenizer, lambda rows: self._run("vectors", vectors, rows, batch_size),
            texts, pairs, settings, self.model.windows,
        )  # fmt: skip
        self._warn_of_cuts(cut, len(texts), settings, f" in {settings.windows} windows")
        found = {name: ops.convert_to_numpy(x) for name, x in answers.classes(pooled).items()}
        return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]

    def _of_tokens(self, texts, pairs, settings, batch_size):
        """Return the answers of span, multiple-choice and tagging heads."""
        pairs = text_answers.checked_pairs(self.head, texts, pairs)
        settings.check_for(self.head, self)
        answers = self._answers(self.head, settings)

        def outputs(batch):
            if self.head != "multiple_choice":
                return answers(batch)
            alone = {name: value[:, None] for name, value in batch.items()}  # of one choice each
            return {"score": self.model(alone)["logits"][:, 0]}

        def ask(rows):
            return self._run(self.head, outputs, rows, batch_size)

        if self.head == "tagging":
            return text_answers.taggings(self.tokenizer, ask, texts, settings)
        answer = text_answers.spans if self.head == "span" else text_answers.choices
        return answer(self.tokenizer, ask, texts, pairs, settings)

    def _answers(self, head: str, settings: ServingSettings):
        from official_bert.export.answers import Answers

        return Answers(self, head, settings)

    def _settings(self, max_length):
        if self.tokenizer is None:
            raise UserError(NO_VOCABULARY)
        return ServingSettings.from_loaded(self, max_seq_length=max_length)

    def _rows(self, texts, pairs, settings):
        """Return a row of `sequences.pack` for each text; warn where texts are cut."""
        rows = self.tokenizer.pack(texts, pairs, settings.max_seq_length, settings.truncation)
        self._warn_of_cuts(sum(row["truncated"] for row in rows), len(rows), settings)
        return rows

    def _warn_of_cuts(self, cut, count, settings, windows=""):
        if cut:
            warnings.warn(
                f"{cut} of {count} texts are longer than {settings.max_seq_length} tokens{windows} "
                f"and were cut ({settings.truncation} kept); max_length={self._longest} is the "
                "most",
                stacklevel=5,
            )

    @property
    def _longest(self) -> int:
        return self.config.max_position_embeddings

    def _run(self, key, function: Callable, rows: list[dict], batch_size: int) -> list[dict]:
        """Return the outputs of `function`, compiled, for each row."""
        call = self._compiled(key, function, with_masks=MASKS in rows[0])
        return of_rows(call, rows, batch_size, self.tokenizer.pad, self._longest)

    def _compiled(self, key, function, with_masks):
        """Compile a function: on TensorFlow once for all lengths, on JAX for a few."""
        import keras

        made = self.__dict__.setdefault("_graphs", {})
        if made.get(key, (None,))[0] is self.model:
            return made[key][1]
        if keras.backend.backend() != "tensorflow":
            made[key] = self.model, compiled(self.model, function)
        else:
            import tensorflow as tf

            names = ["input_ids", "input_mask", "segment_ids", *[MASKS] * with_masks]
            signature = {name: tf.TensorSpec([None, None], tf.int32) for name in names}
            graph = tf.function(function, input_signature=[signature], autograph=False)
            made[key] = self.model, graph
        return made[key][1]
