"""The published numbers, as data: Tables 1 to 8 of the paper and what its text states of Figure 5.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", NAACL 2019 (the numbers of the first arXiv version differ in places and are not
mixed in). Scores are percentages as printed. A table's rows and columns carry the names by which
the configurations in `experiments/configs` refer to them.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class PaperTable:
    """One table of the paper.

    Attributes:
      name: "table5"; also the name of its configuration file.
      title: what the table shows, without the number.
      section: where the paper discusses it.
      split: the data the paper scores on.
      columns: the printed columns, in order.
      rows: row label -> column -> the printed number; a number the paper leaves out is absent.
    """

    name: str
    title: str
    section: str
    split: str
    columns: tuple[str, ...]
    rows: dict[str, dict[str, float]]

    def number(self, row: str, column: str) -> float | None:
        """Return the printed number, or None where the paper has none (unknown rows included)."""
        return self.rows.get(row, {}).get(column)


def _table(name, title, section, split, columns, rows) -> PaperTable:
    """Return a PaperTable; `rows`: label -> a number for each column, None where the paper has
    none."""
    named = {}
    for label, numbers in rows.items():
        if len(numbers) != len(columns):
            raise ValueError(f"{name}, row {label}: {len(numbers)} numbers, {len(columns)} columns")
        named[label] = {c: float(n) for c, n in zip(columns, numbers, strict=True) if n is not None}
    return PaperTable(name, title, section, split, tuple(columns), named)


TABLE1 = _table(
    "table1",
    "GLUE test results",
    "4.1",
    "test (scored by the GLUE server)",
    # F1 for QQP and MRPC, Matthews correlation for CoLA, Spearman correlation for STS-B, accuracy
    # for the rest. The average is over the nine columns, MNLI counted twice; WNLI is left out.
    ("MNLI-m", "MNLI-mm", "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC", "RTE", "Average"),
    {
        "Pre-OpenAI SOTA": (80.6, 80.1, 66.1, 82.3, 93.2, 35.0, 81.0, 86.0, 61.7, 74.0),
        "BiLSTM+ELMo+Attn": (76.4, 76.1, 64.8, 79.8, 90.4, 36.0, 73.3, 84.9, 56.8, 71.0),
        "OpenAI GPT": (82.1, 81.4, 70.3, 87.4, 91.3, 45.4, 80.0, 82.3, 56.0, 75.1),
        "BERT BASE": (84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4, 79.6),
        "BERT LARGE": (86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1, 82.1),
    },
)

TABLE2 = _table(
    "table2",
    "SQuAD 1.1 results",
    "4.2",
    "dev and test",
    ("dev EM", "dev F1", "test EM", "test F1"),
    {
        "BERT BASE": (80.8, 88.5, None, None),
        "BERT LARGE": (84.1, 90.9, None, None),
        "BERT LARGE, ensemble": (85.8, 91.8, None, None),
        "BERT LARGE + TriviaQA": (84.2, 91.1, 85.1, 91.8),
        "BERT LARGE + TriviaQA, ensemble": (86.2, 92.2, 87.4, 93.2),
    },
)

TABLE3 = _table(
    "table3",
    "SQuAD 2.0 results",
    "4.3",
    "dev and test",
    ("dev EM", "dev F1", "test EM", "test F1"),
    {"BERT LARGE": (78.7, 81.9, 80.0, 83.1)},
)

TABLE4 = _table(
    "table4",
    "SWAG accuracy",
    "4.4",
    "dev and test",
    ("dev", "test"),
    {
        "BERT BASE": (81.6, None),
        "BERT LARGE": (86.6, 86.3),
        "OpenAI GPT": (None, 78.0),
    },
)

TABLE5 = _table(
    "table5",
    "Effect of the pre-training tasks",
    "5.1",
    "dev",
    ("MNLI-m", "QNLI", "MRPC", "SST-2", "SQuAD"),  # accuracy; F1 for SQuAD
    {
        "BERT": (84.4, 88.4, 86.7, 92.7, 88.5),
        "No NSP": (83.9, 84.9, 86.5, 92.6, 87.9),
        "LTR & No NSP": (82.1, 84.3, 77.5, 92.1, 77.8),
        "LTR & No NSP + BiLSTM": (82.1, 84.1, 75.7, 91.6, 84.9),
    },
)

TABLE6 = _table(
    "table6",
    "Effect of model size",
    "5.2",
    "held-out text; dev, mean of 5 restarts of fine-tuning",
    ("LM perplexity", "MNLI-m", "MRPC", "SST-2"),
    {
        "L3 H768 A12": (5.84, 77.9, 79.8, 88.4),
        "L6 H768 A3": (5.24, 80.6, 82.2, 90.7),
        "L6 H768 A12": (4.68, 81.9, 84.8, 91.3),
        "L12 H768 A12": (3.99, 84.4, 86.7, 92.9),
        "L12 H1024 A16": (3.54, 85.7, 86.9, 93.3),
        "L24 H1024 A16": (3.23, 86.6, 87.8, 93.7),
    },
)

TABLE7 = _table(
    "table7",
    "Feature-based approach: CoNLL-2003 named entity recognition",
    "5.3",
    "dev and test",
    ("dev F1", "test F1"),
    {
        "ELMo": (95.7, 92.2),
        "BERT LARGE, fine-tuned": (96.6, 92.8),
        "BERT BASE, fine-tuned": (96.4, 92.4),
        "Embeddings": (91.0, None),
        "Second-to-last hidden": (95.6, None),
        "Last hidden": (94.9, None),
        "Weighted sum, last four": (95.9, None),
        "Concatenation, last four": (96.1, None),
        "Weighted sum, all layers": (95.5, None),
    },
)

TABLE8 = _table(
    "table8",
    "Effect of the masking procedure (mask / same / random)",
    "C.2",
    "dev",
    ("MNLI", "NER fine-tuned", "NER feature-based"),
    {
        # The first row's NER score is not Table 7's 96.4: it is a different run.
        "80/10/10": (84.2, 95.4, 94.9),
        "100/0/0": (84.3, 94.9, 94.0),
        "80/0/20": (84.1, 95.2, 94.6),
        "80/20/0": (84.4, 95.2, 94.7),
        "0/20/80": (83.7, 94.8, 94.6),
        "0/0/100": (83.6, 94.9, 94.6),
    },
)

# Figure 5 prints no numbers. Its text says that a million steps give about 1.0 point of MNLI more
# than half a million, and that masked LM leads left-to-right almost from the start. Points read off
# the drawing by eye are not facts and are not here.
FIGURE5 = _table(
    "figure5",
    "Number of pre-training steps",
    "C.1",
    "MNLI dev",
    ("MNLI-m",),
    {},
)

TABLES: dict[str, PaperTable] = {
    table.name: table
    for table in (TABLE1, TABLE2, TABLE3, TABLE4, TABLE5, TABLE6, TABLE7, TABLE8, FIGURE5)
}
