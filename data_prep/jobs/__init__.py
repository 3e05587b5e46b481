"""Long jobs: on this machine's cores or a cluster, in folders that resume, on any storage.

Every command uses this room, those of `experiments` too. Begin with `commands.run`, the start and
end of a command; `command_flags` makes its flags and `outputs` checks its paths. `workers` runs
tasks that can be interrupted, in `processes` of this machine; `beam` runs the same tasks on a
cluster. `output_folder` and `locks` say who may write a folder. All reading and writing goes
through `storage`, that of vocabularies through `vocabularies`; `checked_json` and `array_files` are
files with a checksum.
"""
