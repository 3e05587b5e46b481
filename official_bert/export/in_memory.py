"""A model as it is served, made of a loaded one: what an export saves."""

from official_bert.common.errors import UserError


def in_memory(loaded, head: str, settings):
    """A `ServedModel` with a copy of the weights as they are now.

    Args:
      loaded: `LoadedModel`, with its tokenizer.
      head: what to serve: "classification", "span", "multiple_choice", "tagging", "masked_words",
        "embedding" or "features".
      settings: `ServingSettings`.

    Raises:
      UserError: the model cannot be served so.
    """
    from official_bert.export import (
        classification,
        feature_vectors,
        masked_words,
        multiple_choice,
        span,
        tagging,
    )

    settings.check_for(head, loaded)
    kind = {
        "classification": classification.ServedClassifier,
        "span": span.ServedSpan,
        "multiple_choice": multiple_choice.ServedMultipleChoice,
        "tagging": tagging.ServedTagger,
        "masked_words": masked_words.ServedMaskedWords,
        "embedding": feature_vectors.ServedEmbedding,
        "features": feature_vectors.ServedFeatures,
    }[head]
    return kind(loaded, in_graph_tokenizer(loaded.tokenizer), settings)


def in_graph_tokenizer(tokenizer):
    """The same tokeniser as TensorFlow operations."""
    # Half of an export's time goes into it: exports of the same vocabulary share it.
    key = tokenizer.digest()
    if key not in _made:
        _made.clear()
        _made[key] = _in_graph(tokenizer)
    return _made[key]


def _in_graph(tokenizer):
    match tokenizer.kind:
        case "byte_pair":
            from official_bert.tokenization.in_graph_byte_pair import InGraphBytePairs

            return InGraphBytePairs(tokenizer)
        case "sentence_piece":
            from official_bert.tokenization.in_graph_sentence_piece import InGraphSentencePiece

            return InGraphSentencePiece(tokenizer)
        case "word_end_byte_pair":
            from official_bert.tokenization.in_graph_byte_pair import InGraphWordEnds

            return InGraphWordEnds(tokenizer)
        case "tokenizer_json":
            return _in_graph_foreign(tokenizer)
        case _:
            from official_bert.tokenization.in_graph import InGraphTokenizer

            return InGraphTokenizer(tokenizer.vocab, *tokenizer.rules)


def _in_graph_foreign(tokenizer):
    from official_bert.tokenization.in_graph_byte_pair import InGraphBytePairs
    from official_bert.tokenization.in_graph_foreign import InGraphWordPieces

    kind = tokenizer.contents["model"].get("type")
    if kind not in ("WordPiece", "BPE"):
        raise UserError(
            f"a TensorFlow graph cannot compute this tokeniser's model, {kind}; export token ids "
            "instead (experiments.export --format=onnx)"
        )
    return InGraphWordPieces(tokenizer) if kind == "WordPiece" else InGraphBytePairs(tokenizer)


_made: dict = {}
