"""One Python file an experiment: `get_config(scale)` returns its dataclass.

A file's docstring gives the command, the cost and the expected result. Begin with `pretrain` and
`glue`, then `table5`, an ablation: its variants are `dataclasses.replace` of one base. `scales`
holds the sizes that several files share. `--config=NAME:SCALE` finds these files by their names.
"""
