"""Makes pre-training records from text: section 3.1, "Pre-training data", and appendix A.2.

    python -m data_prep.create_pretraining_data --input='corpus/*.txt' --vocab=vocab.txt \\
        --output=records --max_seq_length=128

Input: one sentence a line, a blank line between documents (see data_prep.sentences and
data_prep.wikipedia). Output: a folder of shuffled TFRecord shards with the original's features,
`manifest.json` (options, counts, checksums) and the vocabulary; with --held_out, a folder `heldout`
of the same kind inside. The same options give the same bytes, whatever --num_workers. An
interrupted run continues; a finished one is left alone; other options need --overwrite.

The work goes through a token store (data_prep.pretraining.token_store), then rows, then shards
(data_prep.pretraining.shards): memory does not grow with the corpus.
"""

import contextlib
import dataclasses
import os
import re
import sys

from absl import flags

from data_prep.corpus import input_look, shares
from data_prep.corpus.input_files import expand_inputs, places_of
from data_prep.jobs import checked_json, command_flags, commands, storage, vocabularies
from data_prep.jobs.output_folder import OPTIONS, claim_folder, earlier, locked
from data_prep.jobs.outputs import check_outputs
from data_prep.jobs.workers import LocalWorkers, available_cores
from data_prep.pretraining import rows, shards
from data_prep.pretraining import token_store as token_stores
from data_prep.pretraining.record_options import RecordOptions
from official_bert.common.errors import UserError
from official_bert.common.json_files import fields_of
from official_bert.tokenization.reference import Rules

# Names in the folder `work` that are removed at the end; whatever else is there stays.
_WORK = re.compile(
    r"(rows|blocks|joined|slices|shards)-.*|tasks\.json|token_store|vocab\.txt|tokenizer\.json|"
    r"spiece\.model"
)
_SMALL_INPUT = 8_000_000  # bytes of input for which a worker process is worth starting


def create(
    inputs: str | list[str],
    vocab_path: str,
    output: str,
    *,
    num_workers: int = 0,
    overwrite: bool = False,
    token_store: str = "",
    keep_work: bool = False,
    accept_input: bool = False,
    accept_loss: bool = False,
    progress: bool = True,
    workers=None,
    **options,
) -> dict:
    """Make records; continue an interrupted run; return at once where everything is done.

    Args:
      inputs: files or glob patterns.
      vocab_path: the vocabulary, one entry a line.
      output: folder to make; local, or remote when workers can reach it.
      num_workers: processes; 0 for one a core, fewer for small inputs. Records do not depend on it.
      overwrite: renames records (or a token store) of other options, and whatever else is there.
      token_store: folder that keeps the tokenised corpus for other options and lengths; by default
        it is inside the output folder while the run lasts.
      keep_work: leaves the intermediate files in `output`/work.
      accept_input: goes on where the input looks like no corpus.
      accept_loss: goes on where more than 5% of the tokens are [UNK].
      progress: bars on stderr.
      workers: what runs the tasks in place of local processes (see data_prep.jobs.beam).
      **options: fields of `RecordOptions`.

    Returns:
      The manifest of the training records: "options", "max_seq_length", "max_predictions_per_seq",
      "vocab_size", "vocab_sha256", "dynamic_masking", "compression", "seed", "counts", "shards"
      and, of masked rows, "masked_lm_share", {"asked_for", "reached"}.

    Raises:
      UserError: wrong options or input, an input that is not a corpus of sentences and documents,
        too many [UNK], an `output` made with other options (the message lists them), or folders
        that hold one another.
    """
    chosen = RecordOptions(**fields_of(RecordOptions, options, "options of the records"))
    named, inputs = inputs, expand_inputs(inputs)
    check_outputs([*places_of(named), *inputs, vocab_path], work=[output, token_store])
    if token_store:
        _check_apart(output, token_store)
    # Wrong or unsuitable inputs are refused before any work.
    found = input_look.look(inputs)
    tokenizer = vocabularies.load_tokenizer(vocab_path, do_lower_case=chosen.do_lower_case)
    _check_suits(tokenizer, vocab_path, chosen)
    with contextlib.ExitStack() as stack:
        vocab_path = stack.enter_context(vocabularies.one_file(vocab_path, tokenizer))
        store_options = token_stores.store_options(inputs, vocab_path, chosen)
        options = store_options | dataclasses.asdict(chosen)
        # The number of separators between A and B; 0 in rows without a B.
        options["separators"] = 0 if chosen.packing == "single" else tokenizer.separators
        if workers is None:
            workers = _local_workers(num_workers, store_options["inputs"], progress)
        try:
            lock = stack.enter_context(locked(output))
        except UserError:
            if finished := _finished(output, options):
                return finished  # others read it, and nothing is left to do
            raise
        store_lock = stack.enter_context(locked(token_store)) if token_store else None
        claim_folder(output, options, overwrite, "set of records", lock)
        work = os.path.join(output, "work")
        path = os.path.join(output, "manifest.json")
        if storage.exists(path):
            manifest = checked_json.read(path)
        else:
            if not accept_input:
                input_look.check(found, chosen.max_seq_length, chosen.packing != "single")
            _warn_of_stripped_marks(found, chosen, tokenizer)
            storage.make_folder(work)
            store = token_store or os.path.join(work, "token_store")
            vocabulary = os.path.join(work, tokenizer.file_name)
            # Cluster workers reach the output folder, not this machine's files.
            storage.copy_file(vocab_path, vocabulary)
            with workers:
                store = token_stores.build(
                    store_options, inputs, vocabulary, store, workers, overwrite, store_lock
                )
                _check_unknown(store, accept_loss)
                if chosen.packing != "single":
                    _check_documents(store, accept_input)
                manifest = _write_splits(store, options, vocabulary, workers)
        if not keep_work:
            storage.remove_known(work, _WORK)
    return manifest


def _finished(output, options) -> dict | None:
    """Return the manifest of a finished set with these options; None where work is left."""
    paths = [os.path.join(output, name) for name in (OPTIONS, "manifest.json", "work")]
    if [storage.exists(path) for path in paths] != [True, True, False]:
        return None
    same = earlier(paths[0], options, f"the set of records in {output}", overwrite=True)
    return same and checked_json.read(paths[1])


def _check_apart(output, token_store):
    """Check that neither folder holds the other: each is begun empty and locked by itself."""
    paths = (p if storage.is_remote(p) else os.path.realpath(p) for p in (output, token_store))
    first, second = (f"{path.rstrip('/')}/" for path in paths)
    if first.startswith(second) or second.startswith(first):
        raise UserError(
            f"--token_store={token_store} and --output={output} are one folder, or one lies in the "
            "other; give two folders beside each other"
        )


def _check_suits(tokenizer, path, chosen):
    if chosen.masked_lm_prob and tokenizer.special.mask is None:
        raise UserError(
            f"{path}: no token of it hides another ([MASK]); --masked_lm_prob=0 leaves rows as "
            "they are, for models that read left to right"
        )
    if chosen.segmented and tokenizer.kind != "word_piece":
        raise UserError(f"segmented: only WordPiece makes every ideograph a token, {path} does not")
    if chosen.do_whole_word_mask or chosen.spans:
        _ = tokenizer.continues  # or why not


def _warn_of_stripped_marks(found, chosen, tokenizer):
    rules = Rules(chosen.do_lower_case, chosen.strip_accents)
    if tokenizer.kind == "word_piece" and rules.accents_go:
        words = [word for line in found.lines for word in line.split()]
        lost = sum(map(shares.loses_marks, words))
        if warning := shares.warning_of_marks(lost, len(words)):
            print(warning, file=sys.stderr)


def _check_unknown(store, accept_loss):
    advice = (
        "the vocabulary is of other text, or of another casing (--do_lower_case, --strip_accents)"
    )
    shares.check_unknown(store.unknown, max(1, store.tokens), advice, accept_loss)


def _check_documents(store, accept_input):
    documents = sum(block["documents"] for block in store.blocks("train"))
    if documents == 1 and not accept_input:
        raise UserError(
            "the input is one document, and random next sentences come from others; put blank "
            "lines between documents, or pass --accept_input"
        )


def _write_splits(store, options, vocab_path, workers):
    work, manifest = os.path.dirname(vocab_path), None
    output = os.path.dirname(work)
    for split in ("heldout", "train"):  # the manifest of the training records comes last
        if store.blocks(split):
            folder = output if split == "train" else os.path.join(output, "heldout")
            manifest = _write_split(store, split, options, vocab_path, work, folder, workers)
    return manifest


def _write_split(store, split, options, vocab_path, work, folder, workers) -> dict:
    """Make the records of a split, step by step; return their manifest."""
    vocab_size = store.manifest["vocab_size"]
    tasks = rows.rows_tasks(store, split, options, vocab_path, work)
    counts = workers.run(rows.make_rows, tasks, f"{split}: pairs and masks")
    files = shards.row_files(tasks, counts)
    if joins := shards.join_tasks(files, split, options, vocab_size, work):
        joined = workers.run(shards.join, joins, f"{split}: joined blocks")
        files = shards.row_files(joins, joined)

    storage.make_folder(folder)
    tasks = shards.shard_tasks(files, split, options, vocab_size, folder)
    written = workers.run(shards.write_shards, tasks, f"{split}: shuffled shards")
    manifest = _manifest(store, split, options, counts, written)
    storage.copy_file(vocab_path, os.path.join(folder, os.path.basename(vocab_path)))
    checked_json.write(os.path.join(folder, "manifest.json"), manifest)
    return manifest


def _manifest(store, split, options, counts, written) -> dict:
    """Describe the records of a split; `counts`: of `make_rows`, `written`: of `write_shards`."""
    numbers = {
        "examples": sum(count["rows"] for count in counts),
        "random_next": sum(count["random_next"] for count in counts),
        "tokens": sum(count["tokens"] for count in counts),
        "predictions": sum(count["predictions"] for count in counts),
        "cut_tokens": sum(count.get("cut_tokens", 0) for count in counts),
    }
    for name in ("documents", "sentences", "tokens"):
        numbers[f"corpus_{name}"] = sum(block[name] for block in store.blocks(split))
    numbers["invalid_utf8"] = store.manifest["invalid_utf8"]
    numbers["corpus_unknown_share"] = round(store.unknown / max(1, store.tokens), 6)
    manifest = {
        "format": "official_bert pre-training records, version 1",
        "split": split,
        "options": options,
        "max_seq_length": options["max_seq_length"],
        "max_predictions_per_seq": options["max_predictions_per_seq"],
        "vocab_size": store.manifest["vocab_size"],
        "vocab_sha256": options["vocab_sha256"],
        "dynamic_masking": options["dynamic_masking"],
        "compression": options["compression"],
        "seed": options["random_seed"],
        "counts": numbers,
        "shards": [shard for task in written for shard in task["shards"]],
    }
    if not options["dynamic_masking"]:
        manifest["masked_lm_share"] = {
            "asked_for": options["masked_lm_prob"],
            "reached": round(numbers["predictions"] / max(1, numbers["tokens"]), 6),
        }
    return manifest


def _local_workers(num_workers, files, progress):
    if not num_workers:
        size = sum(file["bytes"] for file in files)
        num_workers = min(available_cores(), max(1, size // _SMALL_INPUT))
    return LocalWorkers(num_workers, progress)


def _define_flags():
    texts = "Text files or glob patterns, separated by commas."
    flags.DEFINE_string("input", None, texts, required=True)
    about = "Vocabulary file (data_prep.vocab makes one)."
    flags.DEFINE_string("vocab", None, about, required=True)
    command_flags.define(create, ("vocab_path", "keep_work"))
    command_flags.define(RecordOptions)
    flags.DEFINE_string(
        "runner", "", "Run on Apache Beam with this runner: DirectRunner, DataflowRunner, ..."
    )
    flags.DEFINE_list("beam_options", [], "More Beam options: --beam_options=region=R,project=P.")


def main(_):
    values = flags.FLAGS
    workers = None
    if values.runner:
        from data_prep.jobs.beam import BeamWorkers

        workers = BeamWorkers(values.runner, values.beam_options)
    options = command_flags.values(create) | command_flags.values(RecordOptions)
    manifest = create(values.input, values.vocab, workers=workers, **options)
    counts = manifest["counts"]
    examples = max(1, counts["examples"])
    cut = counts.get("cut_tokens", 0)
    print(
        f"read: {counts['corpus_documents']:,} documents of "
        f"{counts['corpus_sentences'] / max(1, counts['corpus_documents']):.1f} sentences of "
        f"{counts['corpus_tokens'] / max(1, counts['corpus_sentences']):.1f} tokens, "
        f"{counts['corpus_unknown_share']:.2%} of them [UNK]"
        + (f"; {counts['invalid_utf8']:,} lines not UTF-8" if counts["invalid_utf8"] else "")
    )
    print(
        f"made: {counts['examples']:,} examples in {len(manifest['shards'])} shards, "
        f"{sum(shard['bytes'] for shard in manifest['shards']) / 1e6:,.1f} MB; random next "
        f"sentence in {counts['random_next'] / examples:.1%}, "
        f"{cut / max(1, cut + counts['tokens']):.1%} of the tokens cut off: {values.output}"
    )
    if share := manifest.get("masked_lm_share"):
        print(
            f"masked: {share['reached']:.2%} of the tokens, {share['asked_for']:.2%} were asked for"
        )


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
