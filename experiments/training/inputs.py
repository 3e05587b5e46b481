"""The files that a run reads: where the configuration says they lie, and digests of their content.

A result belongs to what was read, not to the place where it lay. A run that was moved together with
its data goes on; one whose records, examples, vocabulary or first weights are others does not.
"""

import dataclasses
from collections.abc import Callable

from data_prep.records import open_records
from experiments.training import trunks
from experiments.training.digests import checkpoint_digest, examples_digest, files_digest
from official_bert.common.errors import UserError
from official_bert.tokenization import find_vocabulary


@dataclasses.dataclass(frozen=True)
class Input:
    place: str
    digest: str


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What a run reads.

    Attributes:
      found: {"dev" or "phases.0.records": Input}, of when the run began or went on.
      look_again: makes the same of the files as they are now.
    """

    found: dict[str, Input]
    look_again: Callable[[], dict[str, Input]]

    def stored(self) -> dict:
        """Plain JSON values."""
        return {name: dataclasses.asdict(one) for name, one in self.found.items()}

    def differences(self, stored: dict) -> list[str]:
        """What differs from `stored` of an earlier session, a line each."""
        return _differences({name: Input(**values) for name, values in stored.items()}, self.found)

    def check(self) -> None:
        """Raises UserError where a file has changed since the run began or went on."""
        if lines := _differences(self.found, self.look_again()):
            raise UserError(
                f"while the run was reading, {'; '.join(lines)}. Put back what was there and give "
                "the same command, or start again with --overwrite"
            )


def of_pretraining(config, opened) -> Inputs:
    """The Inputs of a PretrainConfig; `opened`: (records, held-out ones or None) of each phase."""

    def look(opened):
        found = {}
        for index, (phase, both) in enumerate(zip(config.phases, opened, strict=True)):
            for name, records in zip(("records", "heldout_records"), both, strict=True):
                if records:
                    place = getattr(phase, name)
                    found[f"phases.{index}.{name}"] = Input(place, records.fingerprint)
        vocab = config.vocab or find_vocabulary(config.phases[0].records)
        files = {"vocab": "" if config.init_from else vocab, "trunk": trunks.file(config)}
        return found | _of_files(config, ("init_from", "teacher"), files)

    def look_again():
        places = [(phase.records, phase.heldout_records) for phase in config.phases]
        return look([[place and open_records(place) for place in both] for both in places])

    return Inputs(look(opened), look_again)


def of_finetuning(config, examples) -> Inputs:
    """The Inputs of a FinetuneConfig; `examples`: {split: examples}, all of them in memory."""
    read = {split: Input(config.data_dir, examples_digest(e)) for split, e in examples.items()}
    files = {"vocab": "" if config.model else config.vocab, "word_vectors": config.word_vectors}

    def look():
        return read | _of_files(config, ("model", "teacher", "elmo"), files)

    return Inputs(look(), look)


def _of_files(config, models, files) -> dict[str, Input]:
    """The Input of each field of `models` that names one, and of each path in `files`."""
    named = {name: (getattr(config, name), checkpoint_digest) for name in models}
    named |= {name: (path, lambda path: files_digest((path,))) for name, path in files.items()}
    return {
        name: Input(str(place), digest(place)) for name, (place, digest) in named.items() if place
    }


def _differences(before: dict[str, Input], now: dict[str, Input]) -> list[str]:
    lines = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if None in (old, new) and name.startswith("test"):
            continue  # whether its predictions are wanted is no matter of data
        if old is None or new is None:
            places = (one.place if one else "none" for one in (old, new))
            lines.append(f"{name}: {' -> '.join(places)}")
        elif old.digest != new.digest and old.place == new.place:
            lines.append(f"{name} ({new.place}) has changed")
        elif old.digest != new.digest:
            lines.append(f"{name}: {old.place} -> {new.place}, which holds something else")
    return lines
