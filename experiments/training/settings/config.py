"""Configurations of the experiments, as typed dataclasses.

A configuration file returns one of them, and the command line replaces its fields (`config_files`).
An ablation is `dataclasses.replace(base, ...)`, so that the difference *is* the ablation.
"""

import dataclasses

from official_bert import objectives
from official_bert.common.errors import UserError, check_choice
from official_bert.compared.elmo_config import ElmoConfig
from official_bert.config import DECODERS, RNN_DECODERS, BertConfig, named_config

DISTRIBUTE = ("one_device", "mirrored", "multi_worker", "tpu")
SHARD = ("", "weights")
PRECISION = ("float32", "mixed_bfloat16")


def _bookkeeping(default):
    """A field that changes how a run is watched or stored, never its result."""
    return dataclasses.field(default=default, metadata={"bookkeeping": True})


def _place(kind="folder"):
    """A field that names a file or folder: what lies there counts, not where (`inputs`)."""
    return dataclasses.field(default="", metadata={"place": kind})


@dataclasses.dataclass(frozen=True)
class Phase:
    """One stretch of pre-training at one sequence length (section A.2: 128, then 512)."""

    # Folder of records with its manifest, or a glob.
    records: str = _place()
    max_seq_length: int = 128  # 0: as long as the records are
    num_train_steps: int = 1000
    # Records for evaluation; "" evaluates nothing in this phase.
    heldout_records: str = _place()
    train_batch_size: int = 0  # 0: the run's train_batch_size
    # False: without those of the run's objectives that are about pairs of segments.
    pairs: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """What pre-training and fine-tuning have in common."""

    seed: int = 12345
    weight_decay: float = 0.01
    adam_beta_2: float = 0.999
    adam_epsilon: float = 1e-6
    # Adam's bias correction, which BERT leaves out and RoBERTa does not (LAMB always has it).
    bias_correction: bool = False
    clip_norm: float = 1.0
    gradient_accumulation: int = 1  # micro-batches a step
    distribute: str = "one_device"
    # On JAX: "weights" divides weights and optimiser among the devices; the steps are the same.
    shard: str = _bookkeeping("")
    precision: str = "float32"
    remat: bool = False  # recompute activations in the backward pass: less memory, more time
    jit_compile: bool = False  # XLA, one device only
    # The same bits in every run on a GPU too, for some of the speed; on a CPU they are anyway.
    deterministic: bool = _bookkeeping(False)

    def __post_init__(self):
        check_choice("distribute", self.distribute, DISTRIBUTE, "configuration")
        check_choice("shard", self.shard, SHARD, "configuration")
        if self.shard and self.distribute not in ("mirrored", "tpu"):
            raise UserError(
                f"configuration: shard={self.shard} divides weights among devices; set "
                f"distribute=mirrored or tpu instead of {self.distribute}"
            )
        check_choice("precision", self.precision, PRECISION, "configuration")
        _check_positive(self, "train_batch_size", "learning_rate", "gradient_accumulation")
        _check_share(self, "warmup_proportion", "it is a share of the training steps")

    @property
    def bert_config(self):
        """The BertConfig, whether it was given as one or by the name of a size."""
        return resolve_bert(self.bert)


@dataclasses.dataclass(frozen=True)
class PretrainConfig(TrainingConfig):
    """Pre-training (section 3.1 and A.2). The defaults are the paper's hyper-parameters."""

    # A size ("tiny", "L-4_H-256") or its fields; "": init_from's. An ElmoConfig pre-trains an ELMo.
    bert: BertConfig | ElmoConfig | str = "base"
    # "": the vocabulary beside the records.
    vocab: str = _place("file")
    do_lower_case: bool = True
    phases: tuple[Phase, ...] = (Phase(),)
    num_warmup_steps: int = 10_000
    # With num_warmup_steps=0: the warm-up's share of all steps.
    warmup_proportion: float = 0.0
    # The last steps, in which the rate falls to 0; -1: it falls from the first one on.
    num_decay_steps: int = -1
    train_batch_size: int = 256  # sequences a step, over all devices and micro-batches
    learning_rate: float = 1e-4
    # As official_bert.objectives writes them, the language model first: masked_lm alone is "No
    # NSP", next_token is for models that read left to right.
    objectives: tuple[str | dict, ...] = objectives.BERT
    # Folder, or name, of the model to go on from; bert="" takes its sizes.
    init_from: str = _place()
    # Folder of a finished run that is this one up to its own end (records, rates, seed), and whose
    # end this one goes on from; "": begins at step 0, to the same weights.
    trunk: str = _place("file")
    # Distillation: the model, a folder or a name, that objectives compare with.
    teacher: str = _place()
    # Its layers whose weights the student begins with: "even" or "0,2,4"; "": random weights.
    teacher_layers: str = ""
    # "adamw", the paper's, or "lamb" for batches of thousands.
    optimizer: str = "adamw"
    output_bias: str = "zeros"  # "unigram": log frequencies of the predicted pieces (few steps)
    # On JAX, accelerators hold the records and make the masks; the batches are the same.
    records_on_device: bool = _bookkeeping(False)
    steps_per_loop: int = _bookkeeping(0)  # steps inside one compiled call; 0: about one second
    eval_every: int = _bookkeeping(0)  # steps; 0: at the end of each phase
    max_heldout_examples: int = 0  # 0: all
    eval_batch_size: int = _bookkeeping(0)  # 0: the training batch of one device, at most 64
    save_every: int = _bookkeeping(1000)  # steps between checkpoints
    keep_checkpoints: int = _bookkeeping(2)  # the newest N stay, and the best one
    log_every: int = _bookkeeping(100)
    snapshots: tuple[int, ...] = _bookkeeping(())  # steps whose model is kept in snapshots/

    def __post_init__(self):
        super().__post_init__()
        check_choice("output_bias", self.output_bias, ("zeros", "unigram"), "configuration")
        check_choice("optimizer", self.optimizer, ("adamw", "lamb"), "configuration")
        for name in ("phases", "objectives"):
            if not getattr(self, name):
                raise UserError(f"configuration: {name} is empty; give at least one")
        where = "configuration: objectives"
        for name in [objectives.parts(written, where)[0] for written in self.objectives][1:]:
            if name in objectives.LANGUAGE_MODELS.values():
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

    task: str = ""
    # The official files; "": the task's default (TFDS).
    data_dir: str = _place()
    task_options: dict = dataclasses.field(default_factory=dict)
    # Folder, or name, of a model; "": random weights of `bert`.
    model: str = _place()
    bert: BertConfig | str = "base"  # with model="" only
    vocab: str = _place("file")  # with model="" only
    do_lower_case: bool = True  # with model="" only
    # With model="" only: the seed of the encoder's random weights; -1: `seed`.
    initial_seed: int = -1
    bilstm: bool = False  # Table 5's "+ BiLSTM": a randomly initialised BiLSTM on top
    # Classification: the head reads the maximum and the mean over the tokens too (ULMFiT).
    concat_pooling: bool = False
    # Classification: it reads the mean over the tokens in place of [CLS] or the last token.
    mean_pooling: bool = False
    features: str = ""  # Table 7: a layer combination of features.py on a frozen encoder
    feature_width: int = 768  # of the two BiLSTMs that read it
    # With model="cbow" or "bilstm_attention": a file of GloVe's or word2vec's text format.
    word_vectors: str = _place("file")
    # Of bilstm_attention: ELMo's folder, whose states are read in place of vectors or beside them.
    elmo: str = _place()
    # Of videobert: a model whose weights and sizes it begins with; "": random weights of `bert`.
    init_from: str = _place()
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
    # Epochs after which the next part below, from the head to the embeddings, begins to be trained
    # (ULMFiT: 1); 0: all are from the start.
    unfreeze_epochs: float = 0.0
    # "slanted_triangular" is ULMFiT's learning rate, with warmup_proportion=0.1.
    schedule: str = "linear"
    # Left-to-right models: weight of the language model's loss beside the task's (GPT: 0.5).
    lm_loss_weight: float = 0.0
    # Of text_to_text: "separate" (BERT2BERT), "shared" with the encoder (BertShare), "prefix"
    # (UniLM's mask); GRUs, "rnn" or "rnn_attention", of the sizes of `bert`, with random weights.
    decoder: str = "separate"
    # Draws the embeddings of what begins, divides and ends texts anew, as GPT does, where the model
    # has not been fine-tuned yet.
    draw_special_tokens: bool = False
    # "balanced", or "LABEL=WEIGHT,LABEL=WEIGHT": how much examples of a class count in the loss.
    class_weights: str = ""
    # Distillation: a model that was fine-tuned for the same task; "": none.
    teacher: str = _place()
    teacher_temperature: float = 1.0
    # Share of its answers in the loss; the rest is the labels'.
    teacher_weight: float = 0.5
    keep_best: bool = False  # the final weights are those of the best evaluation, not the last
    length_buckets: bool = True  # pad a batch to the shortest of a few lengths that holds it
    eval_batch_size: int = _bookkeeping(0)  # 0: the same as train_batch_size, at least 32
    save_every: int = _bookkeeping(500)
    keep_checkpoints: int = _bookkeeping(1)
    log_every: int = _bookkeeping(50)
    save_model: bool = _bookkeeping(True)
    predict_test: bool = _bookkeeping(False)  # also write predictions for the test split

    def __post_init__(self):
        super().__post_init__()
        _check_positive(self, "num_train_epochs", "max_seq_length", "layer_decay")
        _check_positive(self, "teacher_temperature")
        _check_share(self, "teacher_weight", "it is a share of the loss")
        check_choice("schedule", self.schedule, ("linear", "slanted_triangular"), "configuration")
        check_choice("decoder", self.decoder, (*DECODERS, *RNN_DECODERS), "configuration")
        for name in ("lm_loss_weight", "unfreeze_epochs"):
            if getattr(self, name) < 0:
                raise UserError(f"configuration: {name} must not be negative")


def places(config):
    """{field that names a file or folder: which of the two it is digested as}"""
    kinds = {field.name: field.metadata.get("place") for field in dataclasses.fields(config)}
    return {name: kind for name, kind in kinds.items() if kind}


def resolve_bert(bert):
    """A BertConfig from itself or from the name of a size ("base", "mini", "L-4_H-256")."""
    return named_config(bert) if isinstance(bert, str) else bert


def choose_scale(scales, scale):
    """`scales[scale]`, made where it is a function; an error that lists the valid names."""
    if scale not in scales:
        raise UserError(f'no scale "{scale}" in this configuration; valid: {", ".join(scales)}')
    chosen = scales[scale]
    return chosen() if callable(chosen) else chosen


def _check_positive(config, *names):
    for name in names:
        if not getattr(config, name) > 0:
            raise UserError(f"configuration: {name} is {getattr(config, name)}; it must be > 0")


def _check_share(config, name, what):
    if not 0 <= getattr(config, name) <= 1:
        raise UserError(
            f"configuration: {name} is {getattr(config, name)}; {what}, between 0 and 1"
        )
