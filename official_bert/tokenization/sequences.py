"""Packing texts as section 3 of the paper does: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

RoBERTa has two separators between A and B, OpenAI GPT one of its own; they belong to A's segment.
"""

from official_bert.common.errors import UserError, check_choice

TRUNCATIONS = ("head", "tail", "head+tail")


def pack(
    tokenizer, first: list[int], second: list[int] | None, max_seq_length: int, truncation="head"
):
    """Join one or two lists of token ids into one row.

    A too long pair loses tokens of its longer text, one at a time (at a tie, of the second), as in
    the original code; `truncation` says which end of a text is kept.

    Returns:
      {"input_ids", "segment_ids": lists of the same length, "truncated": 0 or 1}.
    """
    between = [] if second is None else tokenizer.between
    room = check_room(max_seq_length, len(between))
    if second is None:
        kept = (min(len(first), room),)
    else:
        kept = pair_lengths(len(first), len(second), room)
    a = cut(first, kept[0], truncation)
    input_ids = [tokenizer.cls_id, *a, *(between or [tokenizer.sep_id])]
    segment_ids = [0] * len(input_ids)
    truncated = len(a) < len(first)
    if second is not None:
        b = cut(second, kept[1], truncation)
        input_ids += [*b, tokenizer.sep_id]
        segment_ids += [1] * (len(b) + 1)
        truncated = truncated or len(b) < len(second)
    return {"input_ids": input_ids, "segment_ids": segment_ids, "truncated": int(truncated)}


def check_room(max_seq_length: int, separators: int) -> int:
    """Return the tokens of text that a row holds, beside [CLS], [SEP] and those between two texts.

    Raises:
      UserError: there is no room for text.
    """
    room = max_seq_length - 2 - separators
    if room < 1:
        raise UserError(f"max_seq_length={max_seq_length} leaves no room for text; use at least 8")
    return room


def pair_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """Return the lengths of two texts that fit in `room`, after tokens of the longer are
    dropped."""
    if first + second <= room:
        return first, second
    # The longer shrinks to the shorter, then both shrink in turn, the second first.
    half = room // 2
    if first <= half:
        return first, room - first
    if second <= half:
        return room - second, second
    return room - half, half


def cut(ids: list[int], length: int, truncation: str) -> list[int]:
    """Return `length` of the ids: the first, the last, or a first quarter and last three quarters.

    A quarter and three quarters is close to the 128 + 382 of 510 that Sun et al. (2019, "How to
    fine-tune BERT for text classification?") found best on long reviews.
    """
    check_choice("truncation", truncation, TRUNCATIONS)
    if len(ids) <= length:
        return list(ids)
    if length == 0:
        return []
    if truncation == "head":
        return list(ids[:length])
    if truncation == "tail":
        return list(ids[-length:])
    head = length // 4
    return [*ids[:head], *ids[len(ids) - (length - head) :]]


def as_template(tokenizer) -> dict:
    """Describe how `pack` joins texts, as the `post_processor` of a tokenizer.json."""

    def special(index, segment):
        return {"SpecialToken": {"id": tokenizer.vocab[index], "type_id": segment}}

    def text(name, segment):
        return {"Sequence": {"id": name, "type_id": segment}}

    begin, end = special(tokenizer.cls_id, 0), special(tokenizer.sep_id, 0)
    between = [special(index, 0) for index in tokenizer.between]
    ids = dict.fromkeys((tokenizer.cls_id, *tokenizer.between, tokenizer.sep_id))
    return {
        "type": "TemplateProcessing",
        "single": [begin, text("A", 0), end],
        "pair": [begin, text("A", 0), *between, text("B", 1), special(tokenizer.sep_id, 1)],
        "special_tokens": {
            name: {"id": name, "ids": [index], "tokens": [name]}
            for index, name in ((index, tokenizer.vocab[index]) for index in ids)
        },
    }
