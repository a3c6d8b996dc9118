"""Block operators and their typing rules: which may be applied to which shared tensors (Mirage, Table 1).

The same set as the search's, stated over again: an operator type with its attributes, the shape it gives, and its
abstract expression.
"""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.ir.ops import Kind
from mugraph.search.algebra.abstract import NF
from mugraph.search.topologies.frame import Frame


@dataclass(frozen=True, slots=True)
class Shared:
    """A tensor in shared memory. mask: slots it varies over; after: loops it has passed an accumulator of; nf: its
    abstract expression."""

    mask: int
    after: int
    nf: NF


@dataclass(frozen=True, slots=True)
class OperatorType:
    """An operator with its attributes; `slots` and `prime` are what SUM, DOT and ACCUM sum over. reverse: a / b with
    the operand of the higher index as b."""

    kind: Kind
    fn: str = ""
    over: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    prime: int = 1
    reverse: bool = False


class Operators:
    """The operator types of one program in one frame. unary, binary: in the order their ranks take."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        program = frame.program
        kinds = {op.kind for op in program.ops}
        reductions = [(r.axes, r.slots, r.prime) for r in frame.reductions]
        known = sorted((kind for kind in Kind if kind in kinds or kind.assumed), key=lambda k: (not k.assumed, k.turn))
        one = [kind for kind in known if kind.is_elementwise and kind.arity == 1 and kind is not Kind.UNARY]
        two = [kind for kind in known if kind.is_elementwise and kind.arity == 2]
        self.unary = [OperatorType(kind) for kind in one]
        functions = {op.fn for op in program.ops if op.fn} | frame.algebra.by_form
        self.unary += [OperatorType(Kind.UNARY, fn) for fn in sorted(functions)]
        for kind in (kind for kind in known if kind.reduces and kind.arity == 1):
            self.unary += [OperatorType(kind, "", *reduction) for reduction in reductions]
            if kind.accumulator is not None:
                for axis, slot in frame.loop_slot.items():
                    fn, prime = kind.accumulator.fn, frame.primes[slot]
                    self.unary.append(OperatorType(Kind.ACCUM, fn, (axis,), (slot,), prime))
        self.binary = [OperatorType(kind) for kind in two]
        self.binary += [OperatorType(kind, reverse=True) for kind in two if not kind.commutes]
        self.binary += [OperatorType(Kind.DOT, "", *reduction) for reduction in reductions]
        # An outer product by element-wise operators, and a product of matrix and vector as one operator, exist where
        # the program itself has a value of those axes, or writes it so.
        self._shapes = {frame.mask(op.axes) & frame.tile_bits for op in program.ops}
        self._vectors = any(
            _one_holds_the_other(*(frame.mask(program.op(i).axes) for i in op.inputs))
            for op in program.ops
            if op.kind is Kind.DOT
        )

    def expression(self, kind: OperatorType, operands: tuple[Shared, ...]) -> NF:
        """ExprInfr, line 31."""
        nfs = [operand.nf for operand in operands]
        return kind.kind.meaning(self._frame.expressions, nfs[::-1] if kind.reverse else nfs, kind.fn, kind.prime)

    def shape(self, kind: OperatorType, operands: tuple[Shared, ...]) -> tuple[int, int] | None:
        """outputTensorShapeInfr, line 33: mask and loops passed; None where the operands do not fit."""
        mask = after = 0
        for operand in operands:
            mask |= operand.mask
            after |= operand.after
        if mask & after & self._frame.loop_bits:  # a loop's result is not known inside of it
            return None
        summed = sum(1 << slot for slot in kind.slots)
        if any(operand.mask & summed != summed for operand in operands):
            return None
        tiles = [operand.mask & self._frame.tile_bits for operand in operands]
        match kind.kind:
            case Kind.ACCUM:
                return mask & ~summed, after | summed
            case two if two.is_elementwise and two.arity == 2:
                tile = tiles[0] | tiles[1]
                return (mask, after) if tile in tiles or tile in self._shapes else None
            case Kind.DOT if _one_holds_the_other(*tiles) and not self._vectors:
                return None
            case _:
                return mask & ~summed, after


def _one_holds_the_other(a: int, b: int) -> bool:
    return a | b in (a, b)
