"""Operators in SSA form over unordered named axes: the one node type of tensor programs and block graphs.

Values carry a set of axes, no order: element-wise operators broadcast by name, `dot` contracts by name, so transposes,
views and unsqueezes do not exist here. Order and strides belong to the tensors that are loaded and stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    LOAD = "load"  # tensor -> value with the tensor's axes
    CONST = "const"  # a scalar constant (eps, 1/sqrt(d)); no axes
    MASK = "mask"  # a constant of ones and zeros: 1 where the place along `columns` <= that along `rows` + value
    ADD = "add"
    MUL = "mul"
    DIV = "div"
    SQRT = "sqrt"
    EXP = "exp"
    MAX = "max"  # the larger of two values
    UNARY = "unary"  # a function named in `fn` (ops/unary.py): silu, relu, tanh, ...
    SUM = "sum"  # over the axes in `over`
    AMAX = "amax"  # the largest along the axes in `over`
    DOT = "dot"  # sum over `over` of the product of the two inputs
    ACCUM = "accum"  # block graphs: sum over the iterations of the loop in `over` (exactly one axis), or their maximum
    STORE = "store"  # block graphs: value -> tensor


LEAVES = frozenset({Kind.LOAD, Kind.CONST, Kind.MASK})
"""What has no operands."""
ELEMENTWISE = frozenset({Kind.ADD, Kind.MUL, Kind.DIV, Kind.SQRT, Kind.EXP, Kind.MAX, Kind.UNARY})
REDUCING = frozenset({Kind.SUM, Kind.AMAX, Kind.DOT})
"""What reduces the axes in `over` of one tile or tensor."""
LARGEST = "max"
"""`fn` of an ACCUM that keeps the largest."""
ARITY = {
    Kind.LOAD: 0, Kind.CONST: 0, Kind.MASK: 0, Kind.ADD: 2, Kind.MUL: 2, Kind.DIV: 2, Kind.SQRT: 1, Kind.EXP: 1,
    Kind.MAX: 2, Kind.UNARY: 1, Kind.SUM: 1, Kind.AMAX: 1, Kind.DOT: 2, Kind.ACCUM: 1, Kind.STORE: 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Op:
    """One operator and the value it defines.

    name:   of the value, unique in its graph, a Python identifier (from the user's code where it has one)
    inputs: names of the operand values, in order
    axes:   of the result, sorted by name. In a block graph an axis is present while the value still varies along its
            tile; ACCUM keeps its input's axes (a tile that was not summed before is summed after the loop).
    over:   SUM, AMAX, DOT: the axes reduced, sorted. ACCUM: the loop it closes.
    tensor: LOAD, STORE: name of the tensor.
    value:  CONST. MASK: the diagonal, a whole number (masks.py).
    fn:     UNARY. ACCUM: "" adds up, "max" keeps the largest.
    f32:    the user's program computes this value in float32 though its inputs are 16-bit (a precision mark, not a
            part of the algebra).
    rows, columns: MASK: the axes, outermost first, that together count its rows and its columns.
    """

    name: str
    kind: Kind
    inputs: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    tensor: str = ""
    value: float = 0.0
    fn: str = ""
    f32: bool = False
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
