"""Progress bars of commands, on stderr."""

import contextlib
import sys
import time

_SECONDS_BETWEEN_LINES = 30


def progress_bar(show: bool, **options):
    """Return a tqdm bar, which is a context manager; see `stream`.

    Args:
      show: whether to show it; else the bar does nothing.
      **options: options of tqdm.
    """
    if not show:
        return _NoBar()
    from tqdm import tqdm

    return tqdm(file=stream(), **options)


def stream():
    """Return the `file` for tqdm: stderr if it is a terminal, else lines in the log now and
    then."""
    return sys.stderr if sys.stderr.isatty() else _Lines(sys.stderr)


class _Lines:
    """Turns the refreshes of one bar into lines: one every half minute, and the last."""

    def __init__(self, stream):
        self._stream = stream
        self._newest, self._last = "", ""
        self._written = time.monotonic()

    def write(self, text):
        """Take what a bar writes: each refresh begins with a carriage return, the end is "\\n"."""
        shown = text.rpartition("\r")[2].strip()
        self._newest = shown or self._newest
        now = time.monotonic()
        if text == "\n" or (shown and now - self._written >= _SECONDS_BETWEEN_LINES):
            done = self._newest.partition("[")[0]
            if done != self._last:  # the bar's end may have been shown already
                self._stream.write(f"{self._newest}\n")
            self._written, self._last = now, done

    def flush(self):
        self._stream.flush()


class _NoBar(contextlib.AbstractContextManager):
    # tqdm starts a thread for a disabled bar too, and processes with threads are not forked.
    def __exit__(self, *error):
        return None

    def update(self, n=1):
        pass
