"""Gains of a vocabulary of one's own domain: pieces a word, entities of one piece, F1.

    BERT_DATA_DIR=... python -m benchmarks.own_vocabulary --workdir=runs/own_vocabulary \\
        --output=experiments/results/own_domain

The path of docs/own_domain.md at a small size: the training text of NCBI-disease, bc5cdr and
sci-cite (3 MB) becomes a vocabulary as large as that of the embedded model, and records with both;
a model of 2 layers is pre-trained on either for the same steps, the embedded one goes on with the
records of its own vocabulary, and all of them learn to tag the diseases of NCBI-disease. Pieces are
counted on the dev files, which nothing was learnt from. Interrupted, it continues.
"""

import argparse
import dataclasses
import functools
import json
import os
import statistics
from pathlib import Path

from data_prep import vocab as vocabularies
from data_prep.create_pretraining_data import create
from data_prep.sentences import split_files
from data_prep.tasks import get_task
from experiments.configs.columns import CPU_FINETUNE
from experiments.configs.scales import get_scale
from experiments.training import runs
from experiments.training.settings.config import Phase
from official_bert.checkpoints import embedded
from official_bert.common.files import atomic_write
from official_bert.tokenization import BertTokenizer, write_vocab

GENERAL = "tiny-wikipedia"
TAGGED = ("NCBI-disease", "bc5cdr")
LENGTHS = {"length 16": (16, 3), "length 64": (64, 10)}  # and pieces to predict in a row
ROWS = {
    "general vocabulary": "from random weights, the domain's text in the embedded model's pieces",
    "own vocabulary": "from random weights, the domain's text in pieces learnt from it",
    "Wikipedia": "the embedded model as it is",
    "continued": "the same after as many steps on the domain's text",
}


@dataclasses.dataclass(frozen=True)
class Size:
    """Steps at lengths 16 and 64 of each pre-training, entries of the vocabulary learnt, epochs and
    seeds of fine-tuning, rows, and what else differs from Table 5's recipe for two cores."""

    steps: tuple[int, int] = (1_000, 3_000)
    vocab_size: int = 8192
    epochs: float = 3.0
    seeds: tuple[int, ...] = (1, 2)
    rows: tuple[str, ...] = tuple(ROWS)
    bert: dict = dataclasses.field(default_factory=dict)
    pretrain: dict = dataclasses.field(default_factory=dict)


def write_corpus(folder: Path, data: Path) -> list[str]:
    """Write the training files as a sentence a line, documents apart by blank lines; return the
    paths.

    Args:
      data: the folder `scientific`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in TAGGED:
        with atomic_write(folder / f"{name}.txt") as file:
            for document in tagging(data, name, context="document").examples("train"):
                lines = [" ".join(words) + "\n" for words in document.sentences]
                file.write("".join(lines) + "\n")
    cited = data / "text_classification" / "sci-cite" / "train.txt"
    written = split_files([str(cited)], folder / "sci-cite", layout="rows", compress=False)
    return [
        *(str(folder / f"{name}.txt") for name in TAGGED),
        *(str(folder / "sci-cite" / name) for name in written),
    ]


def pieces(tokenizer, data: Path, name: str) -> dict:
    """Count what a tokeniser makes of the dev file of one of `TAGGED`.

    Returns:
      {"pieces_a_word", "pieces_a_word_of_entities", "whole_entities" (the share that is one piece),
      "unknown" (the share of words)}.
    """
    encode = functools.cache(tokenizer.encode)
    task = tagging(data, name)
    words, unknown, of_entities, whole = [], 0, [], []
    for example in task.examples("dev"):
        ids = [encode(word) for word in example.sentences[0]]
        words += map(len, ids)
        unknown += sum(tokenizer.unk_id in row for row in ids)
        for _, first, end in task.column.phrases(example.tags[0]):
            of_entities += map(len, ids[first:end])
            whole.append(sum(map(len, ids[first:end])) == 1)
    return {
        "pieces_a_word": statistics.fmean(words),
        "pieces_a_word_of_entities": statistics.fmean(of_entities),
        "whole_entities": statistics.fmean(whole),
        "unknown": unknown / len(words),
    }


def run(workdir: Path, data: Path, size: Size | None = None, progress: bool = True) -> dict:
    """Run all steps of the comparison.

    Returns:
      {"size", "pieces": {vocabulary: {data set: ...}}, "f1": {row: [of each seed]}, "baseline": F1
      of the entities of the training file wherever they stand}.
    """
    size = size or Size()
    corpus = write_corpus(workdir / "corpus", data)
    paths = {"general": embedded.find(GENERAL) / "vocab.txt", "own": workdir / "vocab.txt"}
    if not paths["own"].exists():
        write_vocab(paths["own"], vocabularies.learn_vocab(corpus, size.vocab_size))
    records = {
        kind: {
            name: str(make_records(corpus, path, workdir / kind / name, *lengths, progress))
            for name, lengths in LENGTHS.items()
        }
        for kind, path in paths.items()
    }
    starts = {
        "general vocabulary": ("general", ""),
        "own vocabulary": ("own", ""),
        "continued": ("general", GENERAL),
    }
    models = {"Wikipedia": GENERAL}
    for row in filter(starts.get, size.rows):
        kind, start = starts[row]
        config = pretraining(size, records[kind], paths[kind], start)
        models[row] = runs.pretrain(config, workdir / "pretrain" / row, progress).model
    found = {row: [] for row in size.rows}
    for seed in size.seeds:
        for row in size.rows:
            config = dataclasses.replace(
                CPU_FINETUNE, task="conll2003", data_dir=str(data / "ner" / TAGGED[0]),
                task_options={"context": "sentence"}, model=str(models[row]), seed=seed,
                num_train_epochs=size.epochs,
            )  # fmt: skip
            results = runs.finetune(config, workdir / "finetune" / f"{row} {seed}", progress)
            found[row].append(results.dev["f1"])
            baseline = results.baseline["f1"]
    counted = {
        kind: {name: pieces(BertTokenizer(path), data, name) for name in TAGGED}
        for kind, path in paths.items()
    }
    size = dataclasses.asdict(size)
    return {"size": size, "pieces": counted, "f1": found, "baseline": baseline}


def make_records(corpus, vocab, output: Path, length: int, most: int, progress: bool) -> Path:
    """Make rows of one segment, since many documents are one sentence; masks are drawn anew."""
    create(
        corpus, str(vocab), str(output), max_seq_length=length, max_predictions_per_seq=most,
        packing="single", dynamic_masking=True, short_seq_prob=0.0, dupe_factor=1,
        progress=progress,
    )  # fmt: skip
    return output


def pretraining(size: Size, records: dict[str, str], vocab, start: str = ""):
    """Return table 5's recipe for two cores without next sentence prediction; `start` is a model
    to go on with, which keeps its shape and skips what warms up the attention, the rows of
    length 16."""
    base = get_scale("cpu").no_nsp
    entries = len(Path(vocab).read_text(encoding="utf-8").splitlines())
    bert = dataclasses.replace(base.bert, vocab_size=entries, **size.bert)
    short, long = base.phases
    phases = (
        dataclasses.replace(short, records=records["length 16"], num_train_steps=size.steps[0]),
        dataclasses.replace(long, records=records["length 64"], num_train_steps=size.steps[1]),
    )
    if start:
        phases = (Phase(records["length 64"], 64, sum(size.steps)),)
    return dataclasses.replace(
        base, bert="" if start else bert, init_from=start, vocab="" if start else str(vocab),
        phases=phases, num_warmup_steps=sum(size.steps) // 25, **size.pretrain,
    )  # fmt: skip


def markdown(found: dict) -> str:
    """Return the report."""
    short, long = found["size"]["steps"]
    lines = [
        "# A vocabulary of one's own domain",
        "",
        "Made by `python -m benchmarks.own_vocabulary` with the options of `size` in results.json; "
        "the path is that of [docs/own_domain.md](../../../docs/own_domain.md).",
        "",
        f"Vocabularies of {found['size']['vocab_size']:,} pieces, on dev files that neither was "
        "learnt from:",
        "",
        "| text | vocabulary | pieces a word | in entities | entities of one piece | [UNK] |",
        "|---|---|---|---|---|---|",
    ]
    for name in TAGGED:
        for kind, counted in found["pieces"].items():
            one = counted[name]
            lines.append(
                f"| {name} | {kind} | {one['pieces_a_word']:.3f} | "
                f"{one['pieces_a_word_of_entities']:.3f} | {100 * one['whole_entities']:.1f}% | "
                f"{100 * one['unknown']:.2f}% |"
            )
    size = found["size"]
    lines += [
        "",
        f"F1 on {TAGGED[0]} dev of a model of 2 layers, 128 wide, pre-trained for {short:,} steps "
        f"at length 16 and {long:,} at length 64 (continued: all of them at length 64) and "
        f"fine-tuned for {size['epochs']:g} epochs (seeds {', '.join(map(str, size['seeds']))}):",
        "",
        "| model | | F1 | of each seed |",
        "|---|---|---|---|",
    ]
    for row, scores in found["f1"].items():
        each = ", ".join(f"{100 * score:.1f}" for score in scores)
        lines.append(f"| {row} | {ROWS[row]} | {100 * statistics.fmean(scores):.1f} | {each} |")
    lines.append(f"| (baseline) | the training file's entities | {100 * found['baseline']:.1f} | |")
    return "\n".join(lines) + "\n"


def tagging(data: Path, name: str, context: str = "sentence"):
    """Return the task of one of `TAGGED`."""
    return get_task("ner", str(data / "ner" / name), context=context)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data_dir", default=os.environ.get("BERT_DATA_DIR", ""))
    parser.add_argument("--workdir", required=True, help="folder of corpus, records and runs")
    usual = Size()
    for name in ("steps", "epochs", "seeds", "rows"):
        value = getattr(usual, name)
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        parser.add_argument(f"--{name}", default=text, help=f"of the models; default: {text}")
    parser.add_argument("--output", default="", help="folder for results.json and report.md")
    options = parser.parse_args()
    if not options.data_dir:
        parser.error("--data_dir or BERT_DATA_DIR must name the folder of the data")
    steps, seeds = (tuple(map(int, x.split(","))) for x in (options.steps, options.seeds))
    rows = tuple(row for row in ROWS if row in options.rows.split(","))
    size = Size(steps, epochs=float(options.epochs), seeds=seeds, rows=rows)
    found = run(Path(options.workdir), Path(options.data_dir) / "scientific", size)
    print(markdown(found))
    if options.output:
        Path(options.output).mkdir(parents=True, exist_ok=True)
        for name, text in (("results.json", json.dumps(found, indent=1) + "\n"),
                           ("report.md", markdown(found))):  # fmt: skip
            with atomic_write(Path(options.output) / name) as file:
                file.write(text)


if __name__ == "__main__":
    main()
