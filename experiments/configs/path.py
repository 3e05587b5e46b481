"""The path of a BERT, from text to an answer: the first part of `make reproduce`.

    python -m experiments.ablate --config=path --workdir=runs/path

A vocabulary of 4,096 pieces is learnt from the embedded sample (8.9 MB of text) and records of
length 16 are made. A model of 2 layers, 128 wide, is pre-trained for 800 steps and fine-tuned to
tell spam from other messages; the SavedModel that is exported is asked about five texts. About two
minutes of two cores, 2 GB of memory.

Expected: the masked-LM loss falls from 8.3, which is guessing among the pieces, to about 6 (a model
that knows only how frequent they are reaches 6.75); over 95 % of the messages are classified right.
So few steps test no claim: table5:checkpoints takes models that had more.
"""

import dataclasses

from experiments.configs.columns import HELDOUT_LOSS
from experiments.configs.scales import SHORT, SHORT_RECORDS, get_scale
from experiments.tables.planning.ablation import Ablation, Export, Row, Variant

MESSAGES = (
    "Congratulations! You have won a free holiday. Call 09061701461 now to claim your prize.",
    "Are we still meeting at the library at six?",
    "URGENT: your account has been selected for a 500 pound reward, text WIN to 80086",
    "Running ten minutes late, sorry. Order me a coffee?",
    "Txt STOP to end. Ringtones and games from only 25p a day!",
)


def get_config() -> Ablation:
    smoke = get_scale("smoke")
    bert = dataclasses.replace(
        smoke.bert,
        phases=(dataclasses.replace(SHORT, num_train_steps=800),),
        num_warmup_steps=80,
        objectives=("masked_lm",),
        output_bias="zeros",
        eval_every=0,
        log_every=25,
    )
    note = "SMS Spam, of which 87.3 % are none"
    spam = smoke.columns["SST-2"].changed(max_train_examples=0, note=note)
    return Ablation(
        name="path",
        title="From text to an answer",
        variants=(Variant("BERT", bert),),
        columns=(HELDOUT_LOSS, spam),
        rows=(Row("BERT", "BERT"),),
        exports=(Export("BERT", spam.label, MESSAGES),),
        **(smoke.fields() | {"records": (SHORT_RECORDS,), "notes": ()}),
    )
