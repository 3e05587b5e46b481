"""Checkpoints in and out: the project's own model folder, Google's, Hugging Face's and KerasHub's.

`model_folder` is the format of this project. `google`, `huggingface` and `keras_hub` translate to
and from it with the one table of variable names in `names`. `resolve.load` opens whichever of
them a path or a preset's name stands for.
"""
