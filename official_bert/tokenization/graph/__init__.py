"""Tokenisers as TensorFlow operations, for serving."""
