"""Successors of BERT: their objectives, teachers and students, vectors of sentences."""
