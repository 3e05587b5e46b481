"""Foreign tokenisers: a `tokenizer.json`, computed by the library `tokenizers` that defines it.

The library itself computes ids and offsets, with everything that the file holds (normaliser,
pre-tokeniser, model, added tokens). It also finds added tokens in texts, special ones too. Two
things it leaves to its user, and so to this class: which tokens begin, divide, fill and hide
(`roles.find`), and how texts are joined, which must be BERT's way.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from official_bert.common.errors import UserError
from official_bert.common.files import write_json
from official_bert.tokenization import decoding, sequences
from official_bert.tokenization.base import SpecialTokens, Tokenizer
from official_bert.tokenization.library import roles, tokenizer_json


class LibraryTokenizer(Tokenizer):
    """A tokeniser that the library `tokenizers` computes, in the attribute `_library`.

    Attributes:
      contents: the contents of the `tokenizer.json`, without truncation and padding.
    """

    file_name = "tokenizer.json"
    contents: dict[str, Any]

    @property
    def algorithm(self) -> str:
        return self.contents["model"].get("type") or ""

    @property
    def added_tokens(self) -> list[dict[str, Any]]:
        return self.contents.get("added_tokens") or []

    @property
    def readable(self) -> list[str]:
        return [text if begins else f"##{text}" for text, begins in self._readable()]

    @property
    def continues(self) -> np.ndarray:
        """Mask of the pieces that continue a word, bool [vocab_size].

        Raises:
          UserError: the pieces do not say whether they begin a word.
        """
        if not tokenizer_json.says_where_words_begin(self.contents):
            raise UserError(
                "the tokeniser's pieces do not say where words begin: whole words are not masked"
            )
        return np.array([not begins for _, begins in self._readable()])

    def _readable(self) -> list[tuple[str, bool]]:
        whole = {token["content"] for token in self.added_tokens} | {*self.special}
        read = tokenizer_json.piece_reader(self.contents)
        return [(piece, True) if piece in whole else read(piece) for piece in self.vocab]

    def tokenize(self, text: str) -> list[str]:
        return [self.vocab[index] for index in self.encode(text)]

    def encode(self, text: str) -> list[int]:
        return self._encoding(text).ids

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        found = self._encoding(text)
        return found.ids, found.offsets

    def decode(self, ids: Iterable[int]) -> str:
        ids = self._shown(ids)
        if self.algorithm == "WordPiece":
            readable = self.readable
            return decoding.pieces_to_text(readable[index] for index in ids)
        with tokenizer_json.no_panic("the library tokenizers cannot decode"):
            return self._library.decode(ids, skip_special_tokens=False)

    def write(self, folder: str | os.PathLike) -> None:
        """Write the `tokenizer.json`, with its template and padding of special tokens."""
        write_json(Path(folder, self.file_name), self.to_json(), indent=1)

    def to_json(self) -> dict[str, Any]:
        """Return the contents that `write` writes."""
        return self.contents

    def _computed(self) -> dict[str, Any]:
        """Return the contents with which the library computes."""
        return self.contents

    def _encoding(self, text: str):
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate is not text: "?"
        with tokenizer_json.no_panic(f"the library tokenizers cannot encode {text[:50]!r}"):
            return self._library.encode(text, add_special_tokens=False)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_library"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._library, _ = tokenizer_json.library(self._computed(), "tokenizer.json")


class ForeignTokenizer(LibraryTokenizer):
    """A tokeniser of any kind that the library knows, read from someone else's file."""

    kind = "tokenizer_json"
    hub_class = "PreTrainedTokenizerFast"

    def __init__(
        self,
        contents: str | os.PathLike | dict[str, Any],
        special: SpecialTokens | None = None,
        where: str = "tokenizer.json",
    ):
        """Read the tokeniser.

        Args:
          contents: the path of a `tokenizer.json`, or its contents.
          special: the special tokens; None: as the file, and those beside it, say (see
            `roles.find`).
          where: names the contents in messages.

        Raises:
          UserError: the file is missing, damaged, unknown to the library, leaves its pieces to
            chance, joins texts in another way than BERT, or has no token to begin or to end a
            sequence.
        """
        named: dict[str, str] = {}
        if isinstance(contents, str | os.PathLike):
            where, named = str(contents), roles.named_beside(Path(contents))
            contents = tokenizer_json.read(Path(contents))
            self.second_file = roles.CONFIG if named else ""
        plain = {**contents, "truncation": None, "padding": None}
        self._library, self.contents = tokenizer_json.library(plain, where)
        vocab = tokenizer_json.pieces(self._library, self.contents, where)
        if special is None:
            full = {**self.contents, "padding": contents.get("padding")}
            special = roles.find(full, vocab, where, named)
        self._set_vocab(vocab, special)
        self.separators = roles.separators(self.contents, special, where)

    @property
    def do_lower_case(self) -> bool:
        return tokenizer_json.lower_cases(self._library)

    def to_json(self) -> dict[str, Any]:
        """Return the contents, with the roles of the special tokens in them."""
        template = sequences.as_template(self)
        if self.special.mask is not None:  # templates have no mask, see roles.find
            name, index = self.special.mask, self.mask_id
            template["special_tokens"][name] = {"id": name, "ids": [index], "tokens": [name]}
        kept = self._trims()
        joined = {"type": "Sequence", "processors": [*kept, template]} if kept else template
        padding = tokenizer_json.padding(self)
        return {**self.contents, "post_processor": joined, "padding": padding}

    def without_template(self) -> dict[str, Any]:
        """Return the contents of a `tokenizer.json` that adds no tokens to a text, as GPT-2's."""
        return {**self.contents, "post_processor": next(iter(self._trims()), None)}

    def _trims(self) -> list[dict[str, Any]]:
        """Return the step that trims offsets, if there is any."""
        steps = tokenizer_json.steps(self.contents, "post_processor")
        return [
            {
                "add_prefix_space": step["add_prefix_space"],
                "trim_offsets": step["trim_offsets"],
                "use_regex": True,
                "type": "ByteLevel",
            }
            for step in steps
            if step["type"] in ("RobertaProcessing", "ByteLevel")
        ]

    def _more_content(self) -> list:
        return [json.dumps(self.to_json(), sort_keys=True), *self.special]
