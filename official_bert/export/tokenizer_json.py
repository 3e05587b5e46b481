"""The tokeniser beside an export of ids: `tokenizer.json`, which the library `tokenizers` reads.

It cuts, joins and pads as in training, so that a client is three lines:

    tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
    rows = tokenizer.encode_batch(["a moving film", "dull"])
    batch = {"input_ids": [row.ids for row in rows], "segment_ids": [row.type_ids for row in rows],
             "input_mask": [row.attention_mask for row in rows]}
"""

import json
from pathlib import Path

from official_bert.common.files import write_text
from official_bert.common.json_files import read_json
from official_bert.tokenization.own_json import fast_tokenizer
from official_bert.tokenization.tokenizer_json import padding

FILE = "tokenizer.json"


def write(folder: Path, tokenizer, head: str, settings) -> list[str]:
    """Writes the file where the library has such a tokeniser.

    Args:
      folder: where the tokeniser has written its vocabulary.
      tokenizer: the model's.
      head: of `exports.HEADS`.
      settings: `ServingSettings`: lengths and truncation.

    Returns:
      What the file does not say, a sentence each.
    """
    path = folder / FILE
    if tokenizer.kind == "word_piece":
        contents = fast_tokenizer(tokenizer)
    elif tokenizer.kind == "sentence_piece":
        return [
            f"no {FILE}: the library sentencepiece reads {tokenizer.file_name}, and ALBERT's "
            "own steps around it are in official_bert.SentencePieceTokenizer"
        ]
    else:
        contents = tokenizer.written() if tokenizer.kind == "tokenizer_json" else read_json(path)
    truncation, notes = _truncation(tokenizer, head, settings)
    contents["truncation"] = truncation
    contents["padding"] = padding(tokenizer)
    write_text(path, json.dumps(contents, indent=1, ensure_ascii=False) + "\n")
    return notes


def _truncation(tokenizer, head, settings):
    if settings.truncation == "head+tail":
        return None, [f"{FILE} does not cut: it cannot keep the beginning and the end of a text"]
    cut = {
        "max_length": settings.max_seq_length,
        "direction": {"head": "Right", "tail": "Left"}[settings.truncation],
        "strategy": "LongestFirst",
        "stride": 0,
    }
    if head == "span":
        # Windows of the passage; beside the longest question they begin where they do in training.
        room = settings.max_seq_length - settings.max_query_length - 2 - tokenizer.separators
        overlap = max(room - settings.doc_stride, 0)
        cut |= {"direction": "Right", "strategy": "OnlySecond", "stride": overlap}
    return cut, []
