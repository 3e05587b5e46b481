"""Sections 4 and 5 of the paper: pre-training, fine-tuning, ablations, and their commands."""
