"""The views that a region's kernels read: calls that PyTorch makes, without copying, before the kernel is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.calls import operands
from mugraph.ir.region import Argument, Call, Part, Ref, Region, SearchUnit, Symbol, TensorInfo
from mugraph.ops.views import BYTES, View

_BYTE = Symbol("torch.uint8")


class PartViews:
    """Numbers for views that no call of the region made; equal ones have one number."""

    def __init__(self, region: Region) -> None:
        self._next = max(region.values, default=-1) + 1
        self._known: dict[tuple[int, str, object], int] = {}
        self.calls: dict[int, Call] = {}
        self.values: dict[int, TensorInfo] = {}

    def of(self, view: View, near: Call) -> tuple[int, ...]:
        """The value numbers of the calls that make a view, the view itself last. near: the call whose place in the
        source they get"""
        made: list[int] = []
        if view.part:
            assert view.first is not None
            target, args = ("Tensor.view", (_BYTE,)) if view.part == BYTES else (f"Tensor.{view.part}.__get__", ())
            made.append(self._made(view, (), view.first, target, args, near, view.value))
        if view.shape is not None:
            source = made[-1] if made else view.value
            made.append(self._made(view, view.shape, view.seen, "Tensor.view", view.shape, near, source))
        if not view.is_whole:
            source = made[-1] if made else view.value
            key = (view.shape, view.text)
            made.append(self._made(view, key, view.info, "Tensor.__getitem__", (view.argument,), near, source))
        if view.copied:
            key = ("copied", view.shape, view.text)
            made.append(self._made(view, key, view.read, "Tensor.contiguous", (), near, made[-1]))
        return tuple(made)

    def _made(
        self, view: View, key: object, info: TensorInfo, target: str, args: Sequence[Argument], near: Call, source: int
    ) -> int:
        known = (view.value, view.part, key)
        if known not in self._known:
            number, self._next = self._next, self._next + 1
            self._known[known] = number
            self.values[number] = info
            self.calls[number] = Call(target, (Ref(source), *args), {}, (number,), near.range)
        return self._known[known]


def read_by(unit: SearchUnit) -> frozenset[int]:
    """The values of the region that a search unit reads, as a whole or in part."""
    taken = {value for call in unit.views for value in operands(call)}
    return frozenset({*unit.inputs.values(), *taken} - unit.view_values.keys())


def with_views(region: Region, units: Sequence[Part]) -> Region:
    """The region with what is known of the views its search units read."""
    found: dict[int, TensorInfo] = {}
    dynamic = region.dynamic
    waiting = list(units)
    while waiting:
        unit = waiting.pop()
        if isinstance(unit, SearchUnit):
            found.update(unit.view_values)
            waiting += unit.apart
            if dynamic is not None and unit.general_views is not None:
                dynamic = dynamic.joined(unit.general_views)
    return replace(region, values={**region.values, **found}, dynamic=dynamic) if found else region
