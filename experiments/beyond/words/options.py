"""The options of models that read word vectors."""

import dataclasses

from experiments.training.settings.options import Options, path_field


@dataclasses.dataclass(frozen=True)
class WordOptions(Options):
    """The word vectors that are read in the place of a BERT."""

    # With model="cbow" or "bilstm_attention": a file of GloVe's or word2vec's text format.
    word_vectors: str = path_field("file")
    # For bilstm_attention: ELMo's folder, whose states are read in place of vectors or beside them.
    elmo: str = path_field()

    of_a_start = True
