"""Lets Keras load `.keras` files of this project's classes after a plain `import official_bert`.

Keras finds a class in a file by its registered name, and a class registers itself when its module
is imported, which here happens on first use. So Keras is given a stand-in for each class, which
imports the class when a file asks for it: at once where Keras is loaded already, else as soon as it
is. Neither package is imported for the sake of the other.
"""

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable


class ClassStandIn:
    """Stands for a class that is not imported yet; Keras calls its `from_config`."""

    def __init__(self, name: str, get_class: Callable[[], type]):
        self.__name__ = name
        self._get_class = get_class

    def from_config(self, config):
        return self._get_class().from_config(config)


def register_later(names, get_class: Callable[[str], type]) -> None:
    """Register stand-ins for classes of the package "official_bert".

    Args:
      names: function that gives the names of classes which
        `keras.saving.register_keras_serializable("official_bert")` decorates; importing one
        replaces its stand-in.
      get_class: imports the class of a name.
    """

    def register():
        registered = sys.modules["keras"].saving.get_custom_objects()
        for name in names():
            stand_in = ClassStandIn(name, lambda name=name: get_class(name))
            registered.setdefault(f"official_bert>{name}", stand_in)

    if "keras" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _WhenImported("keras", register))


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls a function right after a module was imported for the first time."""

    def __init__(self, module: str, function: Callable[[], None]):
        self._module, self._function, self._searches = module, function, False

    def find_spec(self, name, path=None, target=None):
        if name != self._module or self._searches:
            return None
        # Only an import ends the wait: TensorFlow's looks for Keras and does not import it yet.
        self._searches = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searches = False
        if spec is not None:
            execute = spec.loader.exec_module

            def execute_and_call(module):
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                self._function()

            spec.loader.exec_module = execute_and_call
        return spec
