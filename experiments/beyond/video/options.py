"""The option of VideoBERT."""

import dataclasses

from experiments.training.settings.options import Options, place


@dataclasses.dataclass(frozen=True)
class VideoOptions(Options):
    """The model that VideoBERT begins with."""

    # The model whose weights and sizes videobert begins with; "": random weights of `bert`.
    init_from: str = place()

    of_a_start = True
