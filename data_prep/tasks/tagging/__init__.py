"""Tasks that tag tokens: CoNLL-2003 and files like it."""
