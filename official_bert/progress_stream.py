"""Where progress bars draw themselves: the terminal, or now and then a line of a log file."""

import sys
import time

_SECONDS_BETWEEN_LINES = 30


def progress_stream():
    """What tqdm gets as its `file`: standard error, as it is where that is a terminal."""
    return sys.stderr if sys.stderr.isatty() else _Lines(sys.stderr)


class _Lines:
    """Turns the refreshes of one bar into lines: one every half minute, and the last one."""

    def __init__(self, stream):
        self._stream = stream
        self._newest = ""
        self._written = time.monotonic()

    def write(self, text):
        """Takes what a bar writes: each refresh begins with a carriage return, the end is "\\n"."""
        shown = text.rpartition("\r")[2].strip()
        self._newest = shown or self._newest
        now = time.monotonic()
        if text == "\n" or (shown and now - self._written >= _SECONDS_BETWEEN_LINES):
            self._written = now
            self._stream.write(f"{self._newest}\n")

    def flush(self):
        self._stream.flush()
