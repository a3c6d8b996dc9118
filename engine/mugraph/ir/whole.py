"""Which values are whole numbers, by what they are computed from: as an arithmetic (kinds/kind.py) of truth values."""

from __future__ import annotations

from collections.abc import Callable

from mugraph.ir.dtypes import COMPARED, READ
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram

_KEEP = frozenset({"relu", "abs"})
"""Functions of whole numbers that are whole."""


class Whole:
    """Are all numbers whole?"""

    def constant(self, value: float) -> bool:
        return float(value).is_integer()

    def add(self, a: bool, b: bool) -> bool:
        return a and b

    mul = maximum = add

    def amax(self, a: bool, over: object) -> bool:
        return a

    def unary(self, fn: str, a: bool) -> bool:
        return a and fn in _KEEP

    def opaque(self, kind: Kind, *operands: bool) -> bool:
        assert kind.opaque is not None
        return kind.opaque.is_truth or (kind.jumps and not kind.stored)

    def __getattr__(self, name: str) -> Callable[..., bool]:
        return lambda *_: False


def whole_values(program: TensorProgram) -> frozenset[str]:
    """Values of a program that are rounded to whole numbers, and what is computed of those and of constants. Each of
    them is exact, as long as its type has the number."""
    found: set[str] = set()
    jumps: set[str] = set()
    for op in program.ops:
        if op.kind is Kind.LOAD:
            dtype = program.tensor(op.tensor).dtype
            is_whole = READ[dtype].is_whole and dtype not in COMPARED
        elif op.kind.is_number:
            is_whole = float(op.value).is_integer()
        elif op.kind.is_leaf:
            is_whole = True
        else:
            is_whole = bool(op.kind.meaning(Whole(), [name in found for name in op.inputs], op.fn, op.over))
        if is_whole:
            found.add(op.name)
        if is_whole and (op.kind.jumps or not jumps.isdisjoint(op.inputs)):
            jumps.add(op.name)
    return frozenset(jumps)
