"""Text to one sentence a line, a blank line between documents: the corpus format of the paper.

    python -m data_prep.sentences --input='books/*.txt' --output=corpus
    python -m data_prep.sentences --input='wiki_*.gz' --output=corpus --documents=articles
    python -m data_prep.sentences --input='zh/*.txt' --output=corpus --documents=files --language=zh

`--documents` says where documents begin (`data_prep.text_layout`): at chapter headings, at blank
lines, at every line, or at files. Each input file becomes one output file, plain or gzip.

English is split by nupunkt, every other language by sentencex (both MIT, no downloads). On 35 short
real and hard English passages (tests/data_prep/hard_sentences.txt) nupunkt found all sentence ends
and three false ones at 7 MB/s; syntok missed 2 and made 6 false ones at 1.4 MB/s; sentencex, which
never splits inside quotation marks, missed 12, but knows some 300 languages.
"""

import functools
import importlib.metadata
import json
import multiprocessing
import os
import re
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from absl import flags

from data_prep import text_layout
from data_prep.documents import expand_inputs, text_lines
from official_bert import commands
from official_bert.errors import UserError
from official_bert.files import atomic_write

LAYOUTS = ("chapters", "articles", "files", "lines")

# Written without blanks between words: wrapped lines are joined without one.
_NO_BLANKS = ("zh", "ja", "th", "lo", "km", "my", "bo", "yue", "wuu")
# Single-word "sentences" that are really the title of the name that follows.
_TITLES = re.compile(
    r"^[\"'“‘(\[]*(Lt|Gov|Cf|Capt|Maj|Sgt|Col|Gen|Rev|Hon|Messrs|Mme|Mlle|No|St)\.$"
)


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of one paragraph, each stripped, inner white space made single blanks.

    Nothing but white space is lost: the sentences joined with blanks are the paragraph.

    Args:
      text: one paragraph.
      language: an ISO 639 code ("en", "zh", "ko", "pt-br", ...).
    """
    text = " ".join(text.split())
    if not text:
        return []
    return _splitter(language)(text)


@functools.cache
def _splitter(language: str):
    if language == "en":
        import nupunkt

        return lambda text: _rejoin(nupunkt.sent_tokenize(text))
    import sentencex

    def split(text):
        stripped = (sentence.strip() for sentence in sentencex.segment(language, text))
        return [sentence for sentence in stripped if sentence]

    return split


def _rejoin(sentences: list[str]) -> list[str]:
    """Puts a lone title ("Lt.") in front of its name, and marks without words behind their text."""
    joined = []
    for sentence in sentences:
        wordless = not any(character.isalnum() for character in sentence)
        if joined and (_TITLES.match(joined[-1]) or wordless):
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined
