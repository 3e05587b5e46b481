"""The data of section 3.1: pairs, masks, the token store, shards and record files."""
