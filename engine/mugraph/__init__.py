"""mugraph: superoptimisation of PyTorch code.

`mugraph.optimize(fn, *example_inputs)` is the library's one-line entry. The package is lazy: importing it brings
neither torch nor triton, so that the language server can use `mugraph.protocol`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mugraph.api import Optimized as Optimized
    from mugraph.api import optimize as optimize

__version__ = "0.1.0"
__all__ = ["Optimized", "__version__", "optimize"]


def __getattr__(name: str) -> object:
    if name in ("optimize", "Optimized"):
        from mugraph import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
