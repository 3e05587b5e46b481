"""Checkpoints in and out: the project's own model folder, Google's, Hugging Face's and KerasHub's.

Begin with `names`, the one table of every variable's name in every format, and `model_folder`, the
format of this project (`model_settings` is its model.json). `google`, `hugging_face` and
`keras_hub` read and write the others through `transfer`, which reports each tensor; `files` knows
the kinds of file that hold arrays. `finding.resolve.load` opens whichever of them a path or a name
stands for; `official_bert.load` and every command call it.
"""
