"""The published numbers: spot checks against the printed tables, and sums that must agree."""

import pytest

from experiments.tables.reporting.paper import TABLES


@pytest.mark.parametrize(
    ("table", "row", "column", "number"),
    [
        ("table1", "BERT LARGE", "CoLA", 60.5),
        ("table2", "BERT BASE", "dev F1", 88.5),
        ("table3", "BERT LARGE", "dev EM", 78.7),
        ("table4", "BERT LARGE", "test", 86.3),
        ("table5", "LTR & No NSP", "SQuAD", 77.8),
        ("table6", "L24 H1024 A16", "LM perplexity", 3.23),
        ("table7", "Concatenation, last four", "dev F1", 96.1),
        ("table8", "100/0/0", "NER feature-based", 94.0),
    ],
)
def test_printed_numbers(table, row, column, number):
    assert TABLES[table].number(row, column) == number


def test_absent_numbers_are_none():
    assert TABLES["table4"].number("BERT BASE", "test") is None
    assert TABLES["table5"].number("no such row", "MNLI-m") is None


def test_glue_averages_count_mnli_twice_and_leave_out_wnli():
    table = TABLES["table1"]
    # The paper's own average of the pre-OpenAI row cannot be checked: it is over other systems.
    for row in ("BiLSTM+ELMo+Attn", "OpenAI GPT", "BERT BASE", "BERT LARGE"):
        nine = [table.number(row, column) for column in table.columns[:-1]]
        assert len(nine) == 9
        assert sum(nine) / 9 == pytest.approx(table.number(row, "Average"), abs=0.25)
    assert sum(table.number("BERT BASE", c) for c in table.columns[:-1]) == pytest.approx(716.4)


def test_sizes_of_table6_have_falling_perplexity_and_rising_scores():
    rows = TABLES["table6"].rows.values()
    perplexities = [row["LM perplexity"] for row in rows]
    assert perplexities == sorted(perplexities, reverse=True)
    for column in ("MNLI-m", "MRPC", "SST-2"):
        scores = [row[column] for row in rows]
        assert scores == sorted(scores)
