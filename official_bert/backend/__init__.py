"""Kernels behind plain formulas, and what Keras itself is told of the models.

Nothing here is needed to understand BERT: `layers`, `losses` and `randomness` say what is computed,
and call a kernel where one was measured to pay. `tensorflow_kernels`, `tensorflow_lstm` and
`jax_kernels` do the same faster. `fused_attention` chooses between products and `pallas_attention`.
`place_hash` draws the masks of dropout on every backend; begin with it. `row_batches` answers many
rows, by a function that `compiled` compiles.
"""
