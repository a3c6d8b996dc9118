"""Operator kinds, a file each (or one for two that are one idea). A new kind is a new file here: every file is read."""

from importlib import import_module
from pkgutil import iter_modules

from mugraph.kinds.kind import (
    Accumulator,
    Arithmetic,
    Kind,
    Meaning,
    Role,
    accumulator,
    accumulators,
    find_kind,
    kind_named,
)
from mugraph.kinds.opaque import Floats, Opaque

__all__ = [
    "Accumulator",
    "Arithmetic",
    "Floats",
    "Kind",
    "Meaning",
    "Opaque",
    "Role",
    "accumulator",
    "accumulators",
    "find_kind",
    "kind_named",
]

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
