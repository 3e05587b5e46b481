"""Progress of a run while it lasts: a progress line, metrics.jsonl and TensorBoard events.

The events are written as protocol buffers without TensorFlow. The wire format (field number and
type in one byte, then a length or a number, then the content):

    Event: 09 seconds as double, 10 step, 2A Summary; the first one: 1A version of the format
    Summary: 0A Value; Value: 0A tag, 4A metadata, 42 TensorProto
    metadata: 0A PluginData (0A plugin's name), 20 01 for scalars; TensorProto: 08 01 for float,
    12 its shape, empty, 2A its values
"""

import contextlib
import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data_prep.jobs import progress
from data_prep.pretraining.tf_example import framed
from official_bert.common.files import appending
from official_bert.common.protocol_buffers import field, varint


class Progress(contextlib.AbstractContextManager):
    """Shows and records the metrics of a run.

    Args:
      run: the RunFolder that gets `metrics.jsonl` and `events/`.
      first_step: steps taken before this process started.
      last_step: where training ends.
      show: whether to draw the progress line on stderr (in a log file: a line now and then).
      name: text at the left of the line.
      started: `time.perf_counter()` when the run began, to report the time to the first step.
    """

    def __init__(self, run, first_step, last_step, show=True, name="", started=None):
        self._run = run
        self._started, self._is_first = started, True
        self._unlogged = {}  # logged with the next log point
        self._writer = None
        self._file = None
        self._bar = tqdm(
            total=last_step,
            initial=first_step,
            desc=name,
            unit="step",
            file=progress.stream(),
            disable=not show,
            dynamic_ncols=True,
            mininterval=0.5,
            smoothing=0.1,
            bar_format="{desc} {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]",
        )
        self._speed = _Speed()

    def __exit__(self, *_):
        self.close()

    def advance(self, steps, examples, tokens, flops, loss):
        """Count finished steps and refresh the line."""
        if self._is_first:  # the first call also compiles
            self._is_first = False
            if self._started is not None:
                seconds = time.perf_counter() - self._started
                self.say(f"first step after {seconds:.1f} s")
                self._unlogged = {"seconds_to_first_step": round(seconds, 2)}
            self._speed = _Speed()
            self._bar.initial = self._bar.last_print_n = self._bar.n = self._bar.n + steps
            self._bar.unpause()
            self._bar.set_postfix_str(f"loss {loss:.3f}")
            return
        self._speed.add(steps, examples, tokens, flops)
        rates = self._speed.rates()
        self._bar.set_postfix_str(f"loss {loss:.3f}{_describe(rates)}", refresh=False)
        self._bar.update(steps)

    def log(self, step, metrics):
        """Record one log point, as a line of metrics.jsonl and as TensorBoard scalars."""
        if not self._run.write:
            return
        rates = self._speed.rates()
        metrics, self._unlogged = {**metrics, **self._unlogged}, {}
        values = {"step": step, "time": round(time.time(), 2), **metrics, **rates}
        if self._file is None:
            self._file = appending(self._run.path / "metrics.jsonl")
        self._file.write(json.dumps(values) + "\n")
        self._file.flush()
        self._write_events(step, {**metrics, **rates})

    def say(self, message):
        """Print a line above the progress line."""
        if not self._bar.disable:
            self._bar.write(message, file=sys.stderr)

    def close(self):
        self._bar.close()
        if self._file:
            self._file.close()
        if self._writer:
            self._writer.close()

    def _write_events(self, step, values):
        if self._writer is None:
            self._writer = EventWriter(self._run.path / "events")
        self._writer.scalars(step, values)


class _Speed:
    """Rates over the last ten to twenty seconds."""

    def __init__(self):
        self._marks = [(time.perf_counter(), 0, 0, 0, 0)]

    def add(self, steps, examples, tokens, flops):
        _, *counts = self._marks[-1]
        now = time.perf_counter()
        added = (steps, examples, tokens, flops)
        self._marks.append((now, *(a + b for a, b in zip(counts, added, strict=True))))
        while len(self._marks) > 2 and now - self._marks[1][0] > 15:
            self._marks.pop(0)

    def rates(self):
        """Return {"steps_per_second", "examples_per_second", "tokens_per_second",
        "flops_per_second"}."""
        first, last = self._marks[0], self._marks[-1]
        seconds = last[0] - first[0]
        if seconds <= 0:
            return {}
        names = ("steps", "examples", "tokens", "flops")
        return {
            f"{name}_per_second": round((b - a) / seconds, 3)
            for name, a, b in zip(names, first[1:], last[1:], strict=True)
        }


def _describe(rates):
    """Return the rates as text, without those that nobody counted."""
    texts = {
        "steps_per_second": "{:.2f} steps/s",
        "examples_per_second": "{:.0f} examples/s",
        "tokens_per_second": "{:.0f} tokens/s",
    }
    shown = [text.format(rates[name]) for name, text in texts.items() if rates.get(name)]
    if rates.get("flops_per_second"):
        shown.append(f"{rates['flops_per_second'] / 1e9:.0f} GFLOP/s")
    return "".join(f", {text}" for text in shown)


_PLUGIN = b"\x0a\x07scalars"
_METADATA = field(1, _PLUGIN) + b"\x20\x01"


class EventWriter:
    """Appends scalars to a new events file in a folder, which is created."""

    def __init__(self, folder):
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.v2"
        self._file = appending(Path(folder, name), "ab")
        self._write(field(3, b"brain.Event:2"))

    def scalars(self, step, values):
        """Write numbers of a step: dict of name -> float."""
        summary = b"".join(field(1, _value(tag, x)) for tag, x in values.items())
        self._write(b"\x10" + varint(step) + field(5, summary))
        self._file.flush()

    def close(self):
        self._file.close()

    def _write(self, fields):
        self._file.write(framed(b"\x09" + struct.pack("<d", time.time()) + fields))


def _value(tag, number):
    with np.errstate(over="ignore"):  # a perplexity may be beyond float32
        tensor = b"\x08\x01\x12\x00" + field(5, np.array(number, "<f4").tobytes())
    return field(1, tag.encode()) + field(9, _METADATA) + field(8, tensor)
