"""Intervals, power and verdicts of a table's scores."""
