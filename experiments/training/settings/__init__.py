"""Configurations of a run: their fields, JSON, files and flags, and what a run costs."""
