"""The folder of a run: its state, checkpoints, inputs and provenance."""
