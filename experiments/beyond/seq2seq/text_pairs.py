"""Pairs of texts for `text_to_text`, from two aligned files, two of Debian's Bibles, or SQuAD.

    official-bert text_pairs --source=europarl.es --target=europarl.en --output=pairs

    sudo apt install sword-text-kjv sword-text-sparv && pip install 'official-bert[generation]'
    official-bert text_pairs --source=sword:spaRV1909eb --target=sword:engKJV2006eb \\
        --output=verses

    official-bert text_pairs --squad=train-v1.1.json,dev-v1.1.json --output=questions

Line n of one file belongs to line n of the other; verses of SWORD modules belong together by book,
chapter and number (pysword reads them; both Bibles are public domain, 31,000 pairs). From SQuAD's
questions the source is "ANSWER: SENTENCE", the (first) answer and the sentence that holds it, the
target the question. Pairs with an empty side are left out, questions whose answer is not found, and
pairs of which a side has more than --max_words words. The folder has train.tsv, dev.tsv and
test.tsv with the columns source and target; a pair's place is decided by a hash of its source, of
SQuAD's article (of its paragraph where the file has no titles), so that equal ones stay together
and a longer file changes no other pair's.
"""

import contextlib
import functools
import hashlib
import sys
from pathlib import Path

from absl import flags

from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from data_prep.tasks.files import reading
from data_prep.tasks.question_answering import squad_examples
from official_bert.common.errors import UserError, check_installed
from official_bert.common.files import atomic_folder, write_text
from official_bert.common.outside_files import check_below

SWORD = "sword:"
_PARTS = 1000  # of which dev and test have a share each
_MOST_BYTES = 1 << 30  # of a file of SWORD's


def make(
    pairs, output, share: float = 0.06, max_words: int = 0, overwrite: bool = False
) -> dict[str, int]:
    """Write the folder.

    Args:
      pairs: (what decides its place, source, target) of each; `aligned` or `questions`.
      output: the folder to make.
      share: of the pairs that go to dev; as many go to test.
      max_words: the most words of either side, pairs with more are left out; 0: any number.
      overwrite: rename what stands there to NAME.~1~ first.

    Returns: {split: pairs}, and "left out".

    Raises:
      UserError: as `pairs`, or a split has no pair.
    """
    if not 0 < share < 0.5:
        raise UserError(f"--share={share}: it is above 0 and below 0.5")
    rows, left_out = {"train": [], "dev": [], "test": []}, 0
    for group, *pair in pairs:
        pair = [" ".join(text.split()) for text in pair]
        words = [len(text.split()) for text in pair]
        if not all(words) or (max_words and max(words) > max_words):
            left_out += 1
            continue
        rows[_split(" ".join(group.split()), share)].append("\t".join(pair))
    if empty := [name for name, found in rows.items() if not found]:
        raise UserError(f"no pair is left for {empty[0]}; --share or --max_words is too small")
    with atomic_folder(output, overwrite=overwrite) as folder:
        for split, found in rows.items():
            write_text(folder / f"{split}.tsv", "source\ttarget\n" + "\n".join(found) + "\n")
    return {**{split: len(found) for split, found in rows.items()}, "left out": left_out}


def aligned(source, target, sword="/usr/share/sword"):
    """Yield (source, source, target) of each pair.

    Args:
      source, target: files of aligned lines, or "sword:MODULE".
      sword: the folder of SWORD's modules.

    Raises:
      UserError: a side cannot be read, or both differ in length.
    """
    sides = [dict(_texts(name, sword)) for name in (source, target)]
    if any(not name.startswith(SWORD) for name in (source, target)):
        lengths = [len(side) for side in sides]
        if lengths[0] != lengths[1]:
            raise UserError(
                f"{source} has {lengths[0]:,} lines, {target} {lengths[1]:,}: line n of one must "
                "belong to line n of the other"
            )
    for place in dict.fromkeys((*sides[0], *sides[1])):
        read, written = (side.get(place, "") for side in sides)
        yield read, read, written


def questions(paths):
    """Yield (article, "ANSWER: SENTENCE", question) of each question in files of SQuAD; the second
    is empty where the first answer is not in the paragraph.

    Raises:
      UserError: as `squad_examples.read`.
    """
    for path in paths:
        for example in squad_examples.read(path, need_answers=True):
            source, context = "", example.context
            if place := example.answers and squad_examples.find_answer(example):
                starts = squad_examples.sentence_starts(context)
                first = max((start for start in starts if start <= place[0]), default=0)
                end = min((start for start in starts if start >= place[1]), default=None)
                source = f"{context[slice(*place)]}: {context[first:end]}"
            yield example.title or context, source, example.question


def _split(text: str, share: float) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % _PARTS
    return "dev" if number < share * _PARTS else "test" if number < 2 * share * _PARTS else "train"


def _texts(name: str, sword):
    """Return (place, text) of each."""
    if not name.startswith(SWORD):
        return reading.read_lines(name)
    check_installed("pysword", "SWORD modules need", "generation")
    from pysword.modules import SwordModules

    if not Path(sword, "mods.d").is_dir():
        raise UserError(f"--sword={sword}: no folder of SWORD modules (it has no mods.d)")
    check_below(sword, _MOST_BYTES)
    try:
        return list(_verses(SwordModules(str(sword)), name, sword))
    except UserError:
        raise
    except Exception as error:  # of damage pysword makes many kinds
        raise UserError(f"{name}: cannot be read ({type(error).__name__}: {error})") from error


def _verses(modules, name: str, sword):
    known, module = modules.parse_modules(), name.removeprefix(SWORD)
    if module not in known:
        raise UserError(f"{name}: {sword} has {', '.join(sorted(known)) or 'no module'}")
    bible = modules.get_bible_from_module(module)
    if hasattr(bible, "_decompressed_text"):
        bible._decompressed_text = _unpacked(bible._decompressed_text, name)
    for books in bible.get_structure().get_books().values():
        for book in books:
            for chapter, verses in enumerate(book.chapter_lengths, 1):
                found = bible.get_iter([book.name], [chapter])
                for verse, text in zip(range(1, verses + 1), found, strict=True):
                    yield (book.name, chapter, verse), text


def _unpacked(unpack, name: str):
    """Unpack a book once: pysword does so for each verse anew, and takes a damaged one for one
    without text."""

    @functools.lru_cache(4)
    def unpacked(testament, number):
        if not (text := unpack(testament, number)):
            raise UserError(f"{name}: part {number} of {testament} is missing or damaged")
        return text

    return unpacked


def main(_):
    values, asked = flags.FLAGS, command_flags.values(make)
    if not values.squad:
        commands.required("source", "target")
    elif values.source or values.target:
        raise UserError("--squad has both sides; leave --source and --target out")
    files = values.squad or [values.source, values.target]
    read = [values.sword if name.startswith(SWORD) else name for name in files]
    check_outputs(read, outputs=[values.output], overwrite=values.overwrite)
    pairs = questions(files) if values.squad else aligned(*files, values.sword)
    with contextlib.redirect_stdout(sys.stderr):  # pysword prints what it cannot read
        counts = make(pairs, **asked)
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()))


def _define_flags():
    flags.DEFINE_string("source", None, "what is read: a text a line, or sword:MODULE")
    flags.DEFINE_string("target", None, "what is to be written, aligned with it")
    flags.DEFINE_list("squad", [], "files of SQuAD's format in place of both, commas between")
    command_flags.define(aligned, ("source", "target"))
    command_flags.define(make, ("pairs",), least={"max_words": 0})


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
