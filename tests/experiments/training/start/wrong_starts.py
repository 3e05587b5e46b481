"""Runs that cannot begin, all started in this one process; prints what each of them says.

`test_preflight` runs it and compares, and asks whether TensorFlow was loaded on the way.
"""

import json
import sys
from pathlib import Path

import tiny_runs

from experiments.training import runs
from experiments.training.settings.config import FinetuneConfig, Phase, PretrainConfig
from experiments.training.settings.config_values import override
from official_bert.backend import tensorflow_start
from official_bert.common.errors import UserError

# Under the overrides of a run, of which the first is the task, stands what its error says.
# {} is the folder of the data; .NAME is an option of the task.
FINETUNING = r"""
mrpc data_dir={}/no
    --config.data_dir={}/no: no such file or folder
mrpc model={}/no/model
    --config.model={}/no/model: no such folder
mrpc model={}
    --config.model={}: no model in this folder
mrpc model= vocab={}/v
    --config.vocab={}/v: no such file
mrpc model= vocab=
    give model
mrpc task=
    task is empty; choose one of text_classification
mrpc task=sst3
    task='sst3'; it is one of
mrpc keep_best=true
    keep_best needs eval_every
mrpc max_seq_length=64
    --config.max_seq_length=64: the model has pos
mrpc freeze=blocks:0-9
    --config.freeze=blocks:0-9: .* blocks:0-0
mrpc class_weights=2=3
    --config.class_weights: '2=3' is not a LABEL
mrpc features=concat_last_four
    --config.features=concat_last_four:
mrpc .colour=1
    --config.task_options.colour=1: unknown option colour of task mrpc; its options are dev_
squad .doc_stride=far
    --config.task_options.doc_stride=far: option doc_stride of task squad_v1.1 is 'far', exp
swag .num_choices=1
    --config.task_options.num_choices=1: num_choices=1; it is at least 2
mrpc .dev_file=x.tsv
    no file for .*x.tsv in .* .--config.data_dir={}, --config.task_options.dev_file=
mrpc .train_file=pairs.tsv
    pairs.tsv line 1: no column #1 String, #2 String, Quality; .*--config.task=text_cl
stsb .train_file=pairs.tsv .dev_file=pairs.tsv
    pairs.tsv line 3: score is 'high', expected a number
text_classification .train_file=pairs.tsv .text_b_column=second
    --config.task_options.text_b_column=second: text_b_column is set but text_column is not
text_classification .train_file=several.jsonl .dev_file=one.jsonl .problem=multi_label
    one.jsonl line 1: label 'music' is not among the training labels .food, news.
text_classification data_dir={}/plain.tsv
    one file, the training file; set dev_file or dev_fraction .*task_options.dev_file=
ner data_dir={}/two.txt
    the training file; set dev_file
ner .train_file=two.txt .column=chunks
    two.txt line 1: 2 columns, expected 3 .word first, chunks number 3.*options.tag_column=
ner .train_file=speech.txt
    speech.txt line 1: 'NN' is not an IOB tag .--task_options.tag_column=
ner .train_file=two.txt .dev_file=other.txt
    other.txt line 2: the tag B-ORG is not among the training tags.*task_options.labels=
squad .train_file=one.jsonl
    one.jsonl line 1: which columns hold question and context
swag .train_file=choices.csv
    choices.csv line 1: no column ending2, ending3.*--task_options.num_choices=
"""
PRETRAINING = r"""
phases.0.records=
    --config.phases.0.records is empty
phases.0.records={}/no
    --config.phases.0.records={}/no: no record file matches
phases.0.max_seq_length=32
    --config.phases.0.records={}/records: .* have max_seq_length 24, the configuration 32
phases.0.heldout_records={}/no
    --config.phases.0.heldout_records={}/no: no record file matches
vocab={}/v.txt
    --config.vocab={}/v.txt: no such file
vocab={}/swapped.txt
    --config.phases.0.records={}/records: made with another vocabulary, {}/records/vocab.txt, than
do_lower_case=false
    made with do_lower_case=True
bert.vocab_size=99
    set --config.bert.vocab_size=39
bert.max_position_embeddings=16
    --config.phases.0.records={}/records: rows of 24 tokens, .* positions for 16
bert.attention_direction=left_to_right
    --config.objectives: masked_lm is not for .*; write next_token in its place
bert=
    --config.init_from is empty: name the model
bert= init_from={}/no/model
    --config.init_from={}/no/model: no such folder or checkpoint
init_from={}/model bert.hidden_size=8
    does not fit --config.init_from={}/model: hidden_size 8, there 16
bert= init_from={}/model vocab={}/other.txt
    --config.vocab={}/other.txt .6 entries. is not the vocabulary of {}/model .39 entries.
bert= init_from={}/other vocab=
    --config.phases.0.records={}/records: made with a vocabulary of 39 entries, the model's
"""


def cases(text):
    """Return {overrides: what the error says}."""
    lines = [line.removeprefix("    ") for line in text.strip("\n").split("\n")]
    return dict(zip(lines[::2], lines[1::2], strict=True))


def make_data(folder):
    """Files of all tasks, records, and a model folder without weights."""
    tiny_runs.make_records(folder)
    *first, last = (folder / "vocab.txt").read_text().split()
    special = len(tiny_runs.SPECIAL)
    swapped = [*first[:special], last, *first[special:]]
    (folder / "swapped.txt").write_text("\n".join(swapped) + "\n")
    for name, vocab in (("model", "vocab.txt"), ("other", "other.txt")):
        (folder / name).mkdir()
        (folder / "other.txt").write_text("\n".join([*tiny_runs.SPECIAL, "the"]) + "\n")
        words = (folder / vocab).read_text()
        (folder / name / "vocab.txt").write_text(words)
        settings = {"head": "pretraining", "do_lower_case": True}
        settings["objectives"] = ["masked_lm", "next_sentence"]
        (folder / name / "model.json").write_text(json.dumps(settings))
        config = tiny_runs.bert(vocab_size=len(words.split()))
        config.to_json_file(folder / name / "bert_config.json")
    rows = ["sentence1\tsentence2\tscore", "a\tb\t1.5", "c\td\thigh"]
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n")
    glue = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\ta\tb\n"
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(glue)
    rows = [{"text": "a", "label": ["food"]}, {"text": "b", "label": ["food", "news"]}]
    (folder / "several.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "one.jsonl").write_text('{"text": "a", "label": ["music"]}')
    (folder / "plain.tsv").write_text("text\tlabel\na\tx\nb\ty\n")
    (folder / "two.txt").write_text("Ann B-PER\nsleeps O\n")
    (folder / "other.txt").replace(folder / "kept.txt")
    (folder / "speech.txt").write_text("Ann NN\n")
    (folder / "choices.csv").write_text("sent1,sent2,ending0,ending1,label\na,b,c,d,2\n")


def said(start, config, overrides, folder):
    """Return the error of a run, or that there was none."""
    try:
        start(override(config, overrides), folder / "run", progress=False)
    except UserError as error:
        return str(error)
    return "began"


def main(folder):
    make_data(folder)
    other = folder / "other.txt"
    found = {}

    def too_late():
        raise UserError("too late")

    tensorflow_start.import_tensorflow = too_late

    for name in cases(FINETUNING):
        other.write_text("The O\nAnn B-ORG\n")
        task, *given = name.replace("{}", str(folder)).replace(" .", " task_options.").split()
        config = FinetuneConfig(
            task=task, data_dir=str(folder), model=str(folder / "model"), max_seq_length=16
        )
        found[name] = said(runs.finetune, config, given, folder)
    (folder / "kept.txt").replace(other)
    phases = (Phase(str(folder / "records"), 0, 4),)
    config = PretrainConfig(bert=tiny_runs.bert(), vocab=str(folder / "vocab.txt"), phases=phases)
    for name in cases(PRETRAINING):
        given = name.replace("{}", str(folder)).split()
        found[name] = said(runs.pretrain, config, given, folder)
    loaded = sorted({"tensorflow", "keras", "keras_hub"} & set(sys.modules))
    print(json.dumps({"said": found, "loaded": loaded}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
