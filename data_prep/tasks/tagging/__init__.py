"""Tasks that tag words: CoNLL-2003 (section 5.3) and files like it.

Begin with `tagged_document`, the example, and `conll`, the task. `conll_files` reads documents from
files, `conll_columns` says what a column of tags means (phrases, chunks, single words) and how it
is scored, and `character_spans` turns entities of annotation tools, given by characters, into tags
of words.
"""
