"""A look inside a model for those who learn: tokens, attention, and words for a hidden token."""

import numpy as np

from official_bert.objectives import fills_masks
from official_bert.tokenization import sequences

_WORDS = 5  # offered for each [MASK]


def explain(loaded, text: str, layer: int = 0, mask: int | None = None, most: int = 48) -> dict:
    """Return the tokens, attention and words for [MASK] of a model that reads one text.

    Args:
      loaded: `LoadedModel` with its tokenizer.
      text: may hold "[MASK]", or the vocabulary's own name of that token.
      layer: whose attention is returned, from 0.
      mask: place of a token that is replaced by [MASK] first; [CLS] is 0.
      most: number of tokens, [CLS] and [SEP] included; the rest of the text is left out.

    Returns:
      {"tokens": list of T pieces, "attention": [heads][T][T], 3 digits: how much each token
      takes from each, "candidates" (of a model with a masked-LM head): {place of a [MASK]: list of
      {"word", "probability"}}, "cut": whether text was left out}.

    Raises:
      UserError: the vocabulary has no mask.
      IndexError: `mask` is not the place of a token.
    """
    from keras import ops

    from official_bert.export.answers import Answers
    from official_bert.export.settings import ServingSettings

    tokenizer = loaded.tokenizer
    readable = tokenizer.readable
    most = min(most, loaded.config.max_position_embeddings)
    row = sequences.pack(tokenizer, tokenizer.encode_masked(text), None, most)
    ids = np.array(row["input_ids"], np.int32)
    if mask is not None:
        ids[mask] = tokenizer.mask_id
    outputs = loaded.encoder(
        {"input_ids": ids[None], "input_mask": np.ones_like(ids)[None]}, return_attention=True
    )
    attention = ops.convert_to_numpy(
        ops.cast(outputs["attention_probabilities"][layer][0], "float32")
    )
    found = {
        "tokens": [readable[i] for i in ids],
        "attention": np.round(attention.astype(float), 3).tolist(),
        "candidates": {},
        "cut": bool(row["truncated"]),
    }
    positions = np.flatnonzero(ids == tokenizer.mask_id)
    if loaded.head == "pretraining" and fills_masks(loaded.settings) and len(positions):
        answers = Answers(loaded, "masked_words", ServingSettings(top_k=_WORDS))
        vectors = ops.take(outputs["sequence_output"], positions, axis=1)
        shares, best = (ops.convert_to_numpy(x)[0] for x in answers.best_words(vectors))
        for position, row, of_place in zip(positions, best, shares, strict=True):
            found["candidates"][str(position)] = [
                {"word": readable[i], "probability": float(share)}
                for i, share in zip(row, of_place, strict=True)
            ]
    return found
