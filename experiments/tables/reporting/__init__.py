"""Reports of a table: scores beside the paper's, plots, pages."""
