"""The folder of a run: its state, checkpoints, inputs and provenance.

Begin with `run_folder`: the list of its files, and when a run is new, continued or finished.
`run_results` is what results.json holds, as dataclasses (`dataclass_json`). `checkpointing` saves
all that the next steps depend on, `inputs` notes the files that were read, `provenance` the code
and packages, and `progress` the metrics. `shared_prefix` begins a run at the end of another one.
`training.runs` opens the folder; the loop in `step` writes to it.
"""
