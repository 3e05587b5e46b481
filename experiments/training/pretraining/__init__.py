"""Pre-training: the run, its batches, the held-out losses."""
