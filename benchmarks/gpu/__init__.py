"""Measurements on a machine with a GPU, in pieces that continue where they were stopped."""
