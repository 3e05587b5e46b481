"""Configurations of the experiments, as typed dataclasses.

A configuration file returns one of them, and the command line replaces its fields (`config_flags`).
An ablation is `dataclasses.replace(base, ...)`: the changed fields *are* the ablation.
"""

import dataclasses
from typing import Any, ClassVar

from experiments.training.settings.options import (
    Options,
    bookkeeping,
    check_numbers,
    check_positive,
    check_share,
    flat,
    path_field,
)
from official_bert.common.errors import UserError, check_choice
from official_bert.config import BertConfig, named_config
from official_bert.objectives import BERT, parse_spec

DISTRIBUTE = ("one_device", "mirrored", "multi_worker", "tpu")
SHARD = ("", "weights")
PRECISION = ("float32", "mixed_bfloat16")


@dataclasses.dataclass(frozen=True)
class Phase:
    """One stretch of pre-training at one sequence length (section A.2: 128, then 512)."""

    # Folder of records with its manifest, or a glob.
    records: str = path_field()
    max_seq_length: int = 128  # 0: as long as the records are
    num_train_steps: int = 1000
    # Records for evaluation; "" evaluates nothing in this phase.
    heldout_records: str = path_field()
    train_batch_size: int = 0  # 0: the run's train_batch_size
    # False: without those of the run's objectives that are about pairs of segments.
    pairs: bool = True

    def __post_init__(self):
        check_numbers(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The fields that pre-training and fine-tuning share."""

    seed: int = 12345
    weight_decay: float = 0.01
    adam_beta_2: float = 0.999
    adam_epsilon: float = 1e-6
    # Adam's bias correction, which BERT leaves out and RoBERTa does not (LAMB always has it).
    bias_correction: bool = False
    clip_norm: float = 1.0
    # Micro-batches a step; 1: on JAX with a GPU, as few as its memory asks for.
    gradient_accumulation: int = 1
    distribute: str = "one_device"
    # On JAX: "weights" divides weights and optimiser among the devices; the steps are the same.
    shard: str = bookkeeping("")
    precision: str = "float32"
    remat: bool = False  # recompute activations in the backward pass: less memory, more time
    jit_compile: bool = False  # XLA, one device only
    # The same bits in every run on a GPU too, for some of the speed; on a CPU they are anyway.
    deterministic: bool = bookkeeping(False)
    # Options of systems beyond the paper, as far as they differ from their defaults.
    model_options: tuple[Options, ...] = ()

    training: ClassVar[str] = ""  # prefix of its options' names among an extension's

    def __post_init__(self):
        changed = (one for one in self.model_options if one != type(one)())
        options = tuple(sorted(changed, key=lambda one: type(one).__name__))
        object.__setattr__(self, "model_options", options)
        check_choice("distribute", self.distribute, DISTRIBUTE, "configuration")
        check_choice("shard", self.shard, SHARD, "configuration")
        if self.shard and self.distribute not in ("mirrored", "tpu"):
            raise UserError(
                f"configuration: shard={self.shard} divides weights among devices; set "
                f"distribute=mirrored or tpu instead of {self.distribute}"
            )
        check_choice("precision", self.precision, PRECISION, "configuration")
        for part in (self, *self.model_options):
            check_numbers(part)
        check_positive(self, "train_batch_size", "learning_rate", "gradient_accumulation")
        check_share(self, "warmup_proportion", "it is a share of the training steps")
        check_share(self, "adam_beta_2", "it is the share that Adam's mean of squares keeps")

    @property
    def bert_config(self):
        """The BertConfig of `bert`, which may be the name of a size ("base", "L-4_H-256")."""
        return named_config(self.bert) if isinstance(self.bert, str) else self.bert


@dataclasses.dataclass(frozen=True)
class PretrainConfig(TrainingConfig):
    """Pre-training (section 3.1 and A.2). The defaults are the paper's hyper-parameters."""

    training = "pretrain"

    # A size ("tiny", "L-4_H-256") or its fields; "": init_from's.
    bert: BertConfig | str = "base"
    # "": the vocabulary beside the records.
    vocab: str = path_field("file")
    do_lower_case: bool = True
    phases: tuple[Phase, ...] = (Phase(),)
    num_warmup_steps: int = 10_000
    # With num_warmup_steps=0: the warm-up's share of all steps.
    warmup_proportion: float = 0.0
    # The last steps, in which the rate falls to 0; -1: it falls from the first one on.
    num_decay_steps: int = -1
    train_batch_size: int = 256  # sequences a step, over all devices and micro-batches
    learning_rate: float = 1e-4
    # Written as in official_bert.objectives, the language model first: masked_lm alone is "No NSP",
    # next_token is for models that read left to right.
    objectives: tuple[str | dict, ...] = BERT
    # Folder, or name, of the model to go on from; bert="" takes its sizes.
    init_from: str = path_field()
    # Folder of a finished run that is this one up to its own end (records, rates, seed), and whose
    # end this one goes on from; "": begins at step 0, to the same weights.
    trunk: str = path_field("file")
    # "adamw", the paper's, or "lamb" for batches of thousands.
    optimizer: str = "adamw"
    output_bias: str = "zeros"  # "unigram": log frequencies of the predicted pieces (few steps)
    # On JAX, accelerators hold the records and make the masks; the batches are the same. None: on a
    # GPU whose memory they fit.
    records_on_device: bool | None = bookkeeping(None)
    steps_per_loop: int = bookkeeping(0)  # steps inside one compiled call; 0: about one second
    eval_every: int = bookkeeping(0)  # steps; 0: at the end of each phase
    max_heldout_examples: int = 0  # 0: all
    eval_batch_size: int = bookkeeping(0)  # 0: the training batch of one device, at most 64
    save_every: int = bookkeeping(1000)  # steps between checkpoints
    keep_checkpoints: int = bookkeeping(2)  # the newest N stay, and the best one
    log_every: int = bookkeeping(100)
    snapshots: tuple[int, ...] = bookkeeping(())  # steps whose model is kept in snapshots/

    def __post_init__(self):
        super().__post_init__()
        check_choice("output_bias", self.output_bias, ("zeros", "unigram"), "configuration")
        check_choice("optimizer", self.optimizer, ("adamw", "lamb"), "configuration")
        for name in ("phases", "objectives"):
            if not getattr(self, name):
                raise UserError(f"configuration: {name} is empty; give at least one")
        for step in self.snapshots:
            if not 0 < step <= self.num_train_steps:
                raise UserError(
                    f"configuration: snapshots: {step} is none of the {self.num_train_steps} steps"
                )
        where = "configuration: objectives"
        for name in [parse_spec(spec, where)[0] for spec in self.objectives][1:]:
            if name in BertConfig.language_models.values():
                raise UserError(f"{where}: {name} must stand first, and once")

    @property
    def num_train_steps(self):
        return sum(phase.num_train_steps for phase in self.phases)

    @property
    def warmup_steps(self):
        return self.num_warmup_steps or int(self.num_train_steps * self.warmup_proportion)

    @property
    def decay_steps(self):
        return self.num_train_steps if self.num_decay_steps < 0 else self.num_decay_steps


@dataclasses.dataclass(frozen=True)
class FinetuneConfig(TrainingConfig):
    """Fine-tuning on one task (section 4, A.3)."""

    training = "finetune"

    task: str = ""
    # The official files; "": the task's default (TFDS).
    data_dir: str = path_field()
    task_options: dict = dataclasses.field(default_factory=dict)
    # Folder, or name, of a model; "": random weights of `bert`.
    model: str = path_field()
    bert: BertConfig | str = "base"  # with model="" only
    vocab: str = path_field("file")  # with model="" only
    do_lower_case: bool = True  # with model="" only
    # With model="" only: the seed of the encoder's random weights; -1: `seed`.
    initial_seed: int = -1
    bilstm: bool = False  # Table 5's "+ BiLSTM": a randomly initialised BiLSTM on top
    # Classification: it reads the mean over the tokens in place of [CLS] or the last token.
    mean_pooling: bool = False
    features: str = ""  # Table 7: a layer combination of features.py on a frozen encoder
    feature_width: int = 768  # of the two BiLSTMs that read it
    max_seq_length: int = 128
    train_batch_size: int = 32
    learning_rate: float = 5e-5
    num_train_epochs: float = 3.0
    warmup_proportion: float = 0.1
    max_train_examples: int = 0  # 0: all; of documents (NER), their sentences count
    max_dev_examples: int = 0  # 0: all
    dropout: float = -1.0  # replaces the encoder's dropout rates; -1: the model's own
    eval_every: int = 0  # steps; 0: at the end only
    # Evaluations in a row without a new best before training stops (0: never); keeps the best.
    patience: int = 0
    # Parts of the encoder that are not trained, as "embeddings,blocks:0-5".
    freeze: str = ""
    # The rate of a block is so many times that of the block above it; the head's is the highest.
    layer_decay: float = 1.0
    # "balanced", or "LABEL=WEIGHT,LABEL=WEIGHT": how much examples of a class count in the loss.
    class_weights: str = ""
    keep_best: bool = False  # the final weights are those of the best evaluation, not the last
    # The score that says which evaluation is the best, any of the report's; "": its first one.
    best_metric: str = ""
    length_buckets: bool = True  # pad a batch to the shortest of a few lengths that holds it
    eval_batch_size: int = bookkeeping(0)  # 0: the same as train_batch_size, at least 32
    save_every: int = bookkeeping(500)
    keep_checkpoints: int = bookkeeping(1)
    log_every: int = bookkeeping(50)
    save_model: bool = bookkeeping(True)
    # Predict the test split too, and score it where it has labels; task_options.test_file does so.
    predict_test: bool = bookkeeping(False)

    def __post_init__(self):
        super().__post_init__()
        check_positive(self, "num_train_epochs", "max_seq_length", "layer_decay")


def path_values(config) -> dict[str, tuple[str, Any]]:
    """Return {field that names a file or folder: ("file" or "folder", value)}."""
    found = {name: (field.metadata.get("path"), x) for name, (field, x) in flat(config).items()}
    return {name: pair for name, pair in found.items() if pair[0]}


def choose_scale(scales, scale):
    """Return `scales[scale]`, or what it returns where it is a function.

    Raises:
      UserError: there is no such scale; the message lists the valid names."""
    if scale not in scales:
        raise UserError(f'no scale "{scale}" in this configuration; valid: {", ".join(scales)}')
    chosen = scales[scale]
    return chosen() if callable(chosen) else chosen
