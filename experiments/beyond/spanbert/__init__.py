"""SpanBERT: masked spans and their boundaries."""

from official_bert.extension import Extension

EXTENSION = Extension(
    "spanbert",
    objectives={
        "span_boundary": "experiments.beyond.spanbert.objective:SpanBoundary",
    },
    flops={
        "span_boundary": "experiments.beyond.spanbert.costs:span_boundary",
    },
    recipes={
        "spanbert": "experiments.beyond.side_by_side.successors:spanbert",
    },
)
