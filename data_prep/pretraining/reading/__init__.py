"""Pre-training records as training reads them: files, sets, batches, masks.

Begin with `record_sets.open_records`, then `numpy_batches`, which gives the batches in an order
that the seed alone decides (`philox`). `record_files` reads TFRecords without TensorFlow, and
`record_checks` has the schema. `dynamic_masking` draws new masks in every epoch; `jax_masking`
draws the same ones on a device. Training comes here through `data_prep.records`.
"""
