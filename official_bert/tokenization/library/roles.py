"""Roles of a foreign tokeniser's special tokens, and its way to join texts.

A `tokenizer.json` names them in its template, padding and model; the files beside it name more.
"""

import itertools
from pathlib import Path
from typing import Any

from official_bert.common.errors import UserError
from official_bert.common.json_files import field, list_of, read_json, shorten
from official_bert.tokenization.base import SpecialTokens
from official_bert.tokenization.library import tokenizer_json

# Names of each role where a file does not say, in the order in which they are tried.
_USUAL = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
CONFIG, MAP = "tokenizer_config.json", "special_tokens_map.json"


def find(
    contents: dict[str, Any], vocab: list[str], where: str, named: dict[str, str] | None = None
) -> SpecialTokens:
    """Find the special tokens: as `named`, else as the file says, else by their usual names.

    The file says them in its template, padding and model.

    Our own templates name the mask too, as a token that they do not use. A special token that is
    the only one of its file, and has no other role, divides texts: it begins and ends a sequence,
    and stands for nothing unknown (GPT-2's <|endoftext|>).

    Args:
      named: {role: token} of the files beside a `tokenizer.json`. Tokens that are not pieces are
        passed over, since the model has no vectors for them.

    Raises:
      UserError: no token begins or ends a sequence.
    """
    known = set(vocab)
    in_file: dict[str, str | None] = {}
    template = _template(contents, where)
    if template:
        ends = template.single or [None]
        in_file["cls"], in_file["sep"] = ends[0], ends[-1]
        unused = [name for name in template.names if name not in template.pair]
        in_file["mask"] = unused[0] if len(unused) == 1 else None
    padding = contents.get("padding")
    if isinstance(padding, dict):
        in_file["pad"] = padding.get("pad_token")
    model = contents["model"]
    in_file["unk"] = model.get("unk_token")
    if isinstance(model.get("unk_id"), int) and model["unk_id"] < len(vocab):
        in_file["unk"] = vocab[model["unk_id"]]
    found = {}
    for role, usual in _USUAL.items():
        named = named or {}
        # GPT-2's files name tokens for the begin and the end of a text, not of a classifier's row.
        other = named.get({"cls": "bos", "sep": "eos"}.get(role))
        candidates = (named.get(role), in_file.get(role), other, *usual)
        found[role] = next((token for token in candidates if token in known and token), None)
    others = {in_file["unk"], *_USUAL["pad"], *_USUAL["unk"], *_USUAL["mask"]}
    alone = [t["content"] for t in contents.get("added_tokens") or () if t.get("special")]
    if len(alone) == 1 and alone[0] not in others:
        found |= {role: found[role] or alone[0] for role in ("cls", "sep")}
    if found["unk"] in (found["cls"], found["sep"]):
        found["unk"] = None
    for role, does in (("cls", "begins"), ("sep", "ends")):
        if found[role] is None:
            token = named.get(role)
            problem = f"{role}_token {token!r} is not a piece of it" if token else "none is named"
            raise UserError(
                f"{where}: no token {does} a sequence ({problem}); name one of its pieces as "
                f"{role}_token in {CONFIG} beside it"
            )
    # The model never reads the padding.
    return SpecialTokens(**{**found, "pad": found["pad"] or found["sep"]})


def named_beside(path: Path) -> dict[str, str]:
    """Return {role: token} of `special_tokens_map.json` and `tokenizer_config.json` beside a file.

    Beside the roles of `SpecialTokens` these files have "bos" and "eos".
    """
    named = {}
    for other in (MAP, CONFIG):
        beside = path.with_name(other)
        fields = read_json(beside) if beside.is_file() else {}
        for role in (*SpecialTokens._fields, "bos", "eos"):
            token = fields.get(f"{role}_token")
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str) and token:
                named[role] = token
    return named


def separators(contents: dict[str, Any], special: SpecialTokens, where: str) -> int:
    """Return how many separators stand between two texts.

    Raises:
      UserError: the file joins texts in another way than `sequences.pack`.
    """
    template = _template(contents, where)
    if template is None:
        return 1
    cls, sep = special.cls, special.sep
    between = len(template.pair) - 4
    expected = [cls, None, *[sep] * between, None, sep]
    if template.single != [cls, None, sep] or between not in (1, 2) or template.pair != expected:

        def shown(names):
            return shorten(" ".join(name or "TEXT" for name in names[:50]))

        raise UserError(
            f"{where}: post_processor joins texts as {shown(template.single)} and "
            f"{shown(template.pair)}; BERT's way is {shown([cls, None, sep])} and "
            f"{shown([cls, None, sep, None, sep])}"
        )
    return between


class _Template:
    """The order of tokens and texts (None) in a joined row; `names` are all that it knows."""

    def __init__(self, single, pair, names=()):
        self.single, self.pair, self.names = single, pair, names


def _template(contents, where) -> _Template | None:
    """Return the template of a file, or None where it adds nothing to a text."""
    for step in tokenizer_json.steps(contents, "post_processor"):
        match step.get("type"):
            case "ByteLevel":
                continue
            case "BertProcessing" | "RobertaProcessing" as kind:
                cls, sep = step["cls"][0], step["sep"][0]
                between = [sep] * (2 if kind == "RobertaProcessing" else 1)
                return _Template([cls, None, sep], [cls, None, *between, None, sep])
            case "TemplateProcessing":
                known = step.get("special_tokens", {}).items()
                tokens = {name: one["tokens"] for name, one in known}

                def of(part, tokens=tokens):
                    special = part.get("SpecialToken")
                    place = f"{where}: post_processor: special_tokens"
                    return field(tokens, special["id"], list, place) if special else [None]

                single, pair = (
                    [token for part in list_of(step, name, dict, where) for token in of(part)]
                    for name in ("single", "pair")
                )
                if single == [None] and pair == [None, None]:
                    continue
                return _Template(single, pair, [*itertools.chain(*tokens.values())])
            case other:
                raise UserError(f"{where}: post_processor: {shorten(other)} is not read")
    return None
