"""The work of cells that learn word vectors."""

from pathlib import Path

from official_bert.common.files import remove


def learn_vectors(config: dict, folder: Path) -> dict:
    """Learn vectors of words from a corpus, see `experiments.beyond.words.word2vec`."""
    from experiments.beyond.words import word2vec

    words, vectors = word2vec.learn(config["inputs"], **config["options"])
    remove(folder / "vectors.txt")  # of a process that was killed here
    word2vec.write(folder / "vectors.txt", words, vectors)
    return {"words": len(words), "width": vectors.shape[1]}
