"""Learning a vocabulary: time, memory and quality beside two other learners.

    python -m benchmarks.vocab --input='corpus/*/*.txt.gz' --heldout=squad.txt \\
        --reference=bert-base-uncased-vocab.txt

Each learner runs in a process of its own, on one core where it lets us choose, the learners taking
turns over the rounds. "Pieces a word" is on the held-out text, cut by the same WordPiece; "in the
reference" is the share of pieces with two or more characters that a published vocabulary also has;
"differ" counts the entries that two runs do not share. tensorflow-text's learner takes word counts,
so it gets ours, counting included in its time; it needs minutes for a few megabytes (--slow).
"""

import json
import multiprocessing
import os
import resource
import sys
import time

from absl import flags

from data_prep.corpus.documents import expand_inputs
from data_prep.corpus.text_files import text_lines
from official_bert import commands
from official_bert.errors import UserError
from official_bert.files import atomic_write

_INPUT = flags.DEFINE_list("input", None, "Text files or globs, plain or gzip.", required=True)
_HELDOUT = flags.DEFINE_list("heldout", None, "Text that is not learned from.", required=True)
_REFERENCE = flags.DEFINE_string("reference", "", "A published vocabulary to compare with.")
_VOCAB_SIZE = flags.DEFINE_integer("vocab_size", 30522, "Entries.")
_ROUNDS = flags.DEFINE_integer("rounds", 2, "Runs of each learner; at least two show differences.")
_SLOW = flags.DEFINE_bool("slow", False, "tensorflow-text's learner as well.")
_OUTPUT = flags.DEFINE_string("output", "", "A JSON file for the results as well.")


def main(_):
    paths = expand_inputs(_INPUT.value)
    learners = {"ours": _ours, "Hugging Face tokenizers": _hugging_face}
    learners["Hugging Face tokenizers, all cores"] = _hugging_face_threads
    if _SLOW.value:
        learners["tensorflow-text"] = _tensorflow_text
    runs = {name: [] for name in learners}
    for number in range(_ROUNDS.value):
        for name, learner in learners.items():
            print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
            run = _in_a_process(learner, paths, _VOCAB_SIZE.value)
            if run is not None:
                runs[name].append(run)
    rows = list(_judge({name: found for name, found in runs.items() if found}))
    print("| learner | s | peak GB | entries | pieces a word | in the reference | differ |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            "| {name} | {seconds:.1f} | {gigabytes:.2f} | {entries:,} | {pieces_a_word:.4f} | "
            "{in_reference:.3f} | {differ} |".format(**row)
        )
    if _OUTPUT.value:
        with atomic_write(_OUTPUT.value) as file:
            file.write(json.dumps(rows, indent=1) + "\n")


def _judge(runs):
    from data_prep.vocab import count_words
    from official_bert.tokenization import load_vocab
    from official_bert.tokenization.reference import wordpiece_tokenize

    heldout = count_words(_HELDOUT.value)
    reference = set(load_vocab(_REFERENCE.value)) if _REFERENCE.value else set()
    for name, found in runs.items():
        vocab = found[0]["vocab"]
        known = set(vocab)
        pieces = [p for p in vocab if len(p.removeprefix("##")) > 1 and not p.startswith("[")]
        cut = sum(len(wordpiece_tokenize(word, known)) * n for word, n in heldout.items())
        yield {
            "name": name,
            "seconds": min(run["seconds"] for run in found),
            "gigabytes": max(run["gigabytes"] for run in found),
            "entries": len(vocab),
            "pieces_a_word": cut / sum(heldout.values()),
            "in_reference": sum(p in reference for p in pieces) / len(pieces),
            "differ": max(len(known ^ set(run["vocab"])) for run in found) // 2,
        }


def _in_a_process(learner, paths, vocab_size):
    """{"vocab", "seconds", "gigabytes"} of one run; None where the learner is not installed."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(learner, paths, vocab_size, sender))
    process.start()
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        raise UserError(f"{learner.__name__}: its process died with {process.exitcode}") from None
    process.join()
    if "missing" in result:
        print(f"left out: {result['missing']}", file=sys.stderr)
        return None
    return result


def _measure(learner, paths, vocab_size, sender):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if learner is not _hugging_face_threads:
        os.environ["RAYON_NUM_THREADS"] = "1"
    start = time.perf_counter()
    try:
        vocab = learner(paths, vocab_size)
    except ImportError as error:
        sender.send({"missing": str(error)})
        return
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sender.send({"vocab": vocab, "seconds": seconds, "gigabytes": peak * 1024 / 1e9})


def _ours(paths, vocab_size):
    from data_prep.vocab import learn_vocab

    return learn_vocab(paths, vocab_size)


def _hugging_face(paths, vocab_size):
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(
        (line for path in paths for line in text_lines(path)),
        vocab_size=vocab_size - (994 if vocab_size >= 20_000 else 0),  # as many real pieces as ours
        show_progress=False,
    )
    return sorted(tokenizer.get_vocab())


def _hugging_face_threads(paths, vocab_size):
    return _hugging_face(paths, vocab_size)


def _tensorflow_text(paths, vocab_size):
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib

    from data_prep.vocab import count_words

    reserved = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    size = vocab_size - (994 if vocab_size >= 20_000 else 0)
    return wordpiece_tokenizer_learner_lib.learn(count_words(paths), size, reserved)


if __name__ == "__main__":
    commands.run(main)
