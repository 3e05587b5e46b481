"""Running one experiment: configuration, trainer, loop, run folders, pre-training, fine-tuning."""
