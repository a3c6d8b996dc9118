"""Recorded calls as they are run for the test of lowering: on the processor, in one wide type.

In float64 a call computes what it means, and rounds nothing that matters: what is left of a difference from the tensor
program is a difference in meaning. A cast from one floating-point type to another means nothing, in the program as
here; what rounding does is a matter of the kernel's own test. Casts to whole numbers and to truth values stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch

from mugraph.ir.dtypes import ELEMENTS, NARROW
from mugraph.ir.region import Argument, Call, Ref, Symbol, TensorInfo
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.regions.replay import NotReplayable, symbol

Wide = Literal["float64", "float32"]
"""The type that stands for all floating-point types."""
_COMPLEX = {"float64": "complex128", "float32": "complex64"}
_CASTS = frozenset({"Tensor.float", "Tensor.half", "Tensor.bfloat16", "Tensor.double"})
_CAST_OF = {"float64": "Tensor.double", "float32": "Tensor.float"}


def widest(calls: Sequence[Call]) -> Wide:
    """The type of the most digits that PyTorch has all of these calls in."""
    entries = [entry_for(call.target) for call in calls]
    return "float32" if any(entry is not None and entry.in_float32 for entry in entries) else "float64"


def on_processor(calls: Sequence[Call], values: Mapping[int, TensorInfo], wide: Wide) -> tuple[Call, ...]:
    """The calls with the wide type for every floating-point type that they name, and without other devices.

    values: what is known of all that the calls read
    """
    return tuple(_on_processor(call, values, wide) for call in calls)


def _on_processor(call: Call, values: Mapping[int, TensorInfo], wide: Wide) -> Call:
    target = canonical(call.target)
    args, kwargs = call.args, dict(call.kwargs)
    if target in _CASTS:
        return replace(call, target=_CAST_OF[wide])
    if target == "Tensor.cuda":
        return replace(call, target="Tensor.cpu", args=args[:1], kwargs={})
    if target == "Tensor.view" and not any(isinstance(one, Symbol) for one in args):
        target = "Tensor.reshape"  # strides may be others than where it was recorded
    elif target in _EPSILONS:
        place, of = _EPSILONS[target]
        given = args[place] if len(args) > place else kwargs.get("eps")
        dtype = values[args[0].value].dtype if args and isinstance(args[0], Ref) and args[0].value in values else "f32"
        args, kwargs["eps"] = args[:place], of(given, dtype)
    changed = _each(lambda argument: _widened(argument, wide))
    kwargs = {name: changed(argument) for name, argument in kwargs.items()}
    return replace(call, target=target, args=tuple(map(changed, args)), kwargs=kwargs)


def _of_root_mean_square(given: Argument, dtype: str) -> Argument:
    """PyTorch's own where nothing is given: that of the type it computes in."""
    return torch.finfo(torch.float64 if dtype == "f64" else torch.float32).eps if given is None else given


def _of_length(given: Argument, dtype: str) -> Argument:
    """As the least length is in the type of what is normalised: in float16, 1e-12 is zero."""
    least = 1e-12 if given is None else given
    return torch.tensor(least, dtype=getattr(torch, ELEMENTS[dtype].torch)).item() if dtype in NARROW else least


_EPSILONS: Mapping[str, tuple[int, Callable[[Argument, str], Argument]]] = {
    "torch.nn.functional.rms_norm": (3, _of_root_mean_square),
    "torch.rms_norm": (3, _of_root_mean_square),
    "torch.nn.functional.normalize": (3, _of_length),
}
"""Calls that add, or compare with, a number that depends on a type: its place among the arguments, and what it is."""


def _each(change: Callable[[Argument], Argument]) -> Callable[[Argument], Argument]:
    def changed(argument: Argument) -> Argument:
        return tuple(map(changed, argument)) if isinstance(argument, tuple) else change(argument)

    return changed


def _widened(argument: Argument, wide: Wide) -> Argument:
    if isinstance(argument, str) and argument.partition(":")[0] == "cuda":
        return "cpu"
    if not isinstance(argument, Symbol):
        return argument
    try:
        kind = symbol(argument.name)
    except NotReplayable:  # said where it is run
        return argument
    if not isinstance(kind, torch.dtype):
        return argument
    if kind.is_floating_point and kind.itemsize == 1:  # it rounds to few numbers, which the program says as well
        return argument
    name = wide if kind.is_floating_point else _COMPLEX[wide] if kind.is_complex else None
    return argument if name is None else Symbol(f"torch.{name}")
