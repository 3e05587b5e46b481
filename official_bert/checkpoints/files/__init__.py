"""Files of named arrays, read and written without the libraries that made them.

Begin with `safetensors_files`, in which this project and Hugging Face keep weights.
`tensor_bundle` reads TensorFlow's checkpoints, `hdf5_files` those of Keras. `guarded_process` reads
files of strangers in a process of its own. Nothing here knows a model; the formats in `checkpoints`
and systems beyond the paper call it.
"""
