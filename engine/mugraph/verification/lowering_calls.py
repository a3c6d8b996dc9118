"""Recorded calls as they are run for the test of lowering: on the processor, in one wide type.

In float64 a call computes what it means, and rounds nothing that matters: what is left of a difference from the tensor
program is a difference in meaning. A cast from one floating-point type to another means nothing, in the program as
here; what rounding does is a matter of the kernel's own test. Casts to whole numbers and to truth values stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch

from mugraph.ir.region import Argument, Call, Symbol
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.regions.replay import NotReplayable, symbol

Wide = Literal["float64", "float32"]
"""The type that stands for all floating-point types."""
_COMPLEX = {"float64": "complex128", "float32": "complex64"}
_CASTS = frozenset({"Tensor.float", "Tensor.half", "Tensor.bfloat16", "Tensor.double"})
_CAST_OF = {"float64": "Tensor.double", "float32": "Tensor.float"}


def on_processor(calls: Sequence[Call], wide: Wide) -> tuple[Call, ...]:
    """The calls with the wide type for every floating-point type that they name, and without other devices."""
    return tuple(_on_processor(call, wide) for call in calls)


def _on_processor(call: Call, wide: Wide) -> Call:
    target = canonical(call.target)
    target = _CAST_OF[wide] if target in _CASTS else "Tensor.cpu" if target == "Tensor.cuda" else call.target
    first, rest = call.args[:1], call.args[1:]
    if target == "Tensor.cpu":
        rest = ()
    changed = _each(lambda argument: _widened(argument, wide))
    return replace(
        call,
        target=target,
        args=(*first, *map(changed, rest)) if target.startswith("Tensor.") else tuple(map(changed, call.args)),
        kwargs={name: changed(argument) for name, argument in call.kwargs.items()},
    )


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
    name = wide if kind.is_floating_point else _COMPLEX[wide] if kind.is_complex else None
    return argument if name is None else Symbol(f"torch.{name}")
