"""The training step and the loop around it, on TensorFlow and on JAX."""
