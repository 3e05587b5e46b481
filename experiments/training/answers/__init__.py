"""A fine-tuned model at work: predictions, files of answers, exports.

Begin with `predictor.Predictor`, a model folder with its task. `answer_files` writes an answer
beside each row of an input, and `export_model` exports the folder. The commands `predict`,
`evaluate` and `export` call this room.
"""
