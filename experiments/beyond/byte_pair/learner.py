"""Learns a byte-pair vocabulary as RoBERTa has it, by the library `tokenizers`."""

from collections.abc import Iterable, Iterator

from data_prep.corpus.text_files import text_lines
from experiments.beyond.byte_pair.tokenizer import SPECIAL, BytePairTokenizer
from official_bert.common.errors import UserError
from official_bert.common.json_files import parse_json
from official_bert.tokenization.library.tokenizer_json import BYTE_CHARACTERS

_LEAST = 2  # how often a pair must occur
_LINES_AT_ONCE = 1000


def learn_byte_pairs(
    paths: Iterable[str], vocab_size: int, invalid_utf8: str = "error", progress: bool = False
) -> BytePairTokenizer:
    """Return the tokeniser of byte pairs learnt from text files.

    Ids as in RoBERTa: <s> 0, <pad> 1, </s> 2, <unk> 3, then the 256 bytes, the pieces in the order
    of their merges, and <mask> last.

    Args:
      paths: text files, plain or compressed.
      vocab_size: pieces; fewer come out where the text has no more pairs that occur twice.
      invalid_utf8: see `text_files.decode_lines`.
      progress: show bars on stderr.

    Raises:
      UserError: vocab_size is too small.
    """
    least = len(SPECIAL) + len(BYTE_CHARACTERS)
    if vocab_size < least:
        raise UserError(f"--vocab_size={vocab_size}: the bytes and special tokens are {least}")
    import tokenizers

    learner = tokenizers.Tokenizer(tokenizers.models.BPE())
    learner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size - 1,  # the mask comes last
        min_frequency=_LEAST,
        special_tokens=[SPECIAL.cls, SPECIAL.pad, SPECIAL.sep, SPECIAL.unk],
        initial_alphabet=sorted(BYTE_CHARACTERS),
        show_progress=progress,
    )
    learner.train_from_iterator(_batches(paths, invalid_utf8), trainer)
    pieces = sorted(learner.get_vocab(), key=learner.get_vocab().__getitem__)
    merges = parse_json(learner.to_str(), "tokenizers")["model"]["merges"]
    return BytePairTokenizer([*pieces, SPECIAL.mask], list(map(tuple, merges)))


def _batches(paths, invalid_utf8) -> Iterator[list[str]]:
    lines: list[str] = []
    for path in paths:
        for line in text_lines(path, invalid_utf8):
            lines.append(line.strip())
            if len(lines) == _LINES_AT_ONCE:
                yield lines
                lines = []
    yield lines
