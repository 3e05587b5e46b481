"""The page of a table: scores beside the paper's, verdicts, plots.

Begin with `report.write`, which makes the page from results.json alone. `assemble` collects those
results from finished cells before. `score_tables`, `wording`, `plots` and `forest_plots` make the
page's tables, sentences and pictures, with `number_words` and without `implied_claims`; `paper`
holds the paper's printed numbers. `overview` sets the claims of several tables side by side.
`experiments.ablate` and `experiments.report` call this room.
"""
