"""Pre-training (section 3.1): an encoder, the objectives that train it, the sum of their losses."""

import keras
from keras import ops

from official_bert.common.errors import UserError
from official_bert.config import BertConfig
from official_bert.encoder import BertEncoder, input_specs
from official_bert.losses import ModelWithLosses
from official_bert.objectives import BERT, objective
from official_bert.randomness import next_seed


@keras.saving.register_keras_serializable("official_bert")
class BertPretrainer(ModelWithLosses):
    """An encoder with the heads of its objectives.

    Example:
      model = BertPretrainer(named_config("tiny"))
      model.compile(optimizer=BertAdamW(WarmupLinearDecay(1e-4, 10_000, 1_000_000)))
      model.fit(pretraining_dataset("records/", batch_size=32))

    Args:
      encoder: a `BertEncoder`, or a `BertConfig` to make one of.
      objectives: what it is trained to do, as `official_bert.objectives` has it: names, names with
        options, or objectives. ("masked_lm",) is "No NSP" of Table 5, ("next_token",) on a
        left-to-right encoder is "LTR & No NSP".
      seed: seed of the initial weights, when `encoder` is a configuration.

    Raises:
      UserError: an objective is unknown or does not fit the encoder.
    """

    def __init__(
        self, encoder: BertEncoder | BertConfig, objectives=BERT, seed: int | None = None, **kwargs
    ):
        super().__init__(**{"name": "pretrainer", **kwargs})
        if isinstance(encoder, BertConfig):
            encoder = BertEncoder(encoder, seed=seed, dtype=self.dtype_policy)
        self.encoder = encoder
        self.objectives = tuple(map(objective, objectives))
        initializer = keras.initializers.TruncatedNormal(
            stddev=encoder.config.initializer_range,
            seed=keras.random.SeedGenerator(None if seed is None else seed + 1),
        )
        with keras.name_scope(self.name):
            for one in self.objectives:
                one.build(self, initializer)
        losses = {name: loss for one in self.objectives for name, loss in one.losses.items()}
        self.loss_weights = {name: loss.weight for name, loss in losses.items()}
        self.loss_epsilons = {name: loss.epsilon for name, loss in losses.items()}
        metrics = [name for one in self.objectives for name in one.metrics]
        self._declare_means(*losses, *metrics)
        self.built = True

    def call(self, batch, training=False, seed=None):
        """Corrupt the batch, encode it, and ask every objective for its outputs.

        Args:
          batch: the fields of a pre-training record: input_ids, input_mask, segment_ids int32
            [B, L]; masked_lm_positions, masked_lm_ids int32 [B, P]; masked_lm_weights float32
            [B, P]; next_sentence_labels int32 [B, 1].
          training, seed: as for `BertEncoder`.

        Returns:
          a dictionary of what the objectives return (`call` of each).

        Raises:
          UserError: a field that an objective needs is missing.
        """
        for one in self.objectives:
            if missing := [name for name in one.needs if name not in batch]:
                raise UserError(f"objective {one.name}: the batch has no {', '.join(missing)}")
        if training and seed is None:
            seed = next_seed(self.encoder.seed_generator)
        for one in self.objectives:
            batch = one.corrupt(self, batch, seed if training else None)
        attention = any(one.reads_attention for one in self.objectives)
        encoded = self.encoder(batch, training=training, seed=seed, return_attention=attention)
        for one in self.objectives:
            encoded = one.encode(self, batch, encoded)
        outputs = {}
        for one in self.objectives:
            outputs |= one.call(self, batch, encoded)
        return outputs

    def loss_terms(self, batch, outputs):
        """Return the loss terms of all objectives, {name: (sum, weight)}."""
        terms = [one.loss_terms(batch, outputs) for one in self.objectives]
        return {name: term for found in terms for name, term in found.items()}

    def metric_terms(self, batch, outputs):
        """Return the metric terms of all objectives, {name: (sum, weight)}."""
        terms = [one.metric_terms(batch, outputs) for one in self.objectives]
        return {name: term for found in terms for name, term in found.items()}

    @property
    def read_only(self):
        found = {id(v): v for one in self.objectives for v in one.read_only}
        return list(found.values())

    def pad(self, batch, rows):
        super().pad(batch, rows)
        for one in self.objectives:
            one.pad(batch, rows)

    def input_specs(self):
        specs = input_specs(2)
        for name in sorted({name for one in self.objectives for name in one.needs} - {*specs}):
            dtype = "float32" if name.endswith("_weights") else "int32"
            specs[name] = keras.InputSpec(dtype=dtype, shape=(None, None), name=name)
        return specs

    def kept(self):
        """Return the model with its `kept` objectives alone; the encoder where there is none."""
        own = [one for one in self.objectives if one.kept]
        if len(own) == len(self.objectives):
            return self
        if not own:
            return self.encoder
        alone = BertPretrainer(self.encoder, own, name=self.name, dtype=self.dtype_policy)
        trained = {variable.path: variable for variable in self.weights}
        for variable in alone.weights:
            if variable is not trained[variable.path]:
                variable.assign(ops.convert_to_numpy(trained[variable.path]))
        return alone

    def get_metrics_result(self):
        results = super().get_metrics_result()
        for one in self.objectives:
            for name, loss in one.perplexities.items():
                results[name] = ops.exp(results[loss])
        return results

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "objectives": [one.to_spec() for one in self.objectives if one.kept],
        }
