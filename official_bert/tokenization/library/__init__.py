"""Tokenisers in the JSON of the library `tokenizers` (`tokenizer.json`).

Begin with `foreign`: the library computes, `ForeignTokenizer` gives it the interface of the others.
`tokenizer_json` reads the parts of such a file, `roles` finds its special tokens, and `bounds`
refuses one that would take all memory. `own_json` is the other way: BERT's tokeniser as such a
file. Folders of Hugging Face come here.
"""
