"""The start of a run: checks of its configuration, its examples, and its first weights.

Begin with `preflight`, and `finetuning_preflight` beside it: all that can be wrong is found before
TensorFlow is loaded. `initialization` decides which kind of model a run starts from; BERT's is
`initial_state`, which gives the encoder, the head (`reuse_head`) and their weights. `examples`
reads a task's splits, `class_weights` weighs their labels. `training.runs` and the two runs call
this room.
"""
