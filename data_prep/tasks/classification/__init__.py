"""Tasks that classify texts or choose among them: GLUE, SWAG, users' own files.

Begin with `sequence_classification`: features, predictions and scores of every class of task here.
`glue` and `text_classification` add how files are read, `swag` one sequence for each choice.
`data_prep.tasks.get_task` finds them by name.
"""
