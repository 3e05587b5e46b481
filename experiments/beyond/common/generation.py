"""Text from a model that reads left to right, token by token: greedy, drawn, or by beams.

A step reads one token a row and gives the scores of the next; keys and values of the tokens before
are kept, so that each is computed once. `decode` asks no more of a step, whatever model is behind
it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from experiments.beyond.common.beam_search import search
from experiments.beyond.common.draws import draw
from experiments.beyond.common.layers import attend
from experiments.beyond.common.shape import not_a_transformer
from official_bert.backend.compiled import jitted
from official_bert.common.errors import UserError
from official_bert.layers import bias_of
from official_bert.randomness import make_seed


class Kept:
    """Keys and values of a layer's tokens, in arrays that are as long as the text may become.

    Args:
      keys: [B, A, D, T].
      values: [B, A, T, D].
      place: int32 scalar, where the tokens that are read stand.
    """

    def __init__(self, keys, values, place):
        self.keys, self.values, self.place = keys, values, place

    def with_those_before(self, key, value):
        """Keep [B, A, D, 1] and [B, A, 1, D]; return all keys and values, zeros behind them."""
        self.keys = ops.slice_update(self.keys, (0, 0, 0, self.place), key)
        self.values = ops.slice_update(self.values, (0, 0, self.place, 0), value)
        return self.keys, self.values


def nothing_kept(encoder, rows, length: int) -> list:
    """Return an empty key-value cache for each layer: `Kept` of zeros."""
    config = encoder.config
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    shapes = (rows, heads, width, length), (rows, heads, length, width)
    layers = range(config.num_hidden_layers)
    return [[ops.zeros(shape, encoder.compute_dtype) for shape in shapes] for _ in layers]


class NextToken:
    """The step of a left-to-right encoder with a language-model head.

    Args:
      encoder: BertEncoder.
      head: `MaskedLMHead`.
      entries: of the vocabulary, where the table has more rows; None: all.

    Raises:
      UserError: the encoder sees what comes next, or has no attention.
    """

    def __init__(self, encoder, head, entries: int | None = None):
        config = encoder.config
        if config.attention_direction != "left_to_right" or not_a_transformer(config):
            raise UserError(
                "text is written by Transformers that read left to right; this encoder is "
                f"{not_a_transformer(config) or config.attention_direction}"
            )
        self.encoder, self.head, self.entries = encoder, head, entries

    def begin(self, rows: int, length: int) -> list:
        """Return an empty key-value cache."""
        return nothing_kept(self.encoder, rows, length)

    def __call__(self, tokens, place, state):
        """Read the tokens that stand at a place of the rows.

        Args:
          tokens: int32 [B].
          place: int32 scalar, from 0.
          state: of `begin`, or of the call before.

        Returns: (float32 [B, V] scores of what comes next, state).
        """
        encoder, after = self.encoder, []
        ids, length = tokens[:, None], state[0][0].shape[-1]
        place = ops.cast(place, "int32")
        x = encoder.embeddings(ids, ops.zeros_like(ids), places=place[None])
        x = encoder.transformer.widened(x)
        bias = bias_of(ops.arange(length)[None, None, None, :] <= place, x.dtype)
        for layer, (keys, values) in enumerate(state):
            kept = Kept(keys, values, place)
            block = encoder.block_of(layer)
            x = block.feed_forward(attend(block, x, bias, kept))
            after.append([kept.keys, kept.values])
        x = encoder.last_norm(x) if encoder.last_norm else x
        scores = self.head(x, encoder.embeddings.word_embeddings)[:, 0, : self.entries]
        return scores, after

    def compiled(self) -> Callable:
        """Compile the step by TensorFlow or JAX; a state that was given is used up."""
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            return tf.function(self.__call__, autograph=False)
        if keras.backend.backend() == "jax":
            variables = [*self.encoder.variables, *self.head.variables]
            return jitted(variables, self.__call__, donated=(2,))
        return self


def prompt(tokenizer, text: str) -> list[int]:
    """Return the ids of a prompt behind the token that begins a text, unless it also ends one
    (GPT-2)."""
    shared = tokenizer.cls_id == tokenizer.sep_id
    return [*([] if shared else [tokenizer.cls_id]), *tokenizer.encode(text)] or [tokenizer.cls_id]


def decode(
    step: Callable,
    state: Any,
    prompts: Sequence[Sequence[int]],
    length: int,
    choose: Callable,
    end: int,
) -> list[list[int]]:
    """Continue each prompt until the token that ends a text, or to a length.

    A prompt is read as it would be written, a token a step, so rows need no padding.

    Args:
      step: function of (int32 [B], place, state) -> (scores [B, V], state), as `NextToken`.
      state: of before the first token.
      prompts: ids, at least one a row.
      length: of a row, prompt and all, at most.
      choose: function of (scores [B, V], number of the step) -> int32 [B].
      end: the token that ends a text; it is not a part of what is returned.

    Returns: what follows each prompt.
    """
    written: list[list[int]] = [[] for _ in prompts]
    ended = np.array([len(prompt) >= length for prompt in prompts])
    tokens = np.array([prompt[0] for prompt in prompts], "int32")
    for place in range(length - 1):
        if ended.all():
            break
        scores, state = step(tokens, np.array(place, "int32"), state)
        tokens = np.array(ops.convert_to_numpy(choose(scores, place)), "int32")
        for row, prompt in enumerate(prompts):
            if place + 1 < len(prompt):
                tokens[row] = prompt[place + 1]
            elif not ended[row]:
                ended[row] = tokens[row] == end
                written[row] += [] if ended[row] else [int(tokens[row])]
    return written


def greedy(scores, place):
    """Return the likeliest token."""
    return ops.cast(ops.argmax(scores, axis=-1), "int32")


def sampling(temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, seed: int = 0):
    """Return a `choose` of `decode` that draws by probability.

    The order is that of `transformers`: temperature, `top_k`, then `top_p` of what is left.

    Args:
      temperature: below 1 the likely becomes likelier.
      top_k: of so many likeliest tokens only; 0: of all (Fan et al. 2018).
      top_p: of the fewest likeliest tokens whose probabilities sum to this (Holtzman et al. 2020).
      seed: of all draws, of 32 bits.

    Raises:
      UserError: one of them is impossible.
    """
    if not 0 < temperature < np.inf or top_k < 0 or not 0 < top_p <= 1:
        raise UserError(
            f"temperature {temperature} must be above 0 and finite, top_k {top_k} not below, "
            f"top_p {top_p} above 0 and at most 1"
        )

    if not -(2**31) <= seed < 2**31:
        raise UserError(f"seed {seed} has more than 32 bits")

    def choose(scores, place):
        return draw(left_to_draw(scores, temperature, top_k, top_p), make_seed(seed, place))

    return choose


def left_to_draw(scores, temperature: float, top_k: int, top_p: float):
    """Return float32 [B, V]: scores by temperature, -1e9 where `sampling` never draws."""
    scores = ops.cast(scores, "float32")
    scores = (scores - ops.max(scores, axis=-1, keepdims=True)) / temperature
    if top_k:
        best = ops.top_k(scores, min(top_k, scores.shape[-1]))[0]
        scores = ops.where(scores < best[:, -1:], -1e9, scores)
    if top_p < 1:
        order = ops.argsort(scores, axis=-1)  # the likeliest last; of equal ones the later
        shares = ops.softmax(ops.take_along_axis(scores, order, axis=-1), axis=-1)
        goes = ops.cumsum(shares, axis=-1) <= 1 - top_p
        rank = ops.argsort(order, axis=-1)
        goes = ops.logical_and(
            ops.take_along_axis(goes, rank, axis=-1), rank < scores.shape[-1] - 1
        )
        scores = ops.where(goes, -1e9, scores)
    return scores


def best_continuations(
    step: Callable, begin: Callable, prompts, length: int, end: int, beams: int, penalty: float
) -> list[list[int]]:
    """Continue each prompt by `beam_search.search`.

    Args:
      step: function of `decode`.
      begin: function of (rows, length) -> the state before the first token.
      prompts, length, end: of `decode`.
      beams, penalty: of `search`; the length of a text is that of what follows its prompt.

    Returns: what follows each prompt.
    """
    written = []
    for ids in prompts:
        row, state = np.array(ids, "int32"), begin(beams, length)
        for place, token in enumerate(row[:-1]):
            _, state = step(np.full(beams, token, "int32"), np.array(place, "int32"), state)
        read = len(row) - 1

        def shifted(tokens, place, state, read=read):
            return step(tokens, place + read, state)

        ends = np.full(1, end, "int32")
        found = search(shifted, state, row[-1:], ends, length - len(row), beams, penalty)
        written.append([int(i) for i in ops.convert_to_numpy(found)[0] if i >= 0])
    return written


def of_language_model(model) -> NextToken:
    """Return the step of a `predict.Model` that reads left to right.

    Raises:
      UserError: it has no language-model head, no vocabulary, or sees what comes next.
    """
    from official_bert.predict import NO_VOCABULARY

    head = getattr(model.model, "masked_lm", None)
    if model.head != "pretraining" or head is None:
        raise UserError(
            f"the model has no language-model head (its head is {model.head}): use {model.verb}"
        )
    if model.tokenizer is None:
        raise UserError(NO_VOCABULARY)
    return NextToken(model.encoder, head, model.tokenizer.vocab_size)


def generate(
    model, texts="", length=64, temperature=0.0, top_k=0, top_p=1.0, seed=0,
    beams=1, length_penalty=1.0,
):  # fmt: skip
    """Continue texts; see `predict.Model.generate`, whose `model` this is."""
    from official_bert.export.text_answers import as_texts

    whole = {"length": length, "top_k": top_k, "seed": seed, "beams": beams}
    for name, value in {**whole, "temperature": temperature, "top_p": top_p}.items():
        if not isinstance(value, int | np.integer if name in whole else int | float | np.number):
            raise UserError(f"{name} {value!r} is not a {'whole ' * (name in whole)}number")
    texts, one = as_texts(texts, may_be_empty=True)
    step = of_language_model(model)
    if not 1 <= beams <= step.entries // 2 or (beams > 1 and temperature):
        raise UserError(
            f"beams={beams}, temperature={temperature}: beams are from 1 to half of the "
            f"vocabulary's {step.entries} entries, and of temperature 0 alone"
        )
    drawing = sampling(temperature or 1.0, top_k, top_p, seed)
    choose = drawing if temperature else greedy
    made = model.__dict__.setdefault("_graphs", {})
    if made.get("generate", (None,))[0] is not model.model:
        made["generate"] = model.model, (step, step.compiled())
    step, compiled_step = made["generate"][1]
    prompts = [prompt(model.tokenizer, text) for text in texts]
    length = min(length, model.config.max_position_embeddings)
    if (longest := max(map(len, prompts), default=0)) >= length:
        raise UserError(f"a text has {longest} tokens: nothing fits behind it in {length}")
    end = model.tokenizer.sep_id
    if beams > 1:
        # JAX compiles the loop of the search, with the step in it.
        in_loop = step if keras.backend.backend() == "jax" else compiled_step
        found = best_continuations(in_loop, step.begin, prompts, length, end, beams, length_penalty)
    else:
        state = step.begin(len(prompts), length)
        found = decode(compiled_step, state, prompts, length, choose, end)
    written = [model.tokenizer.decode(ids) for ids in found]
    return written[0] if one else written
