"""From the scores of a table to verdicts on the paper's claims.

Begin with `verdicts`: its docstring has the rules. It asks `intervals` how certain a difference is
(an analysis of variance over seeds and examples), `p_values` and `power`; `other_methods` are
plainer intervals that check it. `results` is results.json as dataclasses, `archives` keeps the
scores by example, and `judgement.judge_results` is called by `experiments.ablate` and `report`.
"""
