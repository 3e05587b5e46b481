"""Systems that are not in BERT's paper, one file each; `experiments.training.start.starts` finds them."""
