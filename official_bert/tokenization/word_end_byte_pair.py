"""Byte-pair encoding of lower-cased words: the tokeniser of OpenAI GPT (Radford et al. 2018).

Words are those of BERT's uncased models; the last piece of each ends in "</w>". A word is its
characters at first, and of two neighbours the pair whose merge was learnt first becomes one piece,
until no pair has a merge (Sennrich et al. 2016). A character that the vocabulary lacks is unknown.

Vocabularies are those of `transformers`: `tokenizer.json`, or `vocab.json` and `merges.txt`. What
begins, divides and ends the texts of a task has no place in them; it is put behind the last piece.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write
from official_bert.tokenization import byte_pair, byte_pair_files, offsets, reference, sequences
from official_bert.tokenization.base import SpecialTokens, Tokenizer

END = byte_pair_files.WORD_END
START, DELIMITER, EXTRACT, UNKNOWN = "_start_", "_delimiter_", "_classify_", "<unk>"
ADDED = (START, DELIMITER, EXTRACT)
# What fills a row is never read, and no token is masked.
SPECIAL = SpecialTokens(pad=EXTRACT, unk=UNKNOWN, cls=START, sep=EXTRACT, mask=UNKNOWN)
_RULES = reference.Rules()
_MOST_WORDS = 1 << 18  # in the cache


class WordEndTokenizer(Tokenizer):
    """GPT's tokeniser; a row is `_start_ A _classify_` or `_start_ A _delimiter_ B _classify_`.

    Examples:
      >>> pieces = ["<unk>", "l", "o", "w", "w</w>", "lo", "low</w>"]
      >>> tokenizer = WordEndTokenizer(pieces, [("l", "o"), ("lo", "w</w>")])
      >>> tokenizer.tokenize("Low lol")
      ['low</w>', 'lo', '<unk>']

    Attributes:
      merges: the pairs of pieces that become one, the first learnt first.
    """

    kind = "word_end_byte_pair"
    file_name = "tokenizer.json"

    def __init__(
        self,
        vocab: str | os.PathLike | Iterable[str],
        merges: Iterable[tuple[str, str]] | None = None,
    ):
        """Reads the vocabulary.

        Args:
          vocab: a `tokenizer.json`, a `vocab.json` with `merges.txt` beside it, or the pieces in
            the order of their ids.
          merges: with pieces only.

        Raises:
          UserError: a file is missing or damaged, or what a merge makes is no piece.
        """
        where = "vocabulary"
        if isinstance(vocab, str | os.PathLike):
            where = str(vocab)
            vocab, merges = byte_pair_files.read_word_ends(Path(vocab))
        vocab, self.merges = list(vocab), [(left, right) for left, right in merges or ()]
        vocab += [token for token in ADDED if token not in vocab]
        byte_pair.check_merges(vocab, self.merges, where)
        if UNKNOWN not in vocab:
            raise UserError(f"{where}: lacks {UNKNOWN}, which stands for unknown characters")
        self._set_vocab(vocab, SPECIAL)
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self._seen: dict[str, list[str]] = {}

    @property
    def between(self) -> list[int]:
        return [self._id_of[DELIMITER]]

    @property
    def do_lower_case(self) -> bool:
        return True

    @property
    def readable(self) -> list[str]:
        """Pieces say where a word ends, not where it begins: none has a "##"."""
        return [piece.removesuffix(END) for piece in self.vocab]

    @property
    def continues(self) -> np.ndarray:
        """None is known to; whole words cannot be masked."""
        return np.zeros(self.vocab_size, bool)

    def tokenize(self, text: str) -> list[str]:
        words = reference.basic_tokenize(text, *_RULES)
        return [
            piece if piece in self._id_of else UNKNOWN
            for word in words
            for piece in self._pieces(word)
        ]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for word in offsets.words_with_offsets(text, _RULES):
            at = 0
            for piece in self._pieces("".join(char.text for char in word)):
                covered = word[at : at + len(piece.removesuffix(END))]
                at += len(covered)
                ids.append(self._id_of.get(piece, self.unk_id))
                spans.append((min(c.start for c in covered), max(c.end for c in covered)))
        return ids, spans

    def decode(self, ids: Iterable[int]) -> str:
        pieces = (self.vocab[index] for index in ids)
        shown = (f"{p}{END}" if p == UNKNOWN else p for p in pieces if p not in ADDED)
        return "".join(shown).replace(END, " ").strip()

    def write(self, folder: str | os.PathLike) -> None:
        """Writes a `tokenizer.json` as the library `tokenizers` reads it."""
        id_of = {piece: index for index, piece in enumerate(self.vocab)}
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        contents = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": id_of[token], "content": token, **flags, "special": True}
                for token in sorted({*ADDED, UNKNOWN}, key=id_of.__getitem__)
            ],
            "normalizer": byte_pair_files.UNCASED,
            "pre_tokenizer": byte_pair_files.BASIC,
            "post_processor": sequences.as_template(self),
            "decoder": {"type": "BPEDecoder", "suffix": END},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": UNKNOWN,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": END,
                "fuse_unk": False,
                "byte_fallback": False,
                "vocab": id_of,
                "merges": [list(pair) for pair in self.merges],
            },
        }
        with atomic_write(Path(folder, self.file_name)) as file:
            json.dump(contents, file, ensure_ascii=False, indent=1)

    def _more_content(self) -> list:
        return [self.merges]

    def _pieces(self, word: str) -> list[str]:
        if word not in self._seen:
            if len(self._seen) >= _MOST_WORDS:
                self._seen.clear()
            self._seen[word] = byte_pair.merged([*word[:-1], word[-1] + END], self._rank)
        return self._seen[word]
