"""Systems that are not in BERT's paper: one folder each, any of which can be deleted alone.

`official_bert.extension` asks for `extensions`, and finds nothing where this folder is absent. The
`EXTENSION` of each folder says which names it adds, and where what they stand for is.
"""

import importlib
import pkgutil

from official_bert.extension import Extension


def extensions() -> tuple[Extension, ...]:
    """Return the extensions of the folders that are here, by name."""
    found = (one.name for one in pkgutil.iter_modules(__path__) if one.ispkg)
    modules = (importlib.import_module(f"{__name__}.{name}") for name in sorted(found))
    return tuple(module.EXTENSION for module in modules)
