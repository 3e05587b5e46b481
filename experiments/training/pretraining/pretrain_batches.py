"""Batches of pre-training: the records of the phases, in the order of the steps."""

import dataclasses

import numpy as np

from data_prep.records import explained, numpy_batches
from experiments.training.pretraining.heldout import piece_counts
from experiments.training.settings.flops import pretraining_step_flops
from experiments.training.start.preflight import check_fit
from experiments.training.step.backend import strategies
from experiments.training.step.session import check_batch_size
from official_bert.common.errors import UserError
from official_bert.objectives import objective


class PretrainingBatches:
    """The `batches` of `loop.train`.

    Attributes:
      specs: the configuration's `objectives`.

    Args:
      config: PretrainConfig.
      start: its InitialState.
      strategy: where the batches go.
      records: of `preflight.pretraining`.

    Raises:
      UserError: records are of another vocabulary or length, or do not serve an objective, or a
        batch does not divide.
    """

    def __init__(self, config, start, strategy, records):
        bert = start.bert
        self._bert, self._strategy, self._seed = bert, strategy, config.seed
        self.specs = config.objectives
        of_pairs = [one for one in map(objective, self.specs) if one.of_pairs]
        self._losses_of_pairs = tuple(name for one in of_pairs for name in one.losses)
        # A trunk, which never decays, may end before the first phase with pairs.
        if of_pairs and config.decay_steps and not any(phase.pairs for phase in config.phases):
            raise UserError(
                f"no phase has pairs, so nothing would train {of_pairs[0].name}; leave it out of "
                "--config.objectives, or set pairs=true in a phase"
            )
        self.phases = []
        first = 0
        for phase, (opened, heldout) in zip(config.phases, records, strict=True):
            batch_size = phase.train_batch_size or config.train_batch_size
            check_batch_size(batch_size, strategy, config.gradient_accumulation)
            check_fit(opened, phase.records, bert, start.tokenizer)
            if phase.pairs:
                _check_pairs(opened, phase.records, of_pairs)
            last = first + phase.num_train_steps
            self.phases.append(_OpenedPhase(first, last, opened, heldout, batch_size, phase))
            first = last
        self._on_device = config.records_on_device
        self._iterator, self._next_step = None, -1

    def take(self, trainer, step, count):
        phase = self.phase(step)
        if self._next_step != step or step == phase.first:
            self._iterator = strategies.training_batches(
                phase.records,
                phase.batch_size,
                self._seed,
                (step - phase.first) * phase.batch_size,
                self._strategy,
                self._on_device,
            )
        without = () if phase.config.pairs else self._losses_of_pairs
        with explained():
            metrics = trainer.train_from(self._iterator, count, without)
        self._next_step = step + count
        examples = count * phase.batch_size
        length = phase.records.max_seq_length
        masked = phase.records.max_predictions_per_seq
        flops = pretraining_step_flops(self._bert, self.specs, examples, length, masked)
        return metrics, examples, examples * length, flops

    def phase(self, step):
        """Return the phase of the next step after `step` steps."""
        return next((p for p in self.phases if step < p.last), self.phases[-1])

    def position(self, step):
        """Return the place in the data where a step begins."""
        phase = self.phase(step)
        read = (step - phase.first) * phase.batch_size
        position = phase.records.position(read, self._seed)
        return {"phase": self.phases.index(phase), **dataclasses.asdict(position)}

    def description(self):
        return [
            {
                "examples": phase.records.examples,
                "epochs": round(
                    (phase.last - phase.first) * phase.batch_size / phase.records.examples, 3
                ),
                "max_seq_length": phase.records.max_seq_length,
                "batch_size": phase.batch_size,
            }
            for phase in self.phases
        ]

    def shapes(self):
        """Yield (rows, length, masked positions a row) of the steps of each phase together."""
        for phase in self.phases:
            rows = (phase.last - phase.first) * phase.batch_size
            yield rows, phase.records.max_seq_length, phase.records.max_predictions_per_seq

    def flops(self) -> float:
        """Return the model's FLOPs of all steps."""
        shapes = self.shapes()
        return sum(pretraining_step_flops(self._bert, self.specs, *shape) for shape in shapes)

    def log_frequencies(self):
        """Return float32 [vocab_size], the log frequency of each predicted piece, one added to each
        count.

        The first records in reading order are counted, to 200,000 predictions. A model whose output
        bias starts with these values need not learn first which pieces are frequent.

        Raises:
          UserError: a record is damaged; names file and record.
        """
        records = self.phases[0].records
        batches = numpy_batches(records, min(256, records.examples))
        counts = 1 + piece_counts(batches, self._bert.vocab_size, limit=200_000)
        return np.log(counts / counts.sum()).astype(np.float32)


@dataclasses.dataclass
class _OpenedPhase:
    first: int
    last: int
    records: object
    heldout: object  # records, or None
    batch_size: int
    config: object  # the configuration's Phase


def _check_pairs(records, source, objectives):
    """Raise UserError where rows do not serve the objectives on pairs."""
    made = records.manifest.get("options") or {}  # none where records are another program's
    for one in objectives:
        if made.get("packing") == "single":
            raise UserError(
                f"{source}: rows of a single segment, and {one.name} needs two; leave it out of "
                "the objectives, or make records with --packing=segments"
            )
        if made and (why_not := one.why_not_of(made)):
            raise UserError(f"{source}: {why_not}")
