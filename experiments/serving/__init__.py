"""The local server's application, for trying an exported model (`experiments.serve`)."""
