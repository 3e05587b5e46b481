"""Records made in tests, and what is in them."""

import hashlib
import json
from pathlib import Path

import numpy as np

from data_prep.create_pretraining_data import create
from data_prep.pretraining.record_files import parse_example, read_records

OPTIONS = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 3}


def make(inputs, vocab, output, **options):
    options = OPTIONS | {"num_workers": 1, "progress": False} | options
    return create(inputs, vocab, str(output), **options)


def examples(folder):
    """All examples of a folder in file order: feature name to [examples, values]."""
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    parsed = [
        parse_example(record)
        for shard in manifest["shards"]
        for record in read_records(str(Path(folder) / shard["file"]), manifest["compression"])
    ]
    return {name: np.stack([example[name] for example in parsed]) for name in parsed[0]}


def digest(folder):
    """One digest of all record files below a folder."""
    total = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.tfrecord")):
        total.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return total.hexdigest()
