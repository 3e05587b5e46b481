"""SQuAD 1.1 and 2.0 (sections 4.2 and 4.3): its examples, its task and its metrics.

Begin with `squad`, the task: features of windows, answers, scores. `squad_examples` reads the
questions and finds their answers in the text; `squad_metrics` is the official evaluation. The best
span of scores is chosen by `official_bert.span_answers`, as in exported models.
"""
