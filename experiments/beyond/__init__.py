"""Systems that are not in BERT's paper, one file each; `starts.py` of `training` finds them."""
