"""Scales of section 5's tables: the corpus, records, pre-training, tasks and seeds they share.

    paper  the paper's sizes, steps, batches and data (Cloud TPUs or many GPUs, days)
    gpu    one H100 or H200: Table 5 in about 25 minutes
    gpu-day  one H100, a day a table
    night  two cores with AVX-512, at most 8 hours a table
    cpu    the same, at most 2 hours a table
    smoke  two cores, minutes: shows that everything runs; its scores mean little

A scale is data: a table's configuration takes one and changes it with `dataclasses.replace`. The
smoke scale reads the embedded sample where it can. All other files are read under `data_dir`: the
environment variable BERT_DATA_DIR, or --config.data_dir.
"""

import dataclasses
import os

from experiments.configs.columns import (
    CPU_FINETUNE,
    SNLI,
    cloze,
    columns_for,
    exact_match,
    local_columns,
    ner,
    sample_columns,
    tags,
    two_core_columns,
)
from experiments.tables.planning.ablation import Ablation, Column, Corpus, RecordSpec, Text
from experiments.training.settings.config import FinetuneConfig, Phase, PretrainConfig, choose_scale
from official_bert.common.errors import UserError
from official_bert.config import BertConfig, named_config
from official_bert.extension import find, names

DATA_DIR = os.environ.get("BERT_DATA_DIR", "")


@dataclasses.dataclass(frozen=True)
class Scale:
    """One scale of section 5's experiments.

    Attributes:
      bert: the pre-training that ablations change.
      pretrain_seeds: each variant is pre-trained once from each.
      columns: the paper's column name -> Column.
      nli_mixture: see `experiments.tables.planning.ablation.Ablation`.
      checkpoints: variant -> models in place of its pre-trainings, one a seed.
    """

    name: str
    corpus: Corpus
    records: tuple[RecordSpec, ...]
    bert: PretrainConfig
    pretrain_seeds: tuple[int, ...]
    columns: dict[str, Column]
    notes: tuple[str, ...] = ()
    nli_mixture: tuple[str, ...] = ()
    left_to_right_fraction: float = 1.0
    checkpoints: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    data_dir: str = DATA_DIR
    workers: int = 0

    @property
    def no_nsp(self) -> PretrainConfig:
        return dataclasses.replace(self.bert, objectives=("masked_lm",))

    @property
    def left_to_right(self) -> PretrainConfig:
        """The model that BERT is compared with: the same, left to right and without NSP."""
        bert = dataclasses.replace(self.bert.bert, attention_direction="left_to_right")
        return dataclasses.replace(self.bert, bert=bert, objectives=self.predicting("next_token"))

    def predicting(self, name: str) -> tuple[str | dict, ...]:
        """Return one objective, as a tuple, that predicts `left_to_right_fraction` of the
        positions."""
        fraction = self.left_to_right_fraction
        return ({"name": name, "fraction": fraction} if fraction < 1 else name,)

    def tasks(self, *names: str) -> tuple[Column, ...]:
        """Return the columns of those names that this scale has, in the order asked for.

        Raises:
          UserError: no scale has a column of a name.
        """
        if lacks := self.lacks(*names):
            made = {name for make in SCALES.values() for name in make().columns}
            if unknown := [name for name in lacks if name not in made]:
                known = ", ".join(sorted(made))
                raise UserError(
                    f"no scale has a column {', '.join(unknown)}; the names are {known}"
                )
        return tuple(self.columns[name] for name in names if name in self.columns)

    def lacks(self, *names: str) -> tuple[str, ...]:
        """Return those of the names that `tasks` leaves out."""
        return tuple(name for name in names if name not in self.columns)

    def fields(self) -> dict:
        """Return the fields that every Ablation at this scale takes over."""
        return {
            "scale": self.name,
            "corpus": self.corpus,
            "records": self.records,
            "notes": self.notes,
            "nli_mixture": self.nli_mixture,
            "data_dir": self.data_dir,
            "workers": self.workers,
        }


def get_scale(name: str, **more) -> Scale:
    """Return the scale of that name; `more`: the table's own scales, name -> function."""
    return choose_scale(SCALES | more, name)


def with_rows(table: Ablation, scale: Scale) -> Ablation:
    """Return a table at a scale with the rows that extensions add to it."""
    known = table.name in names("rows")
    return find("rows", table.name)(table, scale) if known else table


# The paper.

UNCASED_VOCAB = "vocab/bert-base-uncased-vocab.txt"
PAPER_FINETUNE = FinetuneConfig(
    max_seq_length=128, train_batch_size=32, learning_rate=3e-5, num_train_epochs=3.0,
    save_model=False,
)  # fmt: skip


def _records(name: str, length: int, predictions: int, **options) -> RecordSpec:
    fields = {"max_seq_length": length, "max_predictions_per_seq": predictions}
    return RecordSpec(name=name, **fields, **options)


def _paper() -> Scale:
    # 256 sequences a step for a million steps, nine tenths of them of 128 tokens (section A.2).
    bert = PretrainConfig(
        bert=named_config("base"),
        phases=(
            Phase("length 128", 128, 900_000),
            Phase("length 512", 512, 100_000),
        ),
        num_warmup_steps=10_000,
        train_batch_size=256,
        learning_rate=1e-4,
        distribute="tpu",
        precision="mixed_bfloat16",
        eval_every=50_000,
        save_every=5_000,
    )
    # Fine-tuning runs on the TPU too: its host would take weeks.
    finetune = dataclasses.replace(PAPER_FINETUNE, distribute="tpu", precision="mixed_bfloat16")
    columns = columns_for(finetune, seeds=(1, 2, 3, 4, 5))
    columns["SQuAD"] = columns["SQuAD"].changed(max_seq_length=384, learning_rate=5e-5)
    columns["NER"] = ner(finetune, (1, 2, 3, 4, 5), length=512)
    return Scale(
        name="paper",
        corpus=Corpus(
            texts=(Text(("corpus/*.txt*",)),),
            held_out=0.001,
            vocab=UNCASED_VOCAB,
            description="BooksCorpus and English Wikipedia, to be put under corpus/ as one "
            "sentence a line",
        ),
        records=(
            _records("length 128", 128, 20, dupe_factor=10),
            _records("length 512", 512, 77, dupe_factor=10),
        ),
        bert=bert,
        pretrain_seeds=(1,),
        columns=columns,
        notes=("learning rate 3e-5 throughout; the paper chooses from four values on dev",),
        workers=1,
    )


# Settings of this project's pre-trainings that are not the paper's.
_OWN = PretrainConfig(
    train_batch_size=32,
    learning_rate=1e-3,
    adam_beta_2=0.98,
    output_bias="unigram",
    keep_checkpoints=1,
)

# One GPU: a 4/512 model on 107 MB of text, for minutes or for a day.

WIKIPEDIA = Text(("corpus/wikipedia/wiki_0*.txt.gz", "corpus/wikipedia/wiki_1[0-3].txt.gz"),
                 layout="articles")  # fmt: skip
WIKIPEDIA_HELDOUT = Text(("corpus/wikipedia/wiki_14.txt.gz",), layout="articles", heldout=True)
NOVELS = Text(("corpus/books/[A-S]*.txt.gz", "corpus/books/T*.txt.gz"), layout="chapters")
NOVELS_HELDOUT = Text(
    ("corpus/books/W*.txt.gz",), layout="chapters", heldout=True  # Ward, Collins, Woolf
)  # fmt: skip
NLI_MIXTURE = ("glue_data/MNLI/dev_matched.tsv", "nli/snli_dev.tsv", "nli/vitaminc.tsv")


def _gpu() -> Scale:
    # 147 million tokens, about six passes over the corpus; see _two_cores for the short phase.
    bert = dataclasses.replace(
        _OWN,
        bert=named_config(
            "small", vocab_size=16_384, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        ),
        phases=(
            Phase("length 32", 32, 1_500, train_batch_size=1024, pairs=False),
            Phase("length 128", 128, 3_000),
        ),
        num_warmup_steps=200,
        train_batch_size=256,
        precision="mixed_bfloat16",
        records_on_device=True,
        max_heldout_examples=4096,
    )
    finetune = dataclasses.replace(
        CPU_FINETUNE,
        max_seq_length=128,
        train_batch_size=64,
        learning_rate=2e-4,
        max_train_examples=32_000,
        precision="mixed_bfloat16",
    )
    columns = local_columns(finetune, (1,), {"doc_stride": 64})
    columns |= {
        "SQuAD exact match": exact_match(columns["SQuAD"]),
        "NER": ner(finetune, (1,), length=128),
        "entities": tags("entities", finetune),
        "cloze": cloze("length 128", 4096),
    }
    return _one_gpu("gpu", bert, (1, 2), columns, (("length 32", 32, 5), ("length 128", 128, 20)),
                    left_to_right_fraction=0.3, workers=4)  # fmt: skip


def _gpu_day() -> Scale:
    bert = PretrainConfig(
        bert=named_config("small", vocab_size=16_384),
        phases=(Phase("length 128", 128, 90_000), Phase("length 256", 256, 10_000)),
        num_warmup_steps=2_000,
        train_batch_size=256,
        learning_rate=5e-4,
        adam_beta_2=0.98,
        output_bias="unigram",
        precision="mixed_bfloat16",
        records_on_device=True,
        eval_every=10_000,
        max_heldout_examples=8192,
    )
    finetune = dataclasses.replace(PAPER_FINETUNE, learning_rate=1e-4, precision="mixed_bfloat16")
    columns = local_columns(finetune, (1, 2, 3), {"doc_stride": 64})
    columns["SQuAD"] = columns["SQuAD"].changed(max_seq_length=256)
    columns["NER"] = ner(finetune, (1, 2, 3), length=256)
    return _one_gpu("gpu-day", bert, (1, 2, 3, 4), columns,
                    (("length 128", 128, 20), ("length 256", 256, 39)))  # fmt: skip


def wikipedia_and_novels(vocab_size: int) -> Corpus:
    """Return both corpora; other articles and other authors' novels are held out."""
    return Corpus(
        texts=(WIKIPEDIA, WIKIPEDIA_HELDOUT, NOVELS, NOVELS_HELDOUT),
        vocab_size=vocab_size,
        description="54 MB of English Wikipedia and 53 MB of novels; held out: 1,500 other "
        "articles, and the novels of Ward, Collins and Woolf",
    )


def _one_gpu(name, bert, seeds, columns, records, **fields) -> Scale:
    """Return a scale of one GPU; `records`: (name, length, predictions) of each set."""
    return Scale(
        name=name,
        corpus=wikipedia_and_novels(vocab_size=16_384),
        # Masks are drawn anew in every pass; the rows lie on the GPU.
        records=tuple(_records(*one, dupe_factor=3, dynamic_masking=True) for one in records),
        bert=bert,
        pretrain_seeds=seeds,
        columns=columns,
        notes=("Wikipedia and novels, some hundred times less text than the paper's",),
        nli_mixture=NLI_MIXTURE,
        **fields,
    )


# Two cores: 2 layers, 128 wide, length 64.

# In a model this narrow, weights drawn with the paper's deviation of 0.02 are so small that it only
# predicts word frequencies, even after a few thousand steps.
SMALL_WEIGHTS = 0.05  # = 0.02 * sqrt(768 / 128)
TINY = BertConfig(
    vocab_size=8192,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=512,
    max_position_embeddings=128,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=SMALL_WEIGHTS,
)


# The first phase is short sequences without next sentence prediction. A masked model has to learn
# to attend to neighbours before it can learn anything else, and among 16 tokens a neighbour is
# found soon; 97 of 100 pairs of that length are random next sentences, so NSP would teach nothing.
# BERT and No NSP share this phase, bit for bit; left-to-right models have their own.
SHORT = Phase("length 16", 16, train_batch_size=128, pairs=False)
SHORT_RECORDS = _records("length 16", 16, 3, dupe_factor=1)


def _two_cores(name: str, steps: tuple[int, int], seeds: tuple[int, ...], columns: dict) -> Scale:
    """Return a scale for two cores; `steps`: of the phases at lengths 16 and 64."""
    short, long = steps
    bert = dataclasses.replace(
        _OWN,
        bert=TINY,
        phases=(
            dataclasses.replace(SHORT, num_train_steps=short),
            Phase("length 64", 64, long),
        ),
        num_warmup_steps=(short + long) // 25,
        eval_every=2_000,
        max_heldout_examples=2048,
    )
    return Scale(
        name=name,
        corpus=Corpus(
            texts=(WIKIPEDIA, WIKIPEDIA_HELDOUT),
            vocab_size=8192,
            description="54 MB of English Wikipedia; held out: 1,500 other articles",
        ),
        records=(SHORT_RECORDS, _records("length 64", 64, 10, dupe_factor=2)),
        bert=bert,
        pretrain_seeds=seeds,
        columns=columns,
        notes=(
            "models of this size reach a small part of the paper's scores: what is compared is "
            "their order",
        ),
        left_to_right_fraction=0.3,
    )


def _cpu() -> Scale:
    columns = two_core_columns({"SQuAD": 8_000})
    kept = ("QNLI", "SQuAD", "entities", "cloze", "NER")
    chosen = {name: columns[name] for name in kept}
    return _two_cores("cpu", (1_000, 3_000), (1, 2, 3, 4), chosen)


def _night() -> Scale:
    columns = two_core_columns({"SST-2": 10_000}, {"QNLI": (1, 2), "SQuAD": (1, 2)})
    return _two_cores("night", (2_000, 14_000), (1, 2, 3, 4, 5), columns)


def snli() -> Scale:
    """Return the scale cpu with SNLI as its one task, in place of the paper's MNLI."""
    return dataclasses.replace(_cpu(), name="snli", columns={SNLI.label: SNLI})


# Minutes, from the embedded sample.


def _smoke() -> Scale:
    bert = dataclasses.replace(
        _OWN,
        bert=dataclasses.replace(TINY, vocab_size=4096, max_position_embeddings=64),
        phases=(Phase("length 64", 64, 600),),
        num_warmup_steps=60,
        eval_every=200,
        max_heldout_examples=512,
        save_every=200,
    )
    return Scale(
        name="smoke",
        corpus=Corpus(
            texts=(Text(("sample",)),),
            held_out=0.04,
            vocab_size=4096,
            description="the embedded sample of novels, Wikipedia and SQuAD passages, 8.9 MB",
        ),
        records=(_records("length 64", 64, 10, dupe_factor=1),),
        bert=bert,
        pretrain_seeds=(1,),
        columns=sample_columns(),
        notes=("a test of the machinery: scores at this scale mean little",),
        left_to_right_fraction=0.3,
    )


SCALES = {
    "paper": _paper, "gpu": _gpu, "gpu-day": _gpu_day,
    "night": _night, "cpu": _cpu, "smoke": _smoke,
}  # fmt: skip
