"""mugraph: superoptimisation of PyTorch code.

`mugraph.optimize(fn, *example_inputs)` is the library's one-line entry. The package is lazy: importing it brings
neither torch nor triton, so that the language server can use `mugraph.protocol`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mugraph.version import __version__

if TYPE_CHECKING:
    from mugraph.api import Optimized as Optimized
    from mugraph.api import optimize as optimize

__all__ = ["Optimized", "__version__", "optimize"]


def __getattr__(name: str) -> object:
    if name in ("optimize", "Optimized"):
        return getattr(import_module("mugraph.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
