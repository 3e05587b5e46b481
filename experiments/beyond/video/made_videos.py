"""Invented videos for VideoBERT: clips whose features are a verb, a thing and noise.

    official-bert made_videos --output=videos

A segment does one of 12 verbs to one of 12 things, in 4 to 8 clips. A clip's features are 32
numbers, the verb's plus the thing's plus noise as large as either. Two fifths of the videos are
told in words, but a quarter of the pairs nowhere: what they are called can only be known from their
parts. The questions in dev are about all pairs alike. best.json has the scores of whoever knows the
parts and compares the mean of the clips with each pair.
"""

import json

import numpy as np
from absl import flags

from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from experiments.beyond.video.task import ASKED, TOPS, Videos
from official_bert.common.files import atomic_folder, write_text
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS, write_vocab

VERBS = ["bake", "boil", "chop", "cut", "fry", "grate", "mash", "mix", "peel", "roast", "season",
         "wash"]  # fmt: skip
THINGS = ["bread", "carrot", "cheese", "chicken", "egg", "fish", "garlic", "onion", "pepper",
          "potato", "rice", "tomato"]  # fmt: skip
SENTENCES = (
    "now let me show you how to {} the {}",
    "first we {} the {}",
    "you want to {} the {} like this",
    "go ahead and {} your {}",
    "i like to {} the {} for a minute",
)
WIDTH, TOLD, SEGMENTS, CLIPS = 32, 0.4, 4, (4, 8)
_ASKED = 10  # segments of each pair in dev


def make(output, videos: int = 1200, seed: int = 1, overwrite: bool = False) -> dict:
    """Write a folder that `experiments.beyond.video.task` reads.

    Args:
      output: the folder to make.
      videos: in train, of four segments each.
      seed: of all that is drawn.
      overwrite: rename what stands there to NAME.~1~ first.

    Returns: the scores of the best answer.
    """
    draw = np.random.default_rng(seed)
    verbs, things = draw.normal(size=(2, len(VERBS), WIDTH))
    parts = (verbs[:, None] + things[None]).reshape(-1, WIDTH)  # of each pair
    pairs = [(verb, thing) for verb in range(len(VERBS)) for thing in range(len(THINGS))]
    lines, clips = [], []  # one clip a row

    def add(video, split, pair, sentence=""):
        named = {"verb": VERBS[pairs[pair][0]], "noun": THINGS[pairs[pair][1]]}
        count = int(draw.integers(CLIPS[0], CLIPS[1] + 1))
        line = {"video": video, "split": split, "first": len(clips), "clips": count}
        lines.append(line | named | {"text": sentence.format(*named.values())})
        clips.extend(parts[pair] + draw.normal(size=(count, WIDTH)))

    for video in range(videos):
        is_told = draw.random() < TOLD
        for pair in draw.integers(len(pairs), size=SEGMENTS):
            sentence = SENTENCES[draw.integers(len(SENTENCES))]
            has_words = is_told and sum(pairs[pair]) % 4
            add(f"video {video}", "train", pair, sentence if has_words else "")
    for pair in range(len(pairs)):
        for number in range(_ASKED):
            add(f"asked {pair}-{number}", "dev", pair)
    with atomic_folder(output, overwrite=overwrite) as folder:
        np.save(folder / "features.npy", np.stack(clips).astype(np.float32))
        write_text(folder / "segments.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        words = {word for sentence in SENTENCES for word in sentence.split()} - {"{}"}
        write_vocab(folder / "vocab.txt", [*SPECIAL_TOKENS, *sorted(words), *VERBS, *THINGS])
        best = _best(Videos(str(folder)), parts)
        write_text(folder / "best.json", json.dumps(best, indent=1) + "\n")
    return best


def _best(task, parts) -> dict[str, float]:
    asked = task.examples("dev")
    means = np.stack([task.features[s.first : s.first + s.clips].mean(axis=0) for s in asked])
    squares = ((means[:, None] - parts[None]) ** 2).sum(axis=2)
    of_pairs = np.exp(-squares + squares.min(axis=1, keepdims=True)).reshape(-1, *[len(VERBS)] * 2)
    scores = {"verb": of_pairs.sum(axis=2), "noun": of_pairs.sum(axis=1)}
    return task.score(asked, task.predictions(asked, [], scores))


def main(argv) -> None:
    del argv
    check_outputs(outputs=[FLAGS.output], overwrite=FLAGS.overwrite)
    best = make(**command_flags.values(make))
    told = ", ".join(f"{w} {100 * best[f'new_{w}_top{TOPS[0]}']:.1f}" for w in ASKED)
    print(f"{FLAGS.output}: the best answer about pairs that are never told: {told}")


FLAGS = flags.FLAGS


def _define_flags() -> None:
    command_flags.define(make, least={"videos": 10})


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
