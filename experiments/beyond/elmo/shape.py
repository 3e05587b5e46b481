"""ELMo's sizes, its files, the characters of words; needs neither Keras nor TensorFlow."""

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from official_bert.common.errors import UserError, check_choice
from official_bert.common.json_files import field, fields_of, list_of, read_json
from official_bert.tokenization.vocabulary import SPECIAL_TOKENS

# Character ids: bytes, then what begins and ends a text and a word, then padding. No word has a
# character 0, so all stand one higher in the table.
_TEXT_BEGINS, _TEXT_ENDS, _WORD_BEGINS, _WORD_ENDS, _PADDING = range(256, 261)
PADDING = _PADDING + 1
NUM_CHARACTERS = 262
MAX_CHARACTERS = 50
_ACTIVATIONS = ("relu", "tanh")


@dataclasses.dataclass(frozen=True)
class ElmoConfig:
    """Sizes of an ELMo; the defaults are the original's.

    Attributes:
      filters: (characters, filters of that width) of the convolutions.
      character_width: of a character's vector.
      num_highways: highway layers on what the convolutions find.
      activation: of the convolutions.
      lstm_width: cells of an LSTM.
      projection: width of a direction's output.
      num_hidden_layers: LSTMs of a direction, one on top of the other.
      clip: largest number in a cell and in an output.
      residual: whether LSTMs but the first add what they read.
      hidden_dropout_prob: for what reads the states.
      vocab_size: words of the language model's softmax; 0: there is none.
      lower_case: whether the words that it was trained on are in lower case; so are those it reads.

    The rest is what pre-training asks of any encoder (`BertConfig`).
    """

    filters: tuple[tuple[int, int], ...] = (
        (1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)
    )  # fmt: skip
    character_width: int = 16
    num_highways: int = 2
    activation: str = "relu"
    lstm_width: int = 4096
    projection: int = 512
    num_hidden_layers: int = 2
    clip: float = 3.0
    residual: bool = True
    hidden_dropout_prob: float = 0.1
    vocab_size: int = 0
    lower_case: bool = False

    attention_direction: ClassVar[str] = "shallow_concatenation"
    initializer_range: ClassVar[float] = 0.02
    num_attention_heads: ClassVar[int] = 0
    language_model: ClassVar[str] = "adjacent_words"
    max_position_embeddings: ClassVar[int] = 1 << 20  # LSTMs read any length

    @property
    def embedding_width(self) -> int:
        """Width of a row of the softmax."""
        return self.projection

    def head_flops(self, predictions: int) -> float:
        """Count the FLOPs of one forward pass of the softmax over words."""
        return float(predictions) * 2 * self.projection * self.vocab_size

    @property
    def hidden_size(self) -> int:
        """Width of a hidden state: both directions."""
        return 2 * self.projection

    @property
    def widths(self) -> list[int]:
        """Widths of the hidden states."""
        return [self.hidden_size] * (self.num_hidden_layers + 1)

    @property
    def num_parameters(self) -> int:
        """Number of parameters of an `ELMo` of this shape, without the softmax of its training."""
        found = sum(count for _, count in self.filters)
        filters = sum((width * self.character_width + 1) * count for width, count in self.filters)
        letters = NUM_CHARACTERS * self.character_width + filters
        letters += 2 * self.num_highways * (found + 1) * found + (found + 1) * self.projection
        lstm = (2 * self.projection + 1) * 4 * self.lstm_width + self.lstm_width * self.projection
        return letters + 2 * self.num_hidden_layers * lstm

    def encoder_flops(self, sequences: int, length: int) -> float:
        """Return the FLOPs of a forward pass on that many words: convolutions, highways,
        projection, and the LSTMs of both directions."""
        found = sum(count for _, count in self.filters)
        letters = sum(
            (MAX_CHARACTERS - width + 1) * width * self.character_width * count
            for width, count in self.filters
        )
        letters += 2 * self.num_highways * found * found + found * self.projection
        lstm = (2 * self.projection * 4 + self.projection) * self.lstm_width
        return float(sequences) * length * 2.0 * (letters + 2 * self.num_hidden_layers * lstm)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    changes = to_dict  # all, which tell it from a BERT

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "ElmoConfig":
        """Make a configuration from what `to_dict` gave, after JSON has made lists of its
        tuples."""
        fields = fields_of(cls, fields, "ElmoConfig")
        return cls(**{**fields, "filters": tuple(map(tuple, fields["filters"]))})

    def to_options(self) -> dict[str, Any]:
        """Return the contents of an options.json that `from_options` reads."""
        return {
            "lstm": {
                "dim": self.lstm_width,
                "projection_dim": self.projection,
                "n_layers": self.num_hidden_layers,
                "cell_clip": self.clip,
                "proj_clip": self.clip,
                "use_skip_connections": self.residual,
            },
            "char_cnn": {
                "embedding": {"dim": self.character_width},
                "filters": self.filters,
                "n_highway": self.num_highways,
                "n_characters": NUM_CHARACTERS,
                "max_characters_per_token": MAX_CHARACTERS,
                "activation": self.activation,
            },
            "lower_case": self.lower_case,
        }

    @classmethod
    def from_options(cls, path: Path) -> "ElmoConfig":
        """Read an options.json of bilm-tf.

        Raises:
          UserError: it is missing, or a field is missing or says what is not built here.
        """
        options = read_json(path)
        lstm, cnn = (field(options, name, dict, path) for name in ("lstm", "char_cnn"))
        filters = list_of(cnn, "filters", list, path)
        activation = field(cnn, "activation", str, path)
        check_choice("activation", activation, _ACTIVATIONS, str(path))
        clips = {lstm.get("cell_clip"), lstm.get("proj_clip")}
        if len(clips) != 1 or not all(isinstance(clip, int | float) for clip in clips):
            raise UserError(f"{path}: cell_clip and proj_clip must be the same number")
        if cnn.get("max_characters_per_token") != MAX_CHARACTERS:
            raise UserError(f"{path}: max_characters_per_token must be {MAX_CHARACTERS}")
        return cls(
            filters=tuple((int(width), int(count)) for width, count in filters),
            character_width=field(field(cnn, "embedding", dict, path), "dim", int, path),
            num_highways=field(cnn, "n_highway", int, path),
            activation=activation,
            lstm_width=field(lstm, "dim", int, path),
            projection=field(lstm, "projection_dim", int, path),
            num_hidden_layers=field(lstm, "n_layers", int, path),
            clip=float(clips.pop()),
            residual=field(lstm, "use_skip_connections", bool, path),
            lower_case=options.get("lower_case", False) is True,  # none of bilm-tf's
        )

    def characters_of(self, words) -> np.ndarray:
        """Return `character_ids` of words, int32 [words, 50], in the case that it knows."""
        if self.lower_case:
            words = [word if word in SPECIAL_TOKENS else word.lower() for word in words]
        return character_ids(words)


def character_ids(words, begins: str = "[CLS]", ends: str = "[SEP]") -> np.ndarray:
    """Return the characters of words, int32 [words, 50]; `begins` and `ends` are those of a
    text."""
    table = np.full((len(words), MAX_CHARACTERS), _PADDING, np.int32)
    marks = {begins: [_TEXT_BEGINS], ends: [_TEXT_ENDS]}
    for row, word in zip(table, words, strict=True):
        letters = marks.get(word) or [*word.encode("utf-8", "ignore")[: MAX_CHARACTERS - 2]]
        row[: len(letters) + 2] = [_WORD_BEGINS, *letters, _WORD_ENDS]
    return table + 1


def check_elmo_folder(folder, flag: str = "") -> None:
    """Raise UserError unless there are one options.json and one file of weights of bilm-tf."""
    if not (options_file(folder) and weights_file(folder)):
        raise UserError(
            f"{flag}{folder}: no ELMo, which is one *options.json, one *weights.hdf5; a folder of "
            "another kind of model has no *weights.hdf5"
        )


def options_file(folder) -> Path | None:
    """Return the `*options.json` of a folder."""
    return _file(folder, "options.json")


def weights_file(folder) -> Path | None:
    """Return the `*weights.hdf5` of a folder."""
    return _file(folder, "weights.hdf5")


def _file(folder, ending):
    is_folder = bool(folder) and Path(folder).is_dir()
    found = sorted(Path(folder).glob(f"*{ending}")) if is_folder else []
    return found[0] if len(found) == 1 else None
