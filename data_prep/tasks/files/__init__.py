"""Files of examples: their formats, rows and columns.

Begin with `formats.detect_format`: it looks at the beginning of a file and returns a `table.Table`,
whose `rows` everybody reads. `reading` turns lines into rows of TSV, CSV and JSON; `token_lines`
does so for files with one token a line. Tasks and the commands `predict` and `evaluate` read files
here.
"""
