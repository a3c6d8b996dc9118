"""A small program with random errors, drawn several times at once: there PyTorch's calls take longer than what they
compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from torch import Tensor

from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.verification.roundings import Perturbed
from mugraph.verification.torch_reference import Exact, Value, evaluate, outputs, value_of

_DRAW = "a draw"
"""An axis of all values, beside the program's."""
_LOTS = (4, 16, 64)
"""Where the lots end, in which draws are asked (judge.py)."""
_MOST = 1 << 17
"""Numbers that one draw computes: of more, each is drawn by itself."""


def is_small(program: TensorProgram) -> bool:
    return sum(prod(program.sizes[axis] for axis in op.axes) for op in program.ops) <= _MOST


@dataclass
class Draws:
    """Outputs by the number of the draw. rounding: of all of them"""

    program: TensorProgram
    inputs: Mapping[str, Tensor]
    rounding: Perturbed
    _found: dict[int, dict[str, Tensor]] = field(default_factory=dict[int, dict[str, Tensor]])

    def of(self, number: int) -> dict[str, Tensor]:
        while number not in self._found:
            first = len(self._found)
            end = next((end for end in _LOTS if end > first), first + 1)
            self._draw(first, end - first)
        return self._found[number]

    def _draw(self, first: int, count: int) -> None:
        loads = [op for op in self.program.ops if op.kind is Kind.LOAD]
        read = {op.name: value_of(op, self.program, self.inputs, {}, Exact()) for op in loads}
        given = {
            name: Value(value.data.expand(count, *value.data.shape), (_DRAW, *value.axes), value.mask)
            for name, value in read.items()
        }
        wanted = tuple(self.program.outputs)
        values = evaluate(self.program, self.inputs, self.rounding, wanted, given, shifts=True)
        for at in range(count):
            own = {name: _one(values[name], at) for name in wanted}
            self._found[first + at] = outputs(self.program, own)


def _one(value: Value, at: int) -> Value:
    if _DRAW not in value.axes:
        return value
    position = value.axes.index(_DRAW)
    axes = (*value.axes[:position], *value.axes[position + 1 :])
    return Value(value.data.select(position, at), axes, value.mask)
