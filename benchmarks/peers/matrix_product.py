"""The ceiling: ten products of [1024, 768] by [768, 3072] a step, TensorFlow's fastest on a CPU."""

import tensorflow as tf
from turns import arguments, take_turns

_, _, precision = arguments()
PRODUCTS = 10
FLOPS = PRODUCTS * 2 * 1024 * 768 * 3072

left = tf.cast(tf.random.normal([1024, 768]), precision)
rights = [tf.cast(tf.random.normal([768, 3072]), precision) for _ in range(PRODUCTS)]


@tf.function
def products():
    return tf.add_n([tf.cast(tf.matmul(left, right)[0, 0], tf.float32) for right in rights])


take_turns(lambda: float(products()))
