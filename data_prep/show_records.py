"""Shows pre-training records readably, with statistics of what training will see.

    python -m data_prep.show_records records --examples=3 --plot=lengths.png
    python -m data_prep.show_records records/examples-0000*

A predicted token is shown in brackets with the answer: [MASK → house] was masked, [tree → house]
replaced by a random token, [house] left as it was. Pieces are joined to words.
"""

import itertools
import os

import numpy as np
from absl import flags

from data_prep.jobs import commands, storage, vocabularies
from data_prep.jobs.outputs import check_outputs
from data_prep.pretraining.reading.numpy_batches import numpy_batches
from data_prep.pretraining.reading.record_sets import open_records
from official_bert.common.errors import UserError, check_choice


def show(source, vocab_path: str = "", examples: int = 3) -> str:
    """Return the first examples as text.

    Args:
      source: a folder of records, a glob pattern, a file or a list of files.
      vocab_path: the vocabulary; "" takes the vocab.txt beside the records.

    Raises:
      UserError: nothing matches, a record is damaged, or there is no vocabulary or another one.
    """
    records = open_records(source)
    vocab_path = vocab_path or _vocab_beside(records)
    tokenizer = vocabularies.load_tokenizer(vocab_path)
    if records.vocab_size not in (0, tokenizer.vocab_size):
        raise UserError(
            f"{vocab_path} has {tokenizer.vocab_size} entries, and the records were made with "
            f"{records.vocab_size}; give their vocabulary with --vocab"
        )
    records.vocab_size = tokenizer.vocab_size  # the limit of ids, where no manifest says one
    texts = []
    for number, example in enumerate(itertools.islice(_examples(records), examples)):
        label = "random next segment" if example["next_sentence_labels"][0] else "next segment"
        label = label if example["segment_ids"].any() else "one segment"
        length = int(example["input_mask"].sum())
        first, second = _segments(example, tokenizer)
        texts.append(
            f"example {number}: {label}, {length} of {len(example['input_ids'])} tokens, "
            f"{_predictions(example)} masked\n  A: {first}" + (f"\n  B: {second}" if second else "")
        )
    return "\n\n".join(texts)


def statistics(source, limit: int = 100_000) -> dict:
    """Return statistics of up to `limit` examples.

    Returns:
      {"examples", "max_seq_length", "length_histogram": [[from, to, examples], ...] in ten bins,
      "mean_length", "padding_share", "masks_a_row": [mean, least, most], "random_next_share",
      "mask_share", "same_share", "random_share"}; the last three, of predicted tokens, need the
      vocabulary beside the records, and with "masks_a_row" static masking.
    """
    records = open_records(source)
    lengths, masks, random_next = [], [], 0
    fates = np.zeros(2, np.int64)  # [MASK], unchanged
    vocab_path = _vocab_beside(records, required=False)
    knows = bool(vocab_path) and records.has_predictions
    mask_id = vocabularies.load_tokenizer(vocab_path).mask_id if knows else -1
    for example in itertools.islice(_examples(records), limit):
        lengths.append(int(example["input_mask"].sum()))
        random_next += int(example["next_sentence_labels"][0])
        if "masked_lm_ids" in example:
            count = _predictions(example)
            masks.append(count)
            now = example["input_ids"][example["masked_lm_positions"][:count]]
            fates += [(now == mask_id).sum(), (now == example["masked_lm_ids"][:count]).sum()]
    lengths = np.array(lengths)
    longest = records.max_seq_length
    edges = np.linspace(0, longest, 11).round().astype(int)
    counts, _ = np.histogram(lengths, edges + 1)
    result = {
        "examples": len(lengths),
        "max_seq_length": longest,
        "length_histogram": [
            [int(low) + 1, int(high), int(count)]
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ],
        "mean_length": float(lengths.mean()),
        "padding_share": float(1 - lengths.mean() / longest),
        "random_next_share": random_next / len(lengths),
    }
    if masks:
        result["masks_a_row"] = [float(np.mean(masks)), min(masks), max(masks)]
        if knows:
            shares = fates / sum(masks)
            result["mask_share"], result["same_share"] = map(float, shares)
            result["random_share"] = float(1 - shares.sum())
    return result


def statistics_text(values: dict) -> str:
    """Return the statistics as lines of text, the histogram as bars."""
    lines = [
        f"{values['examples']:,} examples of length {values['max_seq_length']}",
        f"real tokens a row: {values['mean_length']:.1f}; padding: {values['padding_share']:.1%}",
        f"random next segment: {values['random_next_share']:.1%}",
    ]
    if "masks_a_row" in values:
        mean, least, most = values["masks_a_row"]
        lines.append(f"masks a row: {mean:.1f} on average, {least} to {most}")
    else:
        lines.append("masks: none in the records, they are drawn anew in every epoch of training")
    if "mask_share" in values:
        lines.append(
            f"of the masked tokens: {values['mask_share']:.1%} [MASK], {values['same_share']:.1%} "
            f"unchanged, {values['random_share']:.1%} random"
        )
    lines.append("length:")
    most = max(count for _, _, count in values["length_histogram"])
    for low, high, count in values["length_histogram"]:
        bar = "#" * round(40 * count / most)
        lines.append(f"  {low:>4} - {high:<4} {count / values['examples']:6.1%} {bar}")
    return "\n".join(lines)


def plot(values: dict, path: str, overwrite: bool = False) -> None:
    """Draw the histogram of lengths to an image file, whose name ends with its format.

    Raises:
      UserError: matplotlib does not write such a format, or something stands at the path.
    """
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(7, 3.5), layout="constrained")
    kind = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    check_choice("the format of --plot", kind, figure.canvas.get_supported_filetypes(), path)
    axes = figure.add_subplot()
    lows = [low for low, _, _ in values["length_histogram"]]
    widths = [high - low + 1 for low, high, _ in values["length_histogram"]]
    shares = [100 * count / values["examples"] for _, _, count in values["length_histogram"]]
    axes.bar(lows, shares, widths, align="edge", edgecolor="white")
    axes.set_xlabel("tokens in a row, with [CLS] and [SEP]")
    axes.set_ylabel("% of examples")
    axes.set_title(
        f"{values['examples']:,} examples: padding {values['padding_share']:.1%}, "
        f"random next {values['random_next_share']:.1%}"
    )
    with storage.writing(path, overwrite, own=False) as file:
        figure.savefig(file, format=kind, dpi=120)


def named(names: list[str]):
    """Return the source that a command line names: a folder, a file, a pattern, or several files.

    Raises:
      UserError: nothing is named, or a folder among several.
    """
    if not names:
        raise UserError("name the records: files, a folder or a glob pattern; see --help")
    if len(names) == 1:
        return names[0]
    for name in filter(storage.is_directory, names):
        raise UserError(f"{name} is a folder; show one folder, or several files, at a time")
    return names


def _examples(records):
    for batch in numpy_batches(records, 1, shuffle=False, masked=False):
        yield {name: rows[0] for name, rows in batch.items()}


def _predictions(example) -> int:
    return int((example.get("masked_lm_weights", example["input_mask"][:0]) > 0).sum())


def _segments(example, tokenizer):
    """Return segment A and B as readable text; B is "" where there is none."""
    vocab = tokenizer.readable
    shown = [vocab[index] for index in example["input_ids"]]
    count = _predictions(example)
    if count:
        answers = zip(
            example["masked_lm_positions"][:count].tolist(),
            example["masked_lm_ids"][:count].tolist(),
            strict=True,
        )
        for place, answer in answers:
            now, truth = shown[place].strip("[]<>"), vocab[answer]
            shown[place] = f"[{truth}]" if shown[place] == truth else f"[{now} → {truth}]"
    length = int(example["input_mask"].sum())
    b_start = length - int(example["segment_ids"].sum())
    ends = 1 if b_start == length else tokenizer.separators
    return _joined(shown[1 : b_start - ends]), _joined(shown[b_start : length - 1])


def _joined(pieces):
    text = ""
    for piece in pieces:
        if piece.startswith("##") and text:
            text += piece[2:]
        elif "##" in piece and piece.endswith("]") and not piece.startswith("[##"):
            text += piece  # the answer continues a word, as in le[MASK → ##pt]och
        else:
            text += " " + piece
    return text.strip()


def _vocab_beside(records, required=True):
    path = vocabularies.find_vocabulary(os.path.dirname(records.files[0]), required=False)
    if required and not path:
        raise UserError(f"no vocabulary lies beside {records.files[0]}; give one with --vocab")
    return path


def _define_flags():
    flags.DEFINE_string("records", "", "Folder, glob pattern or file, where it is not named bare.")
    flags.DEFINE_string("vocab", "", "Vocabulary; default: the vocab.txt beside the records.")
    flags.DEFINE_integer("examples", 3, "How many examples to show.", lower_bound=0)
    flags.DEFINE_integer("limit", 100_000, "Examples to count for the statistics.", lower_bound=1)
    flags.DEFINE_string("plot", "", "Write the histogram of lengths to this image file.")
    flags.DEFINE_bool("overwrite", False, "Rename what stands at --plot to NAME.~1~ first.")


def main(argv):
    options = flags.FLAGS
    source = named([*argv[1:], *filter(None, [options.records])])
    read = [source] if isinstance(source, str) else source
    check_outputs(read, files=[options.plot], overwrite=options.overwrite)
    if options.examples:
        print(show(source, options.vocab, options.examples) + "\n")
    values = statistics(source, options.limit)
    print(statistics_text(values))
    if options.plot:
        plot(values, options.plot, options.overwrite)
        print(f"plot: {options.plot}")


if __name__ == "__main__":
    _define_flags()
    commands.run(main, takes_files=True)
