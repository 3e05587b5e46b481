"""Kernels of TensorFlow that are measured to pay, and what Keras itself is told of the models."""
