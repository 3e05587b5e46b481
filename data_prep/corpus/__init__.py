"""Text for pre-training: files, layouts, markup, corpora by name, and a WordPiece learner.

The way of a text is `input_files` (which files), `packed_files` and `text_files` (their lines),
`sources` and `text_layout` (documents of paragraphs), `sentence_splitter`. Begin with `sources`.
The commands of `data_prep` call these; tasks read their files through `packed_files` and
`text_files` too. `wordpiece_learner` stands apart: it learns a vocabulary from counts of words.
"""
