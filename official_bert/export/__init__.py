"""Exports. SavedModels take text: tokeniser, encoder and answer in one graph (section 4).

    from official_bert.export import export, load
    export("runs/spam/model", "spam")                    # writes spam/1/
    load("spam")(text=["WINNER!! call now"])["labels"]   # one row a text

Begin with `answers`: what each head says of token ids. `text_answers` cuts texts for it in Python;
`served_model`, `span` and `tagging` do so in a graph, on a `packed_encoder` without padding, and
`saved_model` writes them. An exported model needs tensorflow and tensorflow-text, nothing of this
project. ONNX and LiteRT files take token ids (`formats`):

    export_ids("runs/spam/model", "spam_onnx", format="onnx", precision="int8")
"""

import importlib

_HOME_OF = {
    "HEADS": "exports",
    "ServingSettings": "settings",
    "export": "saved_model",
    "export_ids": "formats.id_export",
    "load": "client",
}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'official_bert.export' has no attribute {name!r}")
    return getattr(importlib.import_module(f"official_bert.export.{_HOME_OF[name]}"), name)
