"""The cells of a table and the processes that run them.

Begin with `grid`: a cell is one piece of work in a folder that is named by all that decides its
result, so nothing is run twice. `pool` runs cells in worker processes on `devices`, and `cells`
says what each kind of cell does. `origins` tells on which code and machines the results were made.
"""
