"""The protocol of objectives, `Objective`, and `Choice`, for those that choose among classes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from official_bert.common.errors import UserError
from official_bert.losses import correct, cross_entropy, weighted_sum


@dataclasses.dataclass(frozen=True)
class Loss:
    """One term of the sum that is trained on: weight * sum / (weights + epsilon)."""

    weight: float = 1.0
    epsilon: float = 0.0


@dataclasses.dataclass(frozen=True)
class Objective:
    """Something a model is pre-trained to do. Its fields are its options; it has no weights.

    Layers belong to the `BertPretrainer`, called `model` below: `build` puts them there. Equal
    objectives are equal as keys, so that models which differ in one never share a compiled step.

    Attributes:
      name: as configurations write it.
      needs: fields of a record that it reads, besides the encoder's inputs.
      losses: its loss terms; the first is the one that stands for it in curves and tables.
      metrics: names of its metric terms.
      perplexities: name -> the loss whose exponential it is.
      majorities: name of a metric -> a record's field of two labels; the metric is the accuracy of
        always giving the more frequent one.
      direction: the `attention_direction` that it needs, "" where any will do.
      of_pairs: whether it is about how two segments stand to each other; phases of a training
        whose records are too short for pairs leave such objectives out.
      kept: whether a saved model has it; not where it compares the model with another one.
      language_model: whether its head is the language model's.
      names: rows of `checkpoints.names` for variables of its head that BERT has not.
      reads_attention: whether `call` needs the attention scores among what is encoded.
      read_only: variables of other models that it reads, which are neither trained nor saved.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    metrics: ClassVar[tuple[str, ...]] = ()
    perplexities: ClassVar[Mapping[str, str]] = {}
    majorities: ClassVar[Mapping[str, str]] = {}
    direction: ClassVar[str] = ""
    of_pairs: ClassVar[bool] = False
    kept: ClassVar[bool] = True
    language_model: ClassVar[bool] = False
    names: ClassVar[tuple] = ()
    reads_attention: ClassVar[bool] = False
    read_only: ClassVar[Sequence[Any]] = ()

    @property
    def losses(self) -> Mapping[str, Loss]:
        raise NotImplementedError

    def build(self, model, initializer) -> None:
        """Give the model the layers that are missing for this objective."""

    def output_bias(self, model):
        """Return the bias of the scores of pieces, which may start at their log frequencies."""
        raise UserError(
            f"objective {self.name}: it has no scores of pieces with a bias; leave output_bias out"
        )

    def corrupt(self, model, batch, seed):
        """Return the batch that the encoder reads, and what `call` is to compare with.

        Args:
          batch: the fields of pre-training records, as the objectives before this one left them.
          seed: of the step, int32 [2]; None outside training.
        """
        return batch

    def encode(self, model, batch, encoded) -> dict:
        """Return the model's encoding, to which other encoders may add theirs."""
        return encoded

    def call(self, model, batch, encoded) -> dict:
        """Compute the heads' outputs, and all that `loss_terms` compares them with.

        Args:
          batch: of `corrupt`.
          encoded: the encoder's outputs, after `encode` of all objectives.
        """
        raise NotImplementedError

    def why_not_of(self, made: Mapping[str, Any]) -> str:
        """Return why records of these options do not serve an objective of pairs, "" where they do.

        Args:
          made: "options" of their manifest.json; one that is missing has its default.
        """
        return ""

    def pad(self, batch, rows: int) -> None:
        """Set the weights of padding in a batch of numpy arrays to 0, in place.

        Args:
          batch: the fields of pre-training records; no other batch shares its arrays.
          rows: number of rows that are not padding; they come first.
        """
        for name in {*self.needs}.intersection(batch):
            if name.endswith("_weights"):
                batch[name][rows:] = 0

    def loss_terms(self, batch, outputs) -> dict:
        """Return {name: (sum, weight)} for the names of `losses`; `batch` is the record's."""
        raise NotImplementedError

    def metric_terms(self, batch, outputs) -> dict:
        """Return {name: (sum, weight)} for the names of `metrics`."""
        return {}

    def to_spec(self) -> str | dict[str, Any]:
        """Return the specification that `official_bert.objectives.objective` reads back equal."""
        options = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }
        return {"name": self.name, **options} if options else self.name


class Choice(Objective):
    """An objective that chooses among classes: a cross entropy, and how often it is right."""

    def compared(self, batch, outputs) -> tuple:
        """Return (logits [..., N], labels int32 [...], weights float32 [...])."""
        raise NotImplementedError

    def loss_terms(self, batch, outputs):
        logits, labels, weights = self.compared(batch, outputs)
        return dict.fromkeys(self.losses, weighted_sum(cross_entropy(logits, labels), weights))

    def metric_terms(self, batch, outputs):
        logits, labels, weights = self.compared(batch, outputs)
        return dict.fromkeys(self.metrics, weighted_sum(correct(logits, labels), weights))
