"""ELMo against bilm-tf."""

import json

import keras
import numpy as np

from experiments.beyond.elmo.model import load_elmo
from experiments.beyond.elmo.shape import character_ids
from tests.parity import peers
from tests.parity.results import Result, check, some


@check("h5py", needs_data=True)
def bilm_tf(data_dir, batches=None) -> list[Result]:
    """ELMo: embeddings that bilm-tf's tests made in batches of three, each row of which goes on
    where the batch before ended; all ten batches, or the first ones."""
    import h5py

    folder = data_dir / "elmo_fixture"
    files = json.loads((folder / "lm_embeddings_sentences.json").read_text())
    expected = [h5py.File(folder / f"lm_embeddings_{row}.hdf5") for row in range(3)]
    model, states, differences = load_elmo(folder), None, []
    for number, sentences in enumerate(list(zip(*files, strict=True))[: batches or some(3, None)]):
        rows = [["[CLS]", *sentence.split(), "[SEP]"] for sentence in sentences]
        length = max(map(len, rows))
        characters = np.zeros((3, length, 50), "int32")
        mask = np.zeros((3, length), "int32")
        for row, words in enumerate(rows):
            characters[row, : len(words)] = character_ids(words)
            mask[row, : len(words)] = 1
        outputs = model({"character_ids": characters, "input_mask": mask}, states=states)
        states = outputs["states"]
        found = keras.ops.convert_to_numpy(outputs["sequence_output"])
        for row, words in enumerate(rows):
            theirs = np.concatenate([*expected[row][str(number)][...]], axis=-1)
            size = 1 + np.abs(theirs)  # its tests allow for it too
            ours = found[row, 1 : len(words) - 1]
            differences.append(peers.farthest(ours / size, theirs / size))
    what = f"embeddings of {len(differences)} sentences, over 1 plus their size; its tests' ELMo"
    return [Result(what, "allenai/bilm-tf", max(differences), 1e-6)]
