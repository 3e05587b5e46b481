"""Files of examples: their formats, rows and columns."""
