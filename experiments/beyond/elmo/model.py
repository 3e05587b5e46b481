"""ELMo (Peters et al. 2018, "Deep contextualized word representations"): words from their letters,
two LSTMs in each direction.

A word is a row of characters, read by convolutions of several widths, highways and a projection. An
LSTM has more cells than it passes on: its output is projected, and both are clipped. A task reads a
sum of all layers with learnt weights (`features.LayerCombination`, "elmo").

Weights are those of allenai/bilm-tf: an options.json and an HDF5 file.
"""

import functools

import keras
import numpy as np
from keras import ops

from experiments.beyond.elmo.shape import (
    MAX_CHARACTERS,
    NUM_CHARACTERS,
    ElmoConfig,
    check_elmo_folder,
    options_file,
    weights_file,
)
from official_bert.checkpoints.files import hdf5_files
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, write_json


class CharacterCNN(keras.layers.Layer):
    """Words as vectors from their characters: int32 [..., 50] -> [..., projection]."""

    def __init__(self, config: ElmoConfig, seed=None, **kwargs):
        super().__init__(**{"name": "characters", **kwargs})
        self.config = config
        found = sum(count for _, count in config.filters)
        seeds = keras.random.SeedGenerator(seed)
        uniform = functools.partial(keras.initializers.RandomUniform, seed=seeds)
        self.table = self.add_weight(
            name="table", shape=(NUM_CHARACTERS, config.character_width), initializer=uniform(-1, 1)
        )

        def scaled(inputs):
            return keras.initializers.RandomNormal(stddev=inputs**-0.5, seed=seeds)

        def weights(name, shape, initializer, bias=0.0):
            kernel = self.add_weight(name=f"{name}_kernel", shape=shape, initializer=initializer)
            constant = keras.initializers.Constant(bias)
            return kernel, self.add_weight(
                name=f"{name}_bias", shape=shape[-1:], initializer=constant
            )

        # Initial weights are bilm-tf's. Larger ones make words so large that the LSTMs' outputs
        # rest at the clip.
        small = uniform(-0.05, 0.05)
        self.filters = []
        for i, (width, count) in enumerate(config.filters):
            shape = width, config.character_width, count
            initializer = small if config.activation == "relu" else scaled(shape[0] * shape[1])
            self.filters.append(weights(f"filter_{i}", shape, initializer))
        square = found, found
        self.highways = [
            (
                weights(f"carry_{i}", square, scaled(found), bias=-2.0),
                weights(f"transform_{i}", square, scaled(found)),
            )
            for i in range(config.num_highways)
        ]
        self.projection = weights("projection", (found, config.projection), scaled(found))
        self.built = True

    def call(self, characters):
        places = ops.shape(characters)[:-1]
        ids = ops.reshape(characters, (-1, MAX_CHARACTERS))
        x = ops.take(self.table, ids, axis=0)  # [N, 50, C]
        activation = keras.activations.get(self.config.activation)
        found = [
            activation(ops.max(ops.conv(x, kernel, padding="valid") + bias, axis=1))
            for kernel, bias in self.filters
        ]
        x = ops.concatenate(found, axis=-1)
        for carry, transform in self.highways:
            gate = ops.sigmoid(_affine(x, carry))
            x = gate * ops.relu(_affine(x, transform)) + (1 - gate) * x
        return ops.reshape(_affine(x, self.projection), (*places, self.config.projection))


class ProjectedLSTMCell(keras.layers.Layer):
    """A step of an LSTM whose output is projected; cell and output are clipped."""

    def __init__(self, config: ElmoConfig, seed=None, **kwargs):
        super().__init__(**{"name": "cell", **kwargs})
        self.clip = config.clip
        self.state_size = [config.lstm_width, config.projection]
        self.output_size = config.projection
        glorot = keras.initializers.GlorotUniform(seed=keras.random.SeedGenerator(seed))
        cells, narrow = self.state_size
        self.kernel = self.add_weight(
            name="kernel", shape=(2 * narrow, 4 * cells), initializer=glorot
        )
        self.bias = self.add_weight(name="bias", shape=(4 * cells,), initializer="zeros")
        self.projection = self.add_weight(
            name="projection", shape=(cells, narrow), initializer=glorot
        )
        self.built = True

    def call(self, x, states):
        """Map [B, projection], [cells [B, lstm_width], outputs [B, projection]] -> (output,
        states)."""
        cells, before = states
        both = ops.concatenate([x, before], axis=-1)
        gates = ops.matmul(both, self.kernel) + self.bias
        entering, new, staying, leaving = ops.split(gates, 4, axis=-1)
        # One is added to what decides to remember, as TensorFlow's cell does.
        cells = ops.sigmoid(staying + 1.0) * cells + ops.sigmoid(entering) * ops.tanh(new)
        cells = ops.clip(cells, -self.clip, self.clip)
        output = ops.matmul(ops.sigmoid(leaving) * ops.tanh(cells), self.projection)
        output = ops.clip(output, -self.clip, self.clip)
        return output, [cells, output]


class ELMo(keras.Model):
    """The language model's states; reads characters, or ids of words with known characters.

    Args:
      config: ElmoConfig.
      characters: int32 [words, 50] of `character_ids`, for `input_ids`; None: `character_ids` must
        be given.
      seed: of the initial weights.
    """

    def __init__(self, config: ElmoConfig, characters=None, seed: int | None = None, **kwargs):
        super().__init__(**{"name": "elmo", **kwargs})
        self.config = config
        self._characters = characters
        with keras.name_scope(self.name):
            self.characters = CharacterCNN(config, seed, dtype=self.dtype_policy)
            self.lstms = [
                [self._lstm(direction, layer, seed) for layer in range(config.num_hidden_layers)]
                for direction in (0, 1)
            ]
        self.built = True

    def _lstm(self, direction, layer, seed):
        seed = None if seed is None else seed + 1 + 10 * direction + layer
        name = f"{'backward' if direction else 'forward'}_{layer}"
        with keras.name_scope(name):
            cell = ProjectedLSTMCell(self.config, seed, dtype=self.dtype_policy)
        lstm = keras.layers.RNN(
            cell,
            return_sequences=True,
            return_state=True,
            go_backwards=bool(direction),
            zero_output_for_mask=True,
            dtype=self.dtype_policy,
            name=name,
        )
        lstm.build((None, None, self.config.projection))
        return lstm

    def call(self, inputs, training=False, states=None, seed=None, return_attention=False):
        """Return the states; nothing is drawn in training, and there is no attention.

        Args:
          inputs: {"character_ids" int32 [B, L, 50], or "input_ids" int32 [B, L]; "input_mask" int32
            [B, L]}; of a text its begin and end too.
          states: "states" of the batch before, whose rows these go on; None: texts of their own.

        Returns:
          {"hidden_states": [num_hidden_layers + 1 tensors [B, L, 2 * projection]; the words, twice,
          first], "sequence_output": the last of them, "states": of each direction and layer}.
        """
        characters = inputs.get("character_ids")
        if characters is None:
            characters = ops.take(ops.convert_to_tensor(self._characters), inputs["input_ids"], 0)
        mask = inputs["input_mask"] > 0
        x = self.characters(characters)
        layers, after = [[x, x]], []
        for layer in range(self.config.num_hidden_layers):
            both = []
            for direction in (0, 1):
                read = layers[-1][direction]
                first = states and states[len(after)]
                lstm = self.lstms[direction][layer]
                written, *last = lstm(read, mask=mask, initial_state=first)
                written = ops.flip(written, axis=1) if direction else written
                both.append(written + read if self.config.residual and layer else written)
                after.append(last)
            layers.append(both)
        hidden = [ops.concatenate(both, axis=-1) for both in layers]
        return {"sequence_output": hidden[-1], "hidden_states": hidden, "states": after}


def load_elmo(folder, words=None) -> ELMo:
    """Return the model of a folder with bilm-tf's `*options.json` and `*weights.hdf5`.

    Args:
      words: what the ids of `input_ids` are; None: it is given `character_ids`.

    Raises:
      UserError: a file is missing or damaged, or a tensor is missing or has another shape.
    """
    check_elmo_folder(folder)
    config = ElmoConfig.from_options(options_file(folder))
    model = ELMo(config, None if words is None else config.characters_of(words))
    path = weights_file(folder)
    arrays = hdf5_files.read(path)
    for variable, name in _names(model):
        _assign(variable, arrays, name, path)
    return model


def save_elmo(folder, model: ELMo, overwrite: bool = False) -> None:
    """Write the files that `load_elmo` reads, without a softmax."""
    import h5py

    with atomic_folder(folder, overwrite) as temporary:
        write_json(temporary / "options.json", model.config.to_options())
        with h5py.File(temporary / "weights.hdf5", "w") as file:
            for variable, name in _names(model):
                array = ops.convert_to_numpy(variable)
                if name == "char_embed":
                    array = array[1:]
                file[name] = array[None] if name.startswith("CNN/W_cnn") else array


def _names(model: ELMo):
    """Yield (our variable, bilm-tf's name) pairs."""
    words = model.characters
    yield words.table, "char_embed"
    for i, (kernel, bias) in enumerate(words.filters):
        yield kernel, f"CNN/W_cnn_{i}"
        yield bias, f"CNN/b_cnn_{i}"
    for i, pair in enumerate(words.highways):
        for (kernel, bias), gate in zip(pair, ("carry", "transform"), strict=True):
            yield kernel, f"CNN_high_{i}/W_{gate}"
            yield bias, f"CNN_high_{i}/b_{gate}"
    yield words.projection[0], "CNN_proj/W_proj"
    yield words.projection[1], "CNN_proj/b_proj"
    for direction, lstms in enumerate(model.lstms):
        for layer, lstm in enumerate(lstms):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            yield lstm.cell.kernel, f"{cell}/W_0"
            yield lstm.cell.bias, f"{cell}/B"
            yield lstm.cell.projection, f"{cell}/W_P_0"


def _assign(variable, arrays, name, path):
    if name not in arrays:
        raise UserError(f"{path}: {name} is missing")
    array = arrays[name].astype(np.float32)
    if name == "char_embed":  # the file has no row for no character
        array = np.concatenate([np.zeros_like(array[:1]), array])
    if name.startswith("CNN/W_cnn"):
        array = array[0]
    if array.shape != tuple(variable.shape):
        raise UserError(
            f"{path}: {name} has shape {list(array.shape)}, expected {list(variable.shape)}"
        )
    variable.assign(array)


def _affine(x, weights):
    kernel, bias = weights
    return ops.matmul(x, kernel) + bias
