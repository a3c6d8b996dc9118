"""What a part of a kernel graph is expected to take before its kernels have been searched.

It takes at least the time of its traffic. For a part that computes the program's output there is another estimate: the
best kernel for the whole program, with values loaded that the part does not compute. It has costs that traffic does not
show.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Tensor
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import Target

_KERNELS = 8
"""Of the program, the best by estimate, that parts are cut out of."""
_OWN = 0.8
"""A kernel with a schedule of its own is expected to take this part of such a remainder. (Most take as much.)"""


def with_loads(block: BlockGraph, values: Collection[str], stored: Mapping[str, Tensor]) -> BlockGraph | None:
    """The kernel with these values loaded; None where it does not compute one of them, or where a loop is left empty.

    stored: value -> the tensor it is in
    """
    ops: list[Op] = []
    for op in reversed(block.ops):
        if op.kind is not Kind.STORE and not any(op.name in user.inputs for user in ops):
            continue
        if op.name in values:
            if set(op.axes) != set(stored[op.name].axes):
                return None
            op = Op(op.name, Kind.LOAD, (), op.axes, tensor=stored[op.name].name, f32=op.f32)
        ops.append(op)
    ops.reverse()
    used = {axis for op in ops for axis in (*op.axes, *op.over)}
    if not {op.name for op in ops}.issuperset(values) or not used.issuperset(block.loop_axes):
        return None
    loaded = {op.tensor for op in ops}
    tensors = (*block.tensors, *(stored[value] for value in values))
    return replace(block, ops=tuple(ops), tensors=tuple(tensor for tensor in tensors if tensor.name in loaded))


class Remainders:
    """What is left of the best kernels of a program where values are loaded in place of computed.

    candidates: of the program, the best by estimate first. The best may be a split in two kernels. What is left is
                found of single kernels, so its time is scaled by that of the best over that of the best single one
    named:      the program's values, which have the same names in all candidates; other names mean other things in each
    """

    def __init__(self, candidates: Sequence[Candidate], named: Collection[str], target: Target) -> None:
        self._named, self._target = frozenset(named), target
        self._kernels = [one for one in candidates if one.then is None and not one.schedule.library][:_KERNELS]
        self._share = _OWN * candidates[0].estimate_us / self._kernels[0].estimate_us if self._kernels else 0.0
        self._shapes: dict[tuple[int, frozenset[str]], Shape | None] = {}

    def us(self, values: frozenset[str], stored: Mapping[str, Tensor]) -> float | None:
        """Of a kernel in which these values are loaded; None where there is none that fits."""
        if not values <= self._named:
            return None
        found: list[float] = []
        for one in self._kernels:
            key = id(one.block.ops), values
            if key not in self._shapes:
                block = with_loads(one.block, values, stored)
                self._shapes[key] = Shape(block) if block else None
            shape = self._shapes[key]
            if shape is not None:
                found.append(estimate_us(shape, one.schedule, self._target))
        least = min(found, default=float("inf"))
        return least * self._share if least < float("inf") else None
