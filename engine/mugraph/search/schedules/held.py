"""Whether a thread block can hold what any kernel of a program has to hold at once, told without a search.

Two kinds of axes are never looped over, so that all of them is in one block. One is reduced, and an output has it that
is computed from the result, as a row of a softmax or of a norm has (mugraph.search.run.loop_sets). The other is reduced
twice, the second time over what the first result made of each element, as in the mean square of what is centred: a loop
has no result inside of it. (A factor of all elements, or what is added to each, may be taken out of the second sum; so
a softmax times values, or a norm before a product, may be looped over.) Where what is held is more than the registers
of the largest block, the program needs several kernels, and a search for one is in vain.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from math import prod

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.search.schedules.cost import MAX_REGISTERS

_THREADS = 32 * 8
"""Of the largest block that schedules have (mugraph.search.schedules.sizes.ScheduleLimits)."""


class Need(IntEnum):
    """How a value along an axis follows from what is reduced over the axis."""

    NONE = 0
    FACTOR = 1  # a number for all of the axis, or times one
    ADDEND = 2  # what is added to each element
    ENTANGLED = 3  # neither can be taken out of a sum along the axis


class Needs:
    """The primitives that kinds are made of (mugraph.kinds.kind)."""

    def constant(self, value: float) -> Need:
        return Need.NONE

    def add(self, a: Need, b: Need) -> Need:
        return max(a, b, Need.ADDEND) if a or b else Need.NONE

    def mul(self, a: Need, b: Need) -> Need:
        return Need.ENTANGLED if a is b is Need.ADDEND else max(a, b)

    def div(self, a: Need, b: Need) -> Need:
        return Need.ENTANGLED if b is Need.ADDEND else max(a, b)

    def sqrt(self, a: Need) -> Need:
        return Need.ENTANGLED if a is Need.ADDEND else a

    def exp(self, a: Need) -> Need:
        """Of a sum it is a product."""
        return {Need.ADDEND: Need.FACTOR, Need.FACTOR: Need.ENTANGLED}.get(a, a)

    def unary(self, fn: str, a: Need) -> Need:
        return self._entangled(a)

    def opaque(self, kind: Kind, *operands: Need) -> Need:
        return self._entangled(*operands)

    def maximum(self, a: Need, b: Need) -> Need:
        return self._entangled(a, b)

    def amax(self, a: Need, over: object) -> Need:
        return a

    def sum(self, a: Need, over: object) -> Need:
        return a

    def dot(self, a: Need, b: Need, over: object) -> Need:
        return self.mul(a, b)

    def running(self, a: Need, over: object, backwards: bool) -> Need:
        return self._entangled(a)

    def _entangled(self, *operands: Need) -> Need:
        return Need.ENTANGLED if any(operands) else Need.NONE


_NEEDS = Needs()


def is_too_large_to_hold(program: TensorProgram) -> bool:
    """Would a search for one kernel be in vain, whatever its tiles are? False says nothing."""
    return any(_elements_held(program, value) > MAX_REGISTERS * _THREADS for value in program.outputs)


def holds_rows(program: TensorProgram) -> bool:
    """Has a thread block to hold all of some axis? Where it has not, tiles may be as small as they need be."""
    return any(_elements_held(program, value) > 1 for value in program.outputs)


def _elements_held(program: TensorProgram, output: str) -> int:
    """Of the largest value on the way to an output, at least, that one block holds."""
    needed = {output}
    for op in reversed(program.ops):
        if op.name in needed:
            needed.update(op.inputs)
    ops = [op for op in program.ops if op.name in needed]
    reduced = {axis for op in ops for axis in op.over}
    held = {axis for axis in reduced if axis in program.op(output).axes or _is_reduced_again(ops, axis)}
    computed = (op for op in ops if not op.kind.is_leaf)
    return max((prod(program.sizes[axis] for axis in held.intersection(op.axes)) for op in computed), default=1)


def _is_reduced_again(ops: Iterable[Op], axis: str) -> bool:
    needs: dict[str, Need] = {}
    for op in ops:
        below = [needs[name] for name in op.inputs]
        if axis in op.over and Need.ENTANGLED in (*below, _product(op, below)):
            return True
        found = op.kind.meaning(_NEEDS, below, op.fn, op.over) if below else Need.NONE
        if axis in op.over or (found and axis not in op.axes):
            found = Need.FACTOR
        needs[op.name] = found
    return False


def _product(op: Op, below: list[Need]) -> Need:
    """Of what a product adds up."""
    return _NEEDS.mul(*below) if op.kind.contracts else Need.NONE
