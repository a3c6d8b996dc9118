"""Found by Python as it starts, in place of the environment's own `sitecustomize`, which is run afterwards."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        change_imports = import_module("mugraph_imports").change_imports
        for name in ("mugraph_eager", "mugraph_recorder", "mugraph_watcher"):  # each may have nothing to do
            import_module(f"{name}.install").install(change_imports)
    except Exception as error:  # the user's program runs, whatever becomes of us
        print(f"mugraph: nothing can be recorded here ({type(error).__name__}: {error})", file=sys.stderr)
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != here]
    sys.path_importer_cache.pop(here, None)
    own = PathFinder.find_spec("sitecustomize")
    if own is not None and own.loader is not None:
        module = module_from_spec(own)
        sys.modules["sitecustomize"] = module
        own.loader.exec_module(module)


_begin()
