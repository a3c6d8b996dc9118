"""Calls of PyTorch's in a launcher that compute, a file for each family: every file of the folder is read.

Each is what PyTorch says it is; it is computed for the elements that are asked for, as boxes of the result.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from mugraph.triton_text.calls.call import Call, Reading

__all__ = ["CALLS", "Call", "Reading"]

_FILES = [import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__) if file.name != "call"]
CALLS: Mapping[str, Reading] = {name: reading for file in _FILES for name, reading in file.READINGS.items()}
"""By the function's name."""
