"""Tokenisers in the JSON of the library `tokenizers`."""
