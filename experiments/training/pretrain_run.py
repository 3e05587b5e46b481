"""What a pre-training run does, step by step; imports TensorFlow (`pretrain` does not)."""

import dataclasses
import hashlib
import json
import os
import time

import numpy as np

from data_prep.records import open_records, pretraining_dataset
from experiments.training import distribution, heldout, loop
from experiments.training.checkpointing import Checkpoints
from experiments.training.flops import predicted_positions, training_flops
from experiments.training.matrix_rate import peak_flops
from experiments.training.progress import Progress
from experiments.training.train_step import StepOptions
from experiments.training.trainer import get_trainer
from official_bert.checkpoints import model_folder, resolve
from official_bert.errors import UserError
from official_bert.pretraining import BertPretrainer
from official_bert.tokenization import BertTokenizer

# What two BertConfigs must share for weights to fit.
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "hidden_act",
)


def run(config, folder, progress, began=None):
    """See `experiments.pretrain.run`; `folder` is its RunFolder, `began` its first moment."""
    started = time.perf_counter()
    strategy = distribution.get_strategy(config.distribute)
    bert, tokenizer, weights = _starting_point(config)
    feed = Feed(config, bert, strategy, tokenizer)

    def build(seed):
        model = BertPretrainer(
            _encoder(bert, config, seed),
            use_nsp=config.use_nsp,
            left_to_right_fraction=config.left_to_right_fraction,
            seed=seed,
        )
        if weights is not None:
            weights.copy_to(model)
        elif config.output_bias == "unigram":
            model.masked_lm.bias.assign(feed.log_frequencies())
        return model

    trainer = get_trainer(
        ("pretrain", bert, config.use_nsp, config.left_to_right_fraction, config.remat),
        build,
        strategy,
        StepOptions(
            weight_decay=config.weight_decay,
            beta_2=config.adam_beta_2,
            epsilon=config.adam_epsilon,
            clip_norm=config.clip_norm,
            accumulation=config.gradient_accumulation,
            jit_compile=config.jit_compile,
            fixed_shapes=config.distribute == "tpu",
            train_metrics=True,
        ),
        config.precision,
        config.seed,
    )
    trainer.set_schedule(config.learning_rate, config.num_warmup_steps, config.num_train_steps)
    folder.write_versions(config.seed, distribution.devices(strategy))
    settings = {"max_seq_length": max(phase.max_seq_length for phase in config.phases)}

    def save_model(path):
        if folder.write:
            model_folder.save(path, trainer.model, tokenizer, settings, overwrite=True)

    evaluator = Evaluator(trainer, config, bert, feed)
    checkpoints = Checkpoints(folder.checkpoints, config.keep_checkpoints)
    state = loop.restore(trainer, checkpoints, feed.fingerprint)
    if not distribution.same_everywhere(strategy, state.step):
        raise UserError("the processes of this run see different checkpoints; share the workdir")
    folder.forget_metrics_after(state.step)
    here = -state.seconds  # training time of this process: what is added to it from here on
    show = progress and folder.write
    with Progress(
        folder,
        state.step,
        config.num_train_steps,
        show,
        "pretrain",
        peak_flops(strategy, config.precision),
        started if began is None else began,
    ) as shown:
        loop.train(
            trainer,
            feed,
            _plan(config, feed),
            checkpoints,
            shown,
            state,
            write=folder.write,
            evaluate=evaluator,
            at={
                step: lambda step=step: save_model(folder.path / "snapshots" / f"step-{step:08d}")
                for step in config.snapshots
            },
        )

    here += state.seconds
    metrics = evaluator.at_end(config.num_train_steps)
    save_model(folder.model)
    results = {
        "steps": state.step,
        "examples": state.examples,
        "tokens": state.tokens,
        "train_seconds": round(state.seconds, 2),
        "heldout": metrics,
        "best_step": state.best_step,
        "parameters": int(sum(np.prod(v.shape) for v in trainer.model.trainable_variables)),
        "records": feed.description(),
        "model": str(folder.model),
        "seconds": round(state.seconds + time.perf_counter() - started - here, 2),
    }
    folder.write_json("results.json", results)
    return results


class Feed:
    """Batches of the phases, in the order of the steps; see `loop.train`."""

    def __init__(self, config, bert, strategy, tokenizer):
        self._bert, self._strategy, self._seed = bert, strategy, config.seed
        self._fraction = config.left_to_right_fraction
        self.phases = []
        first = 0
        for index, phase in enumerate(config.phases):
            batch_size = phase.train_batch_size or config.train_batch_size
            distribution.check_batch_size(batch_size, strategy, config.gradient_accumulation)
            records = _open(phase, index, bert, tokenizer)
            last = first + phase.num_train_steps
            self.phases.append(_Stretch(first, last, records, batch_size, phase))
            first = last
        self._iterator, self._next_step = None, -1

    def take(self, trainer, step, count):
        phase = self.phase(step)
        if self._next_step != step or step == phase.first:
            dataset = pretraining_dataset(
                phase.records,
                phase.batch_size,
                seed=self._seed,
                epochs=None,
                start=(step - phase.first) * phase.batch_size,
            )
            self._iterator = distribution.distribute_dataset(dataset, self._strategy)
        without = () if phase.phase.use_nsp else ("next_sentence_loss",)
        metrics = trainer.train_from(self._iterator, count, without)
        self._next_step = step + count
        examples = count * phase.batch_size
        length = phase.records.max_seq_length
        predictions = predicted_positions(
            self._bert, self._fraction, length, phase.records.max_predictions_per_seq
        )
        flops = training_flops(self._bert, examples, length, predictions)
        return metrics, examples, examples * length, flops

    def phase(self, step):
        """The phase that the step after `step` steps belongs to."""
        return next((p for p in self.phases if step < p.last), self.phases[-1])

    def position(self, step):
        """The place in the data where a step begins."""
        phase = self.phase(step)
        read = (step - phase.first) * phase.batch_size
        place = phase.records.position(read, self._seed)
        return {"phase": self.phases.index(phase), **dataclasses.asdict(place)}

    @property
    def fingerprint(self):
        """Digest of what the records hold, from their manifests, or of files' names and sizes."""
        digest = hashlib.sha256()
        for phase in self.phases:
            records = phase.records
            names = [os.path.basename(file) for file in records.files]
            described = records.manifest.get("shards") or [names, records.counts]
            digest.update(json.dumps(described, sort_keys=True).encode())
        return digest.hexdigest()[:16]

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

    def log_frequencies(self, predictions=200_000):
        """float32 [vocab_size]: log of how often a piece is predicted, one added to each count.

        From the first records in reading order. A model whose output bias starts there spends none
        of its first steps on learning which pieces are frequent.
        """
        phase = self.phases[0]
        counts = np.ones(self._bert.vocab_size)
        seen = 0
        dataset = pretraining_dataset(phase.records, min(256, phase.records.examples))
        for batch in dataset:
            ids = batch["masked_lm_ids"].numpy()[batch["masked_lm_weights"].numpy() > 0]
            counts += np.bincount(ids, minlength=len(counts))[: len(counts)]
            seen += len(ids)
            if seen >= predictions:
                break
        return np.log(counts / counts.sum()).astype(np.float32)


@dataclasses.dataclass
class _Stretch:
    first: int
    last: int
    records: object
    batch_size: int
    phase: object


class Evaluator:
    """Held-out metrics of the current weights; see `loop.train`."""

    def __init__(self, trainer, config, bert, feed):
        self._trainer, self._config, self._bert, self._feed = trainer, config, bert, feed
        self._last = (-1, {})

    def __call__(self, step):
        metrics = self.at_end(step)
        return metrics, -metrics["masked_lm_loss"] if metrics else None

    def at_end(self, step):
        """The metrics after `step` steps, on the held-out records of the phase they belong to."""
        if self._last[0] != step:
            self._last = (step, self._measure(step))
        return self._last[1]

    def _measure(self, step):
        stretch = self._feed.phase(step - 1)
        if not stretch.phase.heldout_records:
            return {}
        # A left-to-right model has logits at every position, about six times as many.
        limit = 8 if self._bert.attention_direction == "left_to_right" else 64
        return heldout.measure(
            self._trainer.evaluate,
            stretch.phase.heldout_records,
            self._config.eval_batch_size or min(stretch.batch_size, limit),
            self._config.max_heldout_examples,
            max_seq_length=stretch.phase.max_seq_length,
        )


def _plan(config, feed):
    ends = tuple(phase.last for phase in feed.phases)
    steps_per_call = config.steps_per_loop
    if not steps_per_call and config.distribute in ("multi_worker", "tpu"):
        # Processes have to agree on it, so it cannot follow from each one's clock.
        steps_per_call = 10
    return loop.Plan(
        last_step=config.num_train_steps,
        log_every=config.log_every,
        eval_every=config.eval_every,
        save_every=config.save_every,
        stops=(*ends, *config.snapshots),
        eval_at=ends,
        steps_per_call=steps_per_call,
    )


def _open(phase, index, bert, tokenizer):
    if not phase.records:
        raise UserError(f"configuration: phases.{index}.records is empty; give a folder of records")
    records = open_records(phase.records, max_seq_length=phase.max_seq_length)
    if phase.max_seq_length > bert.max_position_embeddings:
        raise UserError(
            f"configuration: phases.{index}.max_seq_length is {phase.max_seq_length}, but the "
            f"model has positions for {bert.max_position_embeddings} tokens"
        )
    found = records.manifest.get("vocab_size")
    if found is not None and found != tokenizer.vocab_size:
        raise UserError(
            f"{phase.records}: made with a vocabulary of {found} entries, this one has "
            f"{tokenizer.vocab_size}; make the records again with it"
        )
    lower = records.manifest.get("options", {}).get("do_lower_case")
    if lower is not None and lower != tokenizer.do_lower_case:
        raise UserError(
            f"{phase.records}: made with do_lower_case={lower}, the model has "
            f"{tokenizer.do_lower_case}"
        )
    return records


def _starting_point(config):
    """(BertConfig, tokenizer, weights of init_from or None)"""
    if config.init_from:
        loaded = resolve.load_any(config.init_from)
        bert = _compatible(config, loaded)
        return bert, loaded.tokenizer, _Weights(loaded)
    bert = config.bert_config
    path = config.vocab or _vocab_beside(config.phases[0].records)
    tokenizer = BertTokenizer(path, do_lower_case=config.do_lower_case)
    if bert.vocab_size != tokenizer.vocab_size:
        raise UserError(
            f"{path} has {tokenizer.vocab_size} entries, but bert.vocab_size is {bert.vocab_size}; "
            f"set --config.bert.vocab_size={tokenizer.vocab_size}"
        )
    return bert, tokenizer, None


def _vocab_beside(records):
    path = os.path.join(records, "vocab.txt")
    if not records or not os.path.exists(path):
        raise UserError("configuration: vocab is empty, and no vocab.txt lies beside the records")
    return path


def _compatible(config, loaded):
    """The BertConfig to continue with; UserError where the checkpoint does not fit."""
    if loaded.tokenizer is None:
        raise UserError(f"{config.init_from} has no vocabulary; pre-training needs one")
    if config.vocab:
        vocab = BertTokenizer(config.vocab, do_lower_case=config.do_lower_case).vocab
        if vocab != loaded.tokenizer.vocab:
            raise UserError(
                f"{config.vocab} ({len(vocab)} entries) is not the vocabulary "
                f"of {config.init_from} ({len(loaded.tokenizer.vocab)} entries); "
                "leave vocab empty, and make the records with the checkpoint's vocab.txt"
            )
    if not config.bert:
        return loaded.config
    bert = config.bert_config
    different = [
        f"{name} {getattr(bert, name)}, there {getattr(loaded.config, name)}"
        for name in _SIZES
        if getattr(bert, name) != getattr(loaded.config, name)
    ]
    if different:
        raise UserError(
            f"bert does not fit init_from={config.init_from}: {'; '.join(different)}. "
            "--config.bert= (empty) takes the checkpoint's"
        )
    return bert


class _Weights:
    """The weights of a checkpoint: its encoder's, and its pre-training heads' where it has them."""

    def __init__(self, loaded):
        self.encoder = [variable.numpy() for variable in loaded.encoder.trainable_variables]
        self.whole = None
        if loaded.head == "pretraining":
            self.whole = [variable.numpy() for variable in loaded.model.trainable_variables]

    def copy_to(self, model):
        to, values = (model.encoder, self.encoder) if self.whole is None else (model, self.whole)
        for variable, value in zip(to.trainable_variables, values, strict=True):
            variable.assign(value)


def _encoder(bert, config, seed):
    from official_bert.encoder import BertEncoder

    return BertEncoder(bert, remat=config.remat, seed=seed)
