"""A table as data, and its plan: rows, columns, claims, cells and cost.

Begin with `ablation`, the dataclasses that a configuration of a table returns, and `claims`, what
the paper and we say of it. `plan.plan_table` turns an `Ablation` into cells that `tables.run` runs:
those of its data (`data_cells`), its pre-trainings (`pretrain_cells`), a fine-tuning for each of a
score's `repetitions` (`finetune_cells`), and questions without any (`question_cells`). `places`
finds the files that it names, `cell_inputs` says how they enter the key of a cell.

`cost` counts the FLOPs of each training and turns them into seconds, by a rate that `step_rate`
measures. `dry_run` prints them. `experiments.ablate` calls this room first.
"""
