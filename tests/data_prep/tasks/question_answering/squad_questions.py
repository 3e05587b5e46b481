"""A paragraph, questions about it in SQuAD's format, and scores that choose spans."""

import json

import numpy as np

CONTEXT = "Peter was born in Paris. The big red dog lives in London, the city of the river."


def document(*questions):
    return json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}]})


def question(id="q1", text="Who lives in London?", answer="The big red dog", start=None, **more):
    start = CONTEXT.index(answer) if start is None else start
    return {
        "id": id, "question": text, "answers": [{"text": answer, "answer_start": start}], **more
    }  # fmt: skip


IMPOSSIBLE = {"id": "q2", "question": "Who ran?", "answers": [], "is_impossible": True}


def logits_of(features, length=40, start=None, end=None):
    """Return logits that choose the labelled span, or the given one, in every window."""
    outputs = {"start_logits": [], "end_logits": []}
    for feature in features:
        for name, place in (("start", start), ("end", end)):
            row = np.zeros(length)
            row[feature[f"{name}_positions"] if place is None else place] = 5.0
            outputs[f"{name}_logits"].append(row)
    return outputs
