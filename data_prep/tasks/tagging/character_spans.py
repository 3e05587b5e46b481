"""Entities given by characters, as annotation tools export them, turned into words with tags.

A row has a text and its entities, each [start, end, kind] or an object (doccano, Prodigy, spaCy),
or it is an object of Label Studio. Words are those of running text (`word_groups`). The first word
that shares a character with an entity is B-, the others are I-.
"""

import bisect

from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of, shorten
from official_bert.tokenization.word_groups import word_spans

# (text, entities) in the order in which they are looked for.
FIELDS = (
    *(("text", name) for name in ("label", "labels", "entities", "spans", "ents")),
    ("data", "annotations"),
)
_KINDS = ("label", "type", "tag", "entity_group", "entity")  # of an object


def words_and_tags(row: dict, fields: tuple[str, str], where: str) -> tuple[list, list] | None:
    """Return the words of a row and their tags; None if its annotator rejected or has not seen it.

    Args:
      fields: names of text and entities, of FIELDS.
      where: the row's name in errors.

    Raises:
      UserError: an entity is of another form, is not in the text, or shares a word with another.
    """
    if row.get("answer", "accept") != "accept":
        return None
    text, marked = row[fields[0]], row[fields[1]]
    if fields == FIELDS[-1]:
        text, marked = _of_label_studio(row, where)
        if marked is None:
            return None
    field({"text": text}, "text", str, where)
    words = word_spans(text)
    tags, starts, ends = ["O"] * len(words), [a for a, _ in words], [b for _, b in words]
    for entity in list_of({fields[1]: marked or []}, fields[1], (list, dict), where):
        start, end, kind = _entity(entity, text, where)
        shared = range(bisect.bisect_right(ends, start), bisect.bisect_left(starts, end))
        if not shared or any(tags[place] != "O" for place in shared):
            problem = "shares a word with another" if shared else "has no word"
            raise UserError(f"{where}: the entity {shorten(entity)} {problem}; leave it out")
        for place in shared:
            tags[place] = f"{'B' if place == shared[0] else 'I'}-{kind}"
    return [text[start:end] for start, end in words], tags


def _entity(entity: list | dict, text: str, where: str) -> tuple[int, int, str]:
    """Return the characters of an entity and its kind."""
    stated, marked = None, entity
    if isinstance(entity, dict):
        stated, kinds = entity.get("text"), entity.get("labels")
        named = (entity[name] for name in _KINDS if name in entity)
        kind = kinds[0] if isinstance(kinds, list) and len(kinds) == 1 else next(named, None)
        marked = [entity.get(f"{n}_offset", entity.get(n)) for n in ("start", "end")] + [kind]
    match marked:
        case [int() as start, int() as end, str() as kind] if (
            0 <= start < end <= len(text) and kind
        ):
            if isinstance(stated, str) and stated != text[start:end]:
                raise UserError(
                    f"{where}: an entity is {shorten(stated)}, and its characters {start} to {end} "
                    f"are {shorten(text[start:end])}; count characters, not bytes or UTF-16, and "
                    "to the one behind the last"
                )
            return start, end, kind
    raise UserError(
        f"{where}: {shorten(entity)} is not an entity (start, end, one kind) of a text of "
        f"{len(text)} characters"
    )


def _of_label_studio(row: dict, where: str) -> tuple[object, list | None]:
    done = [
        each for each in list_of(row, "annotations", dict, where) if not each.get("was_cancelled")
    ]
    if len(done) > 1:
        raise UserError(f"{where}: {len(done)} annotations of one text; leave one of them")
    texts = field(row, "data", dict, where)
    text = texts.get("text", next((t for t in texts.values() if isinstance(t, str)), None))
    if not done:
        return text, None
    results = list_of(done[0], "result", dict, where)
    return text, [each.get("value") for each in results if each.get("type") == "labels"]
