"""One run: a pre-training or a fine-tuning, from its configuration to its model folder.

Begin with `runs.pretrain`, then read the rooms in the order of a run: `settings` (its fields),
`start` (checks and first weights), `pretraining` or `finetuning` (the run, top to bottom), `step`
(the training step and its loop), `folder` (what stays on disk). `answers` uses a finished model,
and `search` makes many runs. The commands call `runs` and `search`; tables call `runs`.
"""
