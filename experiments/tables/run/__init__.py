"""The cells of a table and the processes that run them."""
