"""The tokeniser of a KerasHub preset: `tokenizer.json` and what lies in `assets/tokenizer`."""

import os
from pathlib import Path

from official_bert.checkpoints.google import find_tokenizer
from official_bert.common.errors import UserError
from official_bert.tokenization import (
    SPECIAL_TOKENS,
    BertTokenizer,
    BytePairTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    load_tokenizer,
    sentence_piece,
)
from official_bert.tokenization.byte_pair_files import pair_of, pieces_of
from official_bert.tokenization.vocabulary import lower_case_of

FILE = "tokenizer.json"
_PIECES_FILE = ("assets", "tokenizer", "vocabulary.spm")
# KerasHub's classes whose pieces are no WordPieces.
_KINDS = {"RobertaTokenizer": "byte_pair", "AlbertTokenizer": "sentence_piece"}


def kind_of(class_name: str) -> str:
    """What we call the kind of one of KerasHub's tokenisers."""
    return _KINDS.get(class_name, "word_piece")


def to_keras_hub(
    tokenizer: BertTokenizer | BytePairTokenizer | SentencePieceTokenizer, class_name: str
):
    """KerasHub's tokeniser of that class, with the vocabulary of ours, which is of its kind."""
    import keras_hub

    make = getattr(keras_hub.models, class_name)
    if isinstance(tokenizer, BytePairTokenizer):
        return make(
            vocabulary={piece: index for index, piece in enumerate(tokenizer.vocab)},
            merges=[" ".join(pair) for pair in tokenizer.merges],
            add_prefix_space=tokenizer.add_prefix_space,
        )
    if isinstance(tokenizer, SentencePieceTokenizer):
        return make(proto=tokenizer.model)
    return make(
        vocabulary=tokenizer.vocab,
        lowercase=tokenizer.do_lower_case,
        strip_accents=tokenizer.rules.accents_go,
        split_on_cjk=tokenizer.rules.tokenize_chinese_chars,
    )


def read(
    preset: str,
    class_name: str,
    vocab: str | os.PathLike | None = None,
    do_lower_case: bool | None = None,
) -> Tokenizer | None:
    """The tokeniser of a preset's folder or name; None where it has none.

    Args:
      class_name: KerasHub's tokeniser of this backbone.
      vocab: another vocabulary file.
      do_lower_case: None as the preset says; ALBERT's says nothing, and a vocabulary without a
        capital letter is of texts in lower case.

    Raises:
      UserError: the tokeniser is damaged, of another kind, or lacks a special token.
    """
    import keras_hub

    kind = kind_of(class_name)
    if vocab and (do_lower_case is not None or kind != "word_piece"):
        found = load_tokenizer(vocab, do_lower_case is not False)
        if found.kind != kind:
            raise UserError(f"{vocab}: a {found.kind} vocabulary; this model has {kind}")
        return found
    pieces_file = Path(preset, *_PIECES_FILE)
    if pieces_file.is_file():  # before TensorFlow Text reads it
        sentence_piece.check(sentence_piece.read_file(pieces_file), str(pieces_file))
    try:
        theirs = getattr(keras_hub.models, class_name).from_preset(preset)
    except Exception as error:  # a preset of a backbone alone has no tokenizer
        if (Path(preset) / FILE).exists():
            raise UserError(f"{preset}: its tokenizer cannot be read ({error})") from error
        return None if vocab is None else find_tokenizer(vocab, Path(preset), do_lower_case)
    if kind == "byte_pair":
        where = f"{preset}: the tokenizer's vocabulary"
        merges = [pair_of(merge, where) for merge in theirs.merges if "#version" not in merge]
        pieces = pieces_of(theirs.vocabulary, where)
        return BytePairTokenizer(pieces, merges, bool(theirs.add_prefix_space))
    if kind == "sentence_piece":
        lower = do_lower_case
        if lower is None:
            lower = lower_case_of(theirs.get_vocabulary(), preset)
        return SentencePieceTokenizer(theirs.proto, lower)
    pieces = theirs.get_vocabulary()
    if not all(token in pieces for token in SPECIAL_TOKENS):
        raise UserError(f"{preset}: its vocabulary lacks one of {', '.join(SPECIAL_TOKENS)}")
    lower = theirs.lowercase if do_lower_case is None else do_lower_case
    lower, strips = bool(lower), bool(theirs.strip_accents)
    return BertTokenizer(
        vocab or pieces, lower, None if strips == lower else strips, bool(theirs.split_on_cjk)
    )
