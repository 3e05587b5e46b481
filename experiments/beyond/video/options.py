"""The option of VideoBERT."""

import dataclasses

from experiments.training.settings.options import Options, path_field


@dataclasses.dataclass(frozen=True)
class VideoOptions(Options):
    """The model that VideoBERT begins with."""

    # The model whose weights and sizes videobert begins with; "": random weights of `bert`.
    init_from: str = path_field()

    of_a_start = True
