"""Byte-pair encoding of lower-cased words: the tokeniser of OpenAI GPT (Radford et al. 2018).

Words are those of BERT's uncased models; the last piece of each ends in "</w>". A word is its
characters at first, and of two neighbours the pair whose merge was learnt first becomes one piece,
until no pair has a merge (Sennrich et al. 2016). A character that the vocabulary lacks is unknown.

Vocabularies are those of `transformers`: `tokenizer.json`, or `vocab.json` and `merges.txt`. They
have no place for the tokens that begin, divide and end the texts of a task; these stand behind the
last piece.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from experiments.beyond.byte_pair import files
from experiments.beyond.byte_pair.tokenizer import check_merges
from official_bert.common.errors import UserError
from official_bert.common.json_files import list_of, shorten
from official_bert.tokenization import offsets, reference, sequences
from official_bert.tokenization.base import SpecialTokens
from official_bert.tokenization.library import tokenizer_json
from official_bert.tokenization.library.foreign import LibraryTokenizer

END = files.WORD_END
START, DELIMITER, EXTRACT, UNKNOWN = "_start_", "_delimiter_", "_classify_", "<unk>"
ADDED = (START, DELIMITER, EXTRACT)
# The model never reads the padding, and no token is masked.
SPECIAL = SpecialTokens(pad=EXTRACT, unk=UNKNOWN, cls=START, sep=EXTRACT, mask=UNKNOWN)
_RULES = reference.Rules()  # its words are those of uncased BERT
_WORDS = tokenizer_json.bert_steps(_RULES)


class WordEndTokenizer(LibraryTokenizer):
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
    hub_class = "OpenAIGPTTokenizer"
    hub_files = ("tokenizer.json", "vocab.json", "vocab.txt")
    reads_hub_json = True

    def __init__(
        self,
        vocab: str | os.PathLike | Iterable[str],
        merges: Iterable[tuple[str, str]] | None = None,
    ):
        """Read the vocabulary.

        Args:
          vocab: a `tokenizer.json`, a `vocab.json` with `merges.txt` beside it, or the pieces in
            the order of their ids.
          merges: with pieces only.

        Raises:
          UserError: a file is missing or damaged, or what a merge makes is not a piece.
        """
        where = "vocabulary"
        if isinstance(vocab, str | os.PathLike):
            where = str(vocab)
            vocab, merges, is_whole = _read(Path(vocab))
            self.second_file = "" if is_whole else files.MERGES_FILE
        vocab, self.merges = list(vocab), [(left, right) for left, right in merges or ()]
        vocab += [token for token in ADDED if token not in vocab]
        check_merges(vocab, self.merges, where)
        if UNKNOWN not in vocab:
            raise UserError(f"{where}: lacks {UNKNOWN}, which stands for unknown characters")
        self._set_vocab(vocab, SPECIAL)
        self.contents = tokenizer_json.whole(
            files.model_of(self._id_of, self.merges, unk_token=UNKNOWN, end_of_word_suffix=END),
            tokenizer_json.special_tokens(self._id_of, {*ADDED, UNKNOWN}),
            **_WORDS,
            post_processor=sequences.as_template(self),
            decoder={"type": "BPEDecoder", "suffix": END},
        )
        self._library, _ = tokenizer_json.library(self.contents, where)

    @classmethod
    def of_file(cls, path: Path, contents: dict[str, Any], do_lower_case: bool) -> Self | None:
        return cls(path) if path.suffix == ".json" and _has_word_ends(contents) else None

    def write_for_hub(self, folder: str | os.PathLike) -> None:
        self.write(folder)
        files.write_parts(Path(folder), self.vocab, self.merges)

    @property
    def between(self) -> list[int]:
        return [self._id_of[DELIMITER]]

    @property
    def do_lower_case(self) -> bool:
        return True

    def encode(self, text: str) -> list[int]:
        words = reference.basic_tokenize(text, *_RULES)
        return [piece.id for word in words for piece in self._pieces(word)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        def cut(word):
            for piece in self._pieces(word):
                unknown = piece.id == self.unk_id
                yield piece.value, 1 if unknown else len(piece.value.removesuffix(END))

        return self._placed(offsets.pieces_of_words(text, _RULES, cut))

    def decode(self, ids: Iterable[int]) -> str:
        pieces = (self.vocab[index] for index in ids)
        shown = (f"{p}{END}" if p == UNKNOWN else p for p in pieces if p not in ADDED)
        return "".join(shown).replace(END, " ").strip()

    def _more_content(self) -> list:
        return [self.merges]

    def _pieces(self, word: str) -> list:
        # A lone surrogate is not text: one unknown character.
        word = word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self._library.model.tokenize(word)


def _read(path: Path) -> tuple[list[str], list[tuple[str, str]], bool]:
    """Return (pieces, merges, whether one file has both) of a `tokenizer.json` or a `vocab.json`.

    Raises:
      UserError: a file is missing or damaged, or the tokeniser is of another kind.
    """
    contents = files.read_contents(path)
    if not files.is_whole(contents):
        return *files.of_two_files(contents, path), False
    if not _has_word_ends(contents):
        raise UserError(f"{path}: no byte pairs of words that end in {END}")
    for name, usual in _WORDS.items():
        if contents.get(name) != usual:
            raise UserError(f"{path}: {name} {shorten(contents.get(name))} is not GPT's, {usual}")
    return *files.pieces_and_merges(contents, path), True


def _has_word_ends(contents: dict[str, Any]) -> bool:
    """Return whether they are GPT's, which has no tokens to begin and end a sequence but those of
    ours."""
    if not files.is_whole(contents):
        return any(str(piece).endswith(END) for piece in contents)
    model = contents["model"]
    if model.get("type") != "BPE" or model.get("end_of_word_suffix") != END:
        return False
    added = list_of({"added_tokens": [], **contents}, "added_tokens", dict, "tokenizer.json")
    names = {str(token.get("content")) for token in added} | {*(model.get("vocab") or ())}
    return START in names or names.isdisjoint(("[CLS]", "<s>"))
