"""The start of a fine-tuning: checkpoints, their checks, and its examples."""
