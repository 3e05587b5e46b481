"""SQuAD: its examples, its task and its metrics."""
