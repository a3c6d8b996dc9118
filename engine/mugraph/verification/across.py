"""Values of a program that is cut along an axis that it reduces: what is reduced along the axis is computed from all
pieces, before any of them is evaluated. Nothing as large as the program's tensors is held in float64."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from torch import Tensor

from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.kinds.kind import kind_named
from mugraph.verification.evaluate import ancestors
from mugraph.verification.pieces import Piece, axes_of
from mugraph.verification.torch_reference import Exact, Rounding, TorchArithmetic, Value, computed, evaluate, value_of


class Evaluation:
    """A program's values on inputs, piece by piece.

    parts:    all pieces of the program
    rounding: of the whole program; none: exact
    wanted:   values to compute; all if not given
    """

    def __init__(
        self,
        program: TensorProgram,
        inputs: Mapping[str, Tensor],
        parts: Sequence[Piece],
        rounding: Rounding | None = None,
        wanted: Collection[str] | None = None,
    ) -> None:
        self._inputs, self._wanted, self._rounding = inputs, wanted, rounding or Exact()
        self._program, self._parts, self._axis = program, parts, parts[0].axis
        self._known: dict[str, Value] = {}
        self._in_parts = any(self._axis in op.over for op in program.ops)
        if self._axis is not None and self._in_parts:
            self._axes = axes_of(program)
            self._reduce(self._axis)

    def of(self, piece: Piece) -> dict[str, Value]:
        """Value name -> its value there. What lacks the axis is the same in all pieces."""
        given, wanted = piece.inputs(self._inputs), self._wanted
        return evaluate(piece.program, given, self._rounding, wanted, {**self._known}, shifts=not self._in_parts)

    def _reduce(self, axis: str) -> None:
        """All values that lack the axis, of those that are needed. One pass over the pieces for each that waits for
        another."""
        ops = self._program.ops
        needed = ancestors(ops, [op.name for op in ops] if self._wanted is None else self._wanted)
        while True:
            self._whole(axis, needed)
            ready = [op for op in ops if op.name in needed and self._is_ready(op, axis)]
            if not ready:
                return
            rounded = {op.name: self._rounding.joined(op) for op in ready}
            found: dict[str, Value] = {}
            operands = {name for op in ready for name in op.inputs}
            for piece in self._parts:
                values = evaluate(piece.program, piece.inputs(self._inputs), self._rounding, operands, self._known)
                share = (piece.last - piece.first) / self._program.sizes[axis]
                for op in ready:
                    mine = [values[name] for name in op.inputs]
                    part = computed(op, mine, self._rounding)
                    rounded[op.name].add(mine, share)
                    found[op.name] = _joined(op, found[op.name], part) if op.name in found else part
            for op in ready:
                value = found[op.name]
                self._known[op.name] = Value(rounded[op.name].result(value.data), value.axes)

    def _whole(self, axis: str, needed: Collection[str]) -> None:
        """Those that have nothing to do with the axis, as far as their operands are known."""
        for op in self._program.ops:
            if op.name not in needed or op.name in self._known or axis in (*self._axes[op.name], *op.over):
                continue
            if all(name in self._known for name in op.inputs):
                self._known[op.name] = value_of(op, self._program, self._inputs, self._known, self._rounding)

    def _is_ready(self, op: Op, axis: str) -> bool:
        """A reduction along the axis, of values that follow from the inputs and from what is known."""
        if axis not in op.over or op.name in self._known:
            return False
        return all(name in self._known for name in self._behind(op, axis))

    def _behind(self, op: Op, axis: str) -> Iterator[str]:
        """Values without the axis from which its operands are computed, along values that have it."""
        above = {one.name: one for one in self._program.ops}
        waiting, seen = list(op.inputs), set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if axis in self._axes[name]:
                waiting += above[name].inputs
            else:
                yield name


def _joined(op: Op, first: Value, second: Value) -> Value:
    assert op.kind.accumulator is not None
    joins = kind_named(op.kind.accumulator.joins)
    return joins.meaning(TorchArithmetic(first.data.device), [first, second], "", ())
