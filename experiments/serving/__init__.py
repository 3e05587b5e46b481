"""The local server's application, for trying an exported model (`experiments.serve`).

Begin with `rest`: TensorFlow Serving's predict interface and a web page. `explanation` shows the
tokens and the attention of a model on that page.
"""
