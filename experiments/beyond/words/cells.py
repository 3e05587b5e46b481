"""The work of cells that learn word vectors."""

from pathlib import Path


def learn_vectors(config: dict, folder: Path) -> dict:
    """Learn vectors of words from a corpus, see `experiments.beyond.words.word2vec`."""
    from experiments.beyond.words import word2vec

    words, vectors = word2vec.learn(config["inputs"], **config["options"])
    word2vec.write(folder / "vectors.txt", words, vectors)
    return {"words": len(words), "width": vectors.shape[1]}
