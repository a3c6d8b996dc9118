"""mugraph: superoptimisation of PyTorch code.

`mugraph.optimize(fn, *example_inputs)` is the library's one-line entry. The package is lazy: importing it brings
neither torch nor triton, so that the language server can use `mugraph.protocol`.
"""

from __future__ import annotations

__version__ = "0.1.0"
