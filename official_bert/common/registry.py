"""Registries of classes that are imported when they are asked for.

Whoever stands higher is registered by name (in `official_bert/__init__.py`), so that nothing
imports what stands above it, and a light import stays light.
"""

import importlib


def load(place: str):
    """The class or function at "module:name"."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


class Registry(dict[str, str]):
    """{name: "module:class"}."""

    def load(self, name: str):
        """The class of a name; KeyError where there is none."""
        return load(self[name])


OBJECTIVES = Registry()
NEED_TEACHER: set[str] = set()  # those of them that compare a model with its teacher
DIRECTIONS: dict[str, str] = {}  # the `attention_direction` of those that need a certain one
WRITERS = Registry()  # what writes texts, by the name of its decoder
# What a `bert_config.json` says that no BERT does -> the subclass of `BertConfig` that it is.
CONFIGS = Registry()
