"""A table of the paper, from its description to the page with its verdicts, in four rooms.

`planning` describes a table as data and lists its cells; `run` runs them; `judging` compares the
scores with the paper's claims; `reporting` writes the page. `experiments.ablate` calls all four.
"""
