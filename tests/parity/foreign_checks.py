"""The zoo of foreign tokenisers against the library `tokenizers`, in Python and in graphs."""

import json
import sys
from pathlib import Path

from tests.parity.results import Result, Results, check, some

sys.path.append(str(Path(__file__).parents[1] / "official_bert"))  # where the zoo is

_EACH = some(50, 500)  # texts of each script
_AT_ONCE = 1000


@check("tokenizers", "tensorflow_text")
def foreign_tokenizers() -> Results:
    """Ids and offsets of every tokeniser of the zoo, one line each."""
    from tokenizer_zoo import BLOCKS, IN_GRAPH, OF_BYTES, ZOO, texts

    found, graphs = texts(_EACH), some([*IN_GRAPH][2::8], [*IN_GRAPH, *OF_BYTES])
    for name, make in ZOO.items():
        made = make()
        rows = made.encode_batch(found, add_special_tokens=False)
        expected = [(row.ids, row.offsets) for row in rows]
        where = {"Python": _in_python} | ({"a graph": _in_graph} if name in graphs else {})
        for place, encode in where.items():
            pairs = zip(encode(json.loads(made.to_str()), found), expected, strict=True)
            differ = sum(ours != theirs for ours, theirs in pairs)
            what = f"texts whose ids or offsets differ, of {len(found):,} in {len(BLOCKS)} scripts"
            yield Result(f"{name}, in {place}: {what}", "tokenizers", differ, 0)


def _in_python(contents, found):
    from official_bert.tokenization import ForeignTokenizer

    return map(ForeignTokenizer(contents).encode_with_offsets, found)


def _in_graph(contents, found):
    import tensorflow as tf

    from official_bert.export.tokenizer_layer import in_graph_tokenizer
    from official_bert.tokenization import ForeignTokenizer

    graph = in_graph_tokenizer(ForeignTokenizer(contents))
    for start in range(0, len(found), _AT_ONCE):
        pieces = graph.tokenize_with_offsets(tf.constant(found[start : start + _AT_ONCE]))
        ids, starts, ends = (values.to_list() for values in pieces)
        for row, first, last in zip(ids, starts, ends, strict=True):
            yield row, [*zip(first, last, strict=True)]
