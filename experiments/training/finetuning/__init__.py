"""Fine-tuning (section 4): the run, its data, scores and report.

Begin with `finetune_run.run`, which goes from the examples to the saved model. `finetune_data`
makes its batches. `frozen_features` and `feature_tagger` are section 5.3: a tagger on the encoder's
states, which are computed once. `example_scores` and `finetune_report` write what a run leaves, and
`advice` speaks up where it learnt little. `one_shot_models` is for models without training steps.
Called by `training.runs.finetune`.
"""
