"""A table of the paper: an ablation as data, its plan and cells, claims, intervals, reports."""
