"""Sections 4 and 5 of the paper: pre-training, fine-tuning, ablations, and their commands.

The modules of this folder are the commands and nothing else. Begin with `pretrain` or `finetune`:
each reads a configuration of `configs` and calls `training.runs`. `ablate` runs the many runs of a
table (`tables.planning`, then `tables.run`) and judges and reports them (`tables.judging`,
`tables.reporting`). `beyond` holds systems that are not the paper's; it can be deleted.
"""
