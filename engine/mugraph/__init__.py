"""mugraph: superoptimisation of PyTorch code.

`mugraph.optimize(fn, *example_inputs)` is the library's one-line entry, `mugraph.verify(kernel, fn, *example_inputs)`
that for Triton kernels which somebody else wrote. The package is lazy: importing it brings
neither torch nor triton, so that the language server can use `mugraph.protocol`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mugraph.version import __version__

if TYPE_CHECKING:
    from mugraph.api import Optimized as Optimized
    from mugraph.api import Verified as Verified
    from mugraph.api import optimize as optimize
    from mugraph.api import verify as verify

_API = ("Optimized", "Verified", "optimize", "verify")
__all__ = ["Optimized", "Verified", "__version__", "optimize", "verify"]


def __getattr__(name: str) -> object:
    if name in _API:
        return getattr(import_module("mugraph.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
