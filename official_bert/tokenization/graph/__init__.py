"""Tokenisers as TensorFlow operations, for serving and tf.data.

Begin with `in_graph`: `reference.py` once more, on the `characters` of all texts of a batch. Its
knowledge of Unicode comes from tables that the reference fills (`code_points`). `in_graph_packing`
joins and cuts the ids as `sequences` does, `in_graph_windows` divides them as `windows` does.
`in_graph_foreign`, `foreign_tables` and `added_tokens` are for other people's WordPiece.
`official_bert.export` puts all of it into a SavedModel.
"""
