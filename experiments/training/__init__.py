"""Running one experiment: configuration, trainer and loop, run folders, pre-training and fine-tuning runs."""
