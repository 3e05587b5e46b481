"""LSTMs over whole texts for training on TensorFlow (measured in benchmarks/README.md).

Keras' LSTM makes all of a token's products when it comes to the token, once for each direction, and
so does the gradient of that loop. Here the products with the input are made for all tokens at once.
Both directions share one loop, and their gradients share another; the gradients of the weights are
two products at the end. Only what depends on the token before stays in a loop.

L is the length of the texts, B their number, I the width of a token's vector, U that of an LSTM, D
the number of LSTMs side by side. A kernel's gates come in Keras' order: input gate, forget gate,
new cell, output gate. Everything is computed in float32.
"""

import tensorflow as tf

from official_bert.backend.tensorflow_kernels import dense


def on_processors() -> bool:
    """Return whether TensorFlow sees CPUs alone; accelerators have LSTMs of their own."""
    return {device.device_type for device in tf.config.list_logical_devices()} == {"CPU"}


def lstm(x, kernel, recurrent_kernel, bias):
    """Map [L, B, I], [I, 4 U], [U, 4 U], [4 U] -> [L, B, U], of the dtype of x."""
    gates = _gates_of_input(x, kernel, bias)
    outputs = _recurrent(gates[:, None], _reordered(recurrent_kernel)[None])
    return tf.cast(outputs[:, 0], x.dtype)


def bidirectional_lstm(x, mask, forward, backward):
    """Compute what `keras.layers.Bidirectional` does: [B, L, I], bool [B, L] -> [B, L, 2 U].

    Args:
      mask: its ones stand together in every row; where it is 0, the output is 0.
      forward, backward: Keras' LSTM cells of the two directions.
    """
    # Each direction reads its first real token first; outputs behind the last are not kept.
    count = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
    end = tf.reduce_max(tf.where(mask, tf.range(1, tf.shape(x)[1] + 1), 0), axis=1)  # both [B]

    def turned(x, lengths):
        return tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)

    from_end = turned(tf.transpose(x, (1, 0, 2)), end)
    gates = [
        _gates_of_input(read, cell.kernel, cell.bias)
        for read, cell in ((turned(from_end, count), forward), (from_end, backward))
    ]
    recurrent_kernels = [_reordered(cell.recurrent_kernel) for cell in (forward, backward)]
    to_right, to_left = tf.unstack(
        _recurrent(tf.stack(gates, axis=1), tf.stack(recurrent_kernels)), axis=1
    )
    both = turned(tf.concat([turned(to_right, count), to_left], axis=-1), end)
    both = tf.cast(tf.transpose(both, (1, 0, 2)), x.dtype)
    return tf.where(mask[..., None], both, tf.zeros_like(both))


def _gates_of_input(x, kernel, bias):
    """Map [L, B, I], [I, 4 U], [4 U] -> float32 [L, B, 4 U], in the order of `_recurrent`."""
    rows = tf.reshape(tf.cast(x, tf.float32), [-1, x.shape[-1]])
    gates = dense(rows, _reordered(kernel), _reordered(bias))
    return tf.reshape(gates, [*tf.unstack(tf.shape(x)[:2]), gates.shape[-1]])


def _reordered(weights):
    """Return float32 weights with the three sigmoid gates first, the new cell's last."""
    entering, staying, new, leaving = tf.split(tf.cast(weights, tf.float32), 4, axis=-1)
    return tf.concat([entering, staying, leaving, new], axis=-1)


@tf.custom_gradient
def _recurrent(gates_of_input, kernel):
    """Map [L, D, B, 4 U], [D, U, 4 U] -> [L, D, B, U]; all weights as `_reordered` makes them."""
    length, count, batch, _ = tf.unstack(tf.shape(gates_of_input))
    width = kernel.shape[1]
    nothing = tf.zeros([count, batch, width])

    def forward(t, state):
        output, cells = state
        gates = gates_of_input[t] + tf.matmul(output, kernel)
        open_gates, new = tf.sigmoid(gates[..., : 3 * width]), tf.tanh(gates[..., 3 * width :])
        entering, staying, leaving = tf.split(open_gates, 3, axis=-1)
        cells = staying * cells + entering * new
        output = leaving * tf.tanh(cells)
        return (output, cells), (output, cells, open_gates, new)

    outputs, cells, open_gates, new = _loop(
        length, forward, (nothing, nothing), [width, width, 3 * width, width]
    )

    def gradient(upstream):
        entering, staying, leaving = tf.split(open_gates, 3, axis=-1)
        outputs_before, cells_before = (
            tf.concat([nothing[None], x[:-1]], axis=0) for x in (outputs, cells)
        )
        # Slopes of all tokens at once: of an output by its cells and by the gate that lets it
        # leave, and of the cells by the other gates.
        squashed = tf.tanh(cells)
        by_cells = leaving * (1 - squashed * squashed)
        by_leaving = squashed * leaving * (1 - leaving)
        by_entering = new * entering * (1 - entering)
        by_staying = cells_before * staying * (1 - staying)
        by_new = entering * (1 - new * new)

        def backward(turn, state):
            t = length - 1 - turn
            to_output, to_cells = state
            to_output += upstream[t]
            to_cells += to_output * by_cells[t]
            to_gates = tf.concat(
                [
                    to_cells * by_entering[t],
                    to_cells * by_staying[t],
                    to_output * by_leaving[t],
                    to_cells * by_new[t],
                ],
                axis=-1,
            )
            before = tf.matmul(to_gates, kernel, transpose_b=True), to_cells * staying[t]
            return before, (to_gates,)

        (to_gates,) = _loop(length, backward, (nothing, nothing), [4 * width])
        to_gates = tf.reverse(to_gates, [0])

        def of_all_tokens(x):
            return tf.reshape(tf.transpose(x, (1, 0, 2, 3)), [count, -1, x.shape[-1]])

        to_kernel = tf.matmul(
            of_all_tokens(outputs_before), of_all_tokens(to_gates), transpose_a=True
        )
        return to_gates, to_kernel

    return outputs, gradient


def _loop(turns, body, state, widths):
    """Run body(turn, state) -> (state, written) for all turns; return what it wrote, stacked."""
    count, batch = state[0].shape[:2]
    arrays = [tf.TensorArray(tf.float32, turns, element_shape=[count, batch, w]) for w in widths]

    def turn(t, state, arrays):
        state, written = body(t, state)
        return t + 1, state, [array.write(t, x) for array, x in zip(arrays, written, strict=True)]

    *_, arrays = tf.while_loop(
        lambda t, *_: t < turns, turn, (0, state, arrays), parallel_iterations=1
    )
    return [array.stack() for array in arrays]
