"""A model as it is served, made of a loaded one: what an export saves and `predict` asks."""

import functools


def in_memory(loaded, head: str, settings):
    """A `ServedModel` with a copy of the weights as they are now.

    Args:
      loaded: `LoadedModel`, with its tokenizer.
      head: what to serve: "classification", "span", "multiple_choice", "tagging", "masked_words",
        "embedding" or "features".
      settings: `ServingSettings`.
    """
    from official_bert.serving import (
        classification,
        feature_vectors,
        masked_words,
        multiple_choice,
        span,
        tagging,
    )

    kind = {
        "classification": classification.ServedClassifier,
        "span": span.ServedSpan,
        "multiple_choice": multiple_choice.ServedMultipleChoice,
        "tagging": tagging.ServedTagger,
        "masked_words": masked_words.ServedMaskedWords,
        "embedding": feature_vectors.ServedEmbedding,
        "features": feature_vectors.ServedFeatures,
    }[head]
    tokenizer = _in_graph(tuple(loaded.tokenizer.vocab), loaded.tokenizer.rules)
    return kind(loaded, tokenizer, settings)


@functools.lru_cache(maxsize=1)
def _in_graph(vocab, rules):
    # Half of an export's time goes into the tokeniser: exports of the same vocabulary share it.
    from official_bert.tokenization.in_graph import InGraphTokenizer

    return InGraphTokenizer(list(vocab), *rules)
