"""Common ground of the three packages: errors, whole files, JSON, typed values.

Begin with `errors.UserError`, the one exception for mistakes of a user, and `files`, the rule that
a file is whole or absent and replaces nothing. `json_files` and `outside_files` read what others
wrote, `typed` checks values against annotations. Nothing here knows BERT or imports Keras.
"""
