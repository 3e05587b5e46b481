"""A table as data: its rows, columns, claims, cells and cost."""
