"""The mixture of NLI files where MNLI's training set is not at hand."""

import pytest

from experiments.tables.run import nli_mixture
from official_bert.common.errors import UserError


def test_nli_mixture_keeps_premises_apart(tmp_path):
    rows = [f"p{i // 3}\th{i}\t{('entailment', 'neutral', 'contradiction')[i % 3]}" for i in
            range(300)]  # fmt: skip
    (tmp_path / "mnli.tsv").write_text("sentence1\tsentence2\tgold_label\n" + "\n".join(rows))
    (tmp_path / "snli.tsv").write_text("premise\thypothesis\tlabel\nq\tr\tneutral\n")
    mnli, snli = (str(tmp_path / name) for name in ("mnli.tsv", "snli.tsv"))
    written = nli_mixture.mix(mnli, [snli], tmp_path / "out")
    assert written["train"] + written["dev"] == 301 and written["dev"] > 60
    assert nli_mixture.counts(mnli, snli) == tuple(written.values())
    premises = []
    for name in ("train", "dev"):
        lines = (tmp_path / "out" / f"{name}.tsv").read_text().splitlines()[1:]
        premises.append({line.split("\t")[0] for line in lines})
    assert not premises[0] & premises[1]
    (tmp_path / "snli.tsv").write_text("premise\thypothesis\tlabel\nq\tr\tmaybe\n")
    with pytest.raises(UserError, match="snli.tsv line 2: label 'maybe'"):
        nli_mixture.mix(mnli, [snli], tmp_path / "out")
