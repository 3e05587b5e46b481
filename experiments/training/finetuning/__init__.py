"""Fine-tuning: the run, its data, scores and report."""
