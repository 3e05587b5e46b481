"""The data of section 3.1: pairs, masks, the token store, shards and record files.

Begin with the two algorithms of the paper, `next_sentence` and `masking`: pure functions of arrays
and of `random_streams`. The rest brings them to any size of corpus, step by step: `store_tasks`
tokenises into a `token_store`, `rows` draws pairs and masks, `shards` shuffles and writes them as
`tf_example`. The command `create_pretraining_data` runs the steps; `reading` is the way back.
"""
