"""Pre-training (section 3.1, appendix A.2): the run, its batches, the held-out losses.

Begin with `pretrain_run.run`, which goes from the records to the saved model. `pretrain_batches`
orders the records of its phases, `heldout` measures losses on other records, and `expectation`
prints which loss to expect. `zero_shot_probes` asks a finished model for hidden pieces. Called by
`training.runs.pretrain`.
"""
