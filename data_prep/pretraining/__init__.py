"""Section 3.1's data: pairs, masks, the token store, shards and record files."""
