"""What a graph is made of whatever it computes: its inputs and constants, the ends of its loops, its outputs."""

from collections.abc import Sequence
from typing import Any

from mugraph.kinds.kind import Kind, Role, accumulator, kind_named


def _accumulated(on: Any, of: Sequence[Any], fn: str, over: Any) -> Any:
    return kind_named(accumulator(fn).kind).meaning(on, of, "", over)


# A tensor -> a value with the tensor's axes.
LOAD = Kind("load", Role.LEAF, 0, fields=("tensor",), shown="load {tensor}", test_cost=2.0)
# A scalar (eps, 1/sqrt(d)); no axes.
CONST = Kind("const", Role.LEAF, 0, fields=("value",), shown="{value:g}", title="c")
# Ones and zeros: 1 where the place along `columns` <= that along `rows` + value.
MASK = Kind("mask", Role.LEAF, 0, fields=("rows", "columns", "value"), symbol="mask")
# The place along `rows`, counted from `value`: a whole number.
POSITION = Kind("position", Role.LEAF, 0, fields=("rows", "value"), symbol="position", title="place")
# Block graphs: joins what the iterations of the loop in `over` (exactly one axis) find, as the accumulator `fn` does.
ACCUM = Kind("accum", Role.ACCUMULATING, 1, meaning=_accumulated, fields=("over",), look="reduce", stem="acc")
# Block graphs: a value -> a tensor.
STORE = Kind("store", Role.STORING, 1, fields=("tensor",), shown="store {0} to {tensor}")
