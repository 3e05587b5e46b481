"""BERT's own tokeniser as a `tokenizer.json`, and foreign tokenisers as our own classes."""

from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.json_files import shorten
from official_bert.extension import find
from official_bert.tokenization import sequences
from official_bert.tokenization.base import Tokenizer
from official_bert.tokenization.library import tokenizer_json
from official_bert.tokenization.library.foreign import ForeignTokenizer
from official_bert.tokenization.reference import MAX_WORD_CHARACTERS, Rules
from official_bert.tokenization.tokenizer import BertTokenizer
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS

# Our rules -> the fields of a BertNormalizer.
RULES = dict(
    zip(Rules._fields, ("lowercase", "strip_accents", "handle_chinese_chars"), strict=True)
)
_PREFIX = "continuing_subword_prefix"


def as_tokenizer_json(tokenizer: BertTokenizer) -> dict:
    """Return the contents of the `tokenizer.json` of a `BertTokenizer`."""
    id_of = {piece: index for index, piece in enumerate(tokenizer.vocab) if piece}
    special = [token for token in tokenizer.special if token]
    contents = standard(id_of, tokenizer.rules, tokenizer.special.unk, special, MAX_WORD_CHARACTERS)
    return {**contents, "post_processor": sequences.as_template(tokenizer)}


def standard(
    id_of: dict[str, int], rules: Rules, unk: str, special: list[str], max_chars: int
) -> dict[str, Any]:
    """Return the contents of a `tokenizer.json` with BERT's steps, but without a template."""
    model = {
        "type": "WordPiece",
        "unk_token": unk,
        _PREFIX: "##",
        "max_input_chars_per_word": max_chars,
        "vocab": id_of,
    }
    return tokenizer_json.whole(
        model,
        tokenizer_json.special_tokens(id_of, special),
        **tokenizer_json.bert_steps(rules),
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
    )


def as_own(tokenizer: Tokenizer | None, kind: str, target: str) -> Tokenizer | None:
    """Return a tokeniser as the class of another kind ("word_piece": `BertTokenizer`).

    Raises:
      UserError: it has steps, names or added tokens that the class lacks; the message names one.
    """
    if tokenizer is None or tokenizer.kind == kind:
        return tokenizer
    made = None
    if isinstance(tokenizer, ForeignTokenizer):
        if kind == BertTokenizer.kind:
            return _as_berts(tokenizer, target)
        made = find("tokenizers", kind).of_contents(tokenizer.contents, f"{target}: tokeniser")
    if made is None:
        raise UserError(
            f"{target} has a {kind} vocabulary here, and this model's tokeniser is "
            f"{tokenizer.kind}; a model folder keeps it"
        )
    return made


def _as_berts(tokenizer: ForeignTokenizer, target: str) -> BertTokenizer:
    contents = tokenizer.contents
    rules = Rules(*((contents.get("normalizer") or {}).get(name) for name in RULES.values()))
    usual = standard({}, rules, "[UNK]", [], 0)
    model = {name: contents["model"].get(name) for name in ("type", "unk_token", _PREFIX)}
    theirs = {**{name: contents.get(name) for name in ("normalizer", "pre_tokenizer")}, **model}
    more = [
        token["content"]
        for token in tokenizer.added_tokens
        if token["content"] not in SPECIAL_TOKENS
    ]
    expected = {**usual, **usual["model"], "added token": None}
    for name, value in {**theirs, "added token": more[0] if more else None}.items():
        if value != expected[name]:
            raise UserError(
                f"{target}'s format of BERT has no place for this tokeniser's {name} "
                f"{shorten(value)}; a model folder keeps it"
            )
    return BertTokenizer(tokenizer.vocab, *rules)
