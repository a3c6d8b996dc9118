"""A call's arguments in the form a Call keeps them: literals, value numbers, and names of constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import torch

from mugraph.ir.region import DEVICE, Argument, Ref, Symbol

_PYTHON_TYPES: Mapping[type, str] = {bool: "torch.bool", int: "torch.int64", float: "torch.float64"}  # as a dtype

_WRITTEN_OUT = 256
"""Numbers of a range that are written down one by one."""


class NotAnArgument(Exception):
    """An argument that cannot be written down again."""


def as_argument(value: object, numbers: Mapping[int, int], in_index: bool = False) -> Argument:
    """numbers: value numbers by the ids of the call's tensors. in_index: a list means something else than a tuple.

    Raises NotAnArgument.
    """
    if isinstance(value, torch.Tensor):
        return Ref(numbers[id(value)])
    if value is None or type(value) in (bool, int, float, str):
        return cast("bool | int | float | str | None", value)
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return Symbol(str(value))
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return Symbol(_PYTHON_TYPES[value])
    if isinstance(value, torch.device):
        return DEVICE
    if value is Ellipsis:
        return Symbol("Ellipsis")
    if isinstance(value, tuple | list):
        if in_index and isinstance(value, list):
            raise NotAnArgument("a list as an index")
        return tuple(as_argument(item, numbers, in_index) for item in cast(Sequence[object], value))
    if isinstance(value, range) and not in_index and len(value) <= _WRITTEN_OUT:
        return tuple(value)
    if isinstance(value, slice):
        whole = cast("slice[object, object, object]", value)
        if any(isinstance(part, torch.Tensor) for part in (whole.start, whole.stop, whole.step)):
            raise NotAnArgument("a slice whose bound is read off a tensor")
        start, stop, step = (as_argument(part, numbers) for part in (whole.start, whole.stop, whole.step))
        return slice(start, stop, step)
    if isinstance(value, int | float):  # subclasses: enumerations, numpy's float64
        return int(value) if isinstance(value, int) else float(value)
    if type(value).__module__ == "numpy" and type(number := _of_numpy(value)) in (bool, int, float):
        return cast("bool | int | float", number)
    raise NotAnArgument(f"an argument of type {type(value).__qualname__}")


def _of_numpy(value: object) -> object:
    """What one of NumPy's numbers is to PyTorch."""
    item = getattr(value, "item", None)
    return (
        item()
        if callable(item) and getattr(value, "shape", None) == () and not hasattr(value, "__array_finalize__")
        else None
    )


def as_arguments(
    target: str, args: Sequence[object], kwargs: Mapping[str, object], numbers: Mapping[int, int]
) -> tuple[tuple[Argument, ...], Mapping[str, Argument]]:
    """Raises NotAnArgument."""
    in_index = target.endswith(("__getitem__", "__setitem__"))
    positional = tuple(as_argument(arg, numbers, in_index) for arg in args)
    return positional, {key: as_argument(value, numbers) for key, value in kwargs.items()}
