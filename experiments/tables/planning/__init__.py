"""A table as data, and its plan: rows, columns, claims, cells and cost.

Begin with `ablation`, the dataclasses that a configuration of a table returns, and `claims`, what
the paper says of it. `plan.plan` turns an `Ablation` into cells that `tables.run` runs, those of
its text by `data_cells`, a fine-tuning for each of a score's `repetitions`; `key_fields` is what
their keys leave out or add. `cost` estimates them from FLOPs and a `step_rate` that is measured,
and `dry_run` prints the plan. `experiments.ablate` calls this room first.
"""
