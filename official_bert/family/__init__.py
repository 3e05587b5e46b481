"""Successors of BERT: shapes and names, objectives, teachers and students, vectors of sentences."""
