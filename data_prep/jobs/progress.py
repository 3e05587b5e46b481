"""The bars that commands show on stderr."""

import sys


def progress_bar(show: bool, **options):
    """A tqdm bar, as a context; one line a minute where stderr is no terminal.

    Args:
      show: False gives a bar that does nothing.
      **options: of tqdm.
    """
    if not show:
        return _NoBar()
    from tqdm import tqdm

    return tqdm(mininterval=0.1 if sys.stderr.isatty() else 60, **options)


class _NoBar:
    # tqdm starts a thread for a disabled bar too, and processes with threads are not forked.
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def update(self, n=1):
        pass
