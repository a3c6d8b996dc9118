"""Finds out whether code decides by a size. The code is run once with a symbol in place of the size.

Traces at a few sizes cannot see `if x.shape[0] == 17`. PyTorch's symbolic shapes can: whatever the code, or an operator
in it, asks about the size becomes a guard. A guard that holds at one size of the range and not at another is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import FrameSummary, extract_tb
from typing import Any, cast

import sympy
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from mugraph.ir.ranges import SizeRange
from mugraph.trace.run.around import as_recorded
from mugraph.trace.run.build import Builder
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.devices import OneDevice
from mugraph.trace.run.entries import Entry
from mugraph.trace.run.places import Places
from mugraph.trace.run.values import DTYPE_NAMES
from mugraph.trace.syntax.shapes import Spec, TensorSpec

MOST = 4096
"""Sizes of a range at which guards are looked at; of a longer one, evenly many."""


@dataclass
class _SymbolicBuilder(Builder):
    """given: tensor arguments that are there already, by the ids of what is said of them."""

    given: Mapping[int, torch.Tensor] = field(default_factory=dict[int, torch.Tensor])

    def value(self, spec: Spec) -> object:
        made = self.given.get(id(spec))
        return made if made is not None else super().value(spec)


def decided_at(entry: Entry, other: Entry, places: Places, size: SizeRange) -> str | None:
    """Why the code does not do the same at all sizes, as the end of a sentence; None if it does. Size 1 is left aside:
    PyTorch always treats it as a case of its own.

    entry, other: the same code with the largest size and with another one
    places:       of the user's file, whose lines are named
    """
    path = places.traced
    shapes = ShapeEnv()
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=shapes)
    constants = Constants(real=False)
    try:
        factors: dict[object, int] = {}
        given = {id(spec): _tensor(spec, dims, mode, factors) for spec, dims in _varying(entry, other, size)}
        builder = _SymbolicBuilder(places, mode, constants, given=given)
        with torch.no_grad(), OneDevice(), constants:
            ready = builder.ready(entry)
            with builder.within(), as_recorded(ready.around), enable_python_dispatcher():
                ready.function(*ready.args, **ready.kwargs)
    except Exception as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        frames = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == path]
        where = f", line {frames[-1]}" if frames else ""
        return f"PyTorch cannot follow the code without knowing the size ({line[:120]}{where})"
    guards = cast("Sequence[Any]", shapes.guards)
    for at in _sizes(size):
        values = {symbol: factor * at for symbol, factor in factors.items()}
        broken = next((guard for guard in guards if guard.expr.xreplace(values) is sympy.false), None)
        if at > 1 and broken is not None:
            where = _line(broken, path)
            return f"the code does something else with {size.name} = {at} than with {size.largest}{where}"
    return None


def _line(guard: Any, path: str) -> str:
    """ " (line 6)", where PyTorch has kept what asked about the size, and it stands in the user's file."""
    place = getattr(getattr(guard, "sloc", None), "framework_loc", None)
    return f" (line {place.lineno})" if isinstance(place, FrameSummary) and place.filename == path else ""


def _sizes(size: SizeRange) -> Iterator[int]:
    step = max(1, (size.largest - size.least) // MOST)
    yield from range(size.least, size.largest, step)
    yield size.largest


def _tensor(
    spec: TensorSpec, dims: Mapping[int, int], mode: FakeTensorMode, factors: dict[object, int]
) -> torch.Tensor:
    """Without contents, some of its dimensions symbols. factors: takes the symbols, with how many times the size they
    are"""
    real = torch.empty(spec.shape, dtype=DTYPE_NAMES[spec.dtype])
    kinds = [DimDynamic.DYNAMIC if at in dims else DimDynamic.STATIC for at in range(len(spec.shape))]
    context: Any = cast(Any, StatelessSymbolicContext)(dynamic_sizes=kinds)
    made = mode.from_tensor(real, symbolic_context=context, source=ConstantSource(f"argument_{id(spec)}"))
    for at, factor in dims.items():
        symbol: Any = made.shape[at]
        factors[symbol.node.expr] = factor
    return made


def _varying(entry: Entry, other: Entry, size: SizeRange) -> Iterator[tuple[TensorSpec, Mapping[int, int]]]:
    """Tensor arguments with dimensions that vary."""
    pairs = [*zip(entry.arguments.values(), other.arguments.values(), strict=True)]
    while pairs:
        one, two = pairs.pop()
        if isinstance(one, TensorSpec) and isinstance(two, TensorSpec):
            dims = zip(one.shape, two.shape, strict=True)
            varying = {at: n // size.largest for at, (n, m) in enumerate(dims) if n != m}
            if varying:
                yield one, varying
        elif isinstance(one, tuple) and isinstance(two, tuple):
            pairs += zip(one, two, strict=True)
