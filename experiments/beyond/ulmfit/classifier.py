"""ULMFiT's classifier (Howard and Ruder 2018, section 3.3): its concat pooling, on any encoder."""

import keras
from keras import ops

from experiments.beyond.ulmfit.layers import PooledBlock
from experiments.beyond.ulmfit.shape import AwdLstmConfig
from official_bert.heads import BertClassifier
from official_bert.randomness import HEAD_DROPOUT, fold_in
from official_bert.window_pooling import pool


@keras.saving.register_keras_serializable("official_bert")
class ConcatPoolingClassifier(BertClassifier):
    """A classifier that reads each dimension's maximum and mean over the tokens too; on an AWD-LSTM
    it has a second layer."""

    concat_pooling = True
    options = (*BertClassifier.options, "concat_pooling")

    def __init__(self, encoder, num_labels, *args, concat_pooling=True, **kwargs):
        super().__init__(encoder, num_labels, *args, **kwargs)

    def below(self, policy):
        width, self.pooled_block = 3 * super().below(policy), None
        if isinstance(self.encoder.config, AwdLstmConfig):
            self.pooled_block = PooledBlock(
                self.encoder.config, width, self.seed, dtype=policy, name="pooled_block"
            )
            width = self.pooled_block.units
        return width

    def summary(self, sequence, rows, encoded):
        vector, real = super().summary(sequence, rows, encoded), rows["input_mask"] > 0
        poolings = (pool(sequence, real, pooling) for pooling in ("max", "mean"))
        return ops.concatenate([vector, *poolings], axis=-1)

    def dropped(self, x, seed):
        if self.pooled_block:
            x = self.pooled_block(x, fold_in(seed, HEAD_DROPOUT + 1))
        return super().dropped(x, seed)


class ConcatPooling:
    """The head as its field stands for it."""

    def class_of(self, description):
        """Return the class of a description."""
        return ConcatPoolingClassifier


CONCAT_POOLING = ConcatPooling()
