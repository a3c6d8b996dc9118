"""Functions by what they are made of: one exponential, sums, products and a quotient.

    sigmoid(x)   = 1 / (1 + exp(-x))
    tanh(x)      = 2 sigmoid(2x) - 1
    silu(x)      = x sigmoid(x)
    gelu_tanh(x) = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))      GELU with approximate="tanh"

Each stays one operator of a graph, and one stable expression in a kernel. Verification and search may compute it by its
form, or take it as a function of which nothing is known. Past another exponential, a sigmoid is always such a function,
because a path may have one exponential only (Mirage §5). GELU with erf has no form.

The forms are stated once, for anything that can be added, multiplied and divided: residues, counts, abstract
expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from mugraph.ir.ops import Kind, Op

V = TypeVar("V")

SIGMOID = "sigmoid"
_SLOPE, _CUBE = 1.5957691216057308, 0.044715

CONSTANTS: Mapping[str, frozenset[float]] = {
    SIGMOID: frozenset({1.0, -1.0}),
    "tanh": frozenset({2.0, -1.0}),
    "silu": frozenset(),
    "gelu_tanh": frozenset({_SLOPE, _CUBE}),
}
"""Function that has a form -> the constants in it. All forms but that of sigmoid itself are in terms of sigmoid."""


class Numbers(Protocol[V]):
    """What a form is computed with."""

    def add(self, a: V, b: V, /) -> V: ...
    def mul(self, a: V, b: V, /) -> V: ...
    def div(self, a: V, b: V, /) -> V: ...
    def exp(self, a: V, /) -> V: ...
    def unary(self, fn: str, a: V, /) -> V: ...


def form(fn: str, x: V, numbers: Numbers[V], constant: Callable[[float], V]) -> V:
    """The function of x by its form, one step: tanh, silu and GELU ask `numbers` for a sigmoid."""
    add, mul = numbers.add, numbers.mul
    match fn:
        case "sigmoid":
            one = constant(1.0)
            return numbers.div(one, add(one, numbers.exp(mul(constant(-1.0), x))))
        case "tanh":
            two = constant(2.0)
            return add(mul(two, numbers.unary(SIGMOID, mul(two, x))), constant(-1.0))
        case "silu":
            return mul(x, numbers.unary(SIGMOID, x))
        case "gelu_tanh":
            cube = mul(constant(_CUBE), mul(x, mul(x, x)))
            return mul(x, numbers.unary(SIGMOID, mul(constant(_SLOPE), add(x, cube))))
        case _:
            raise ValueError(f"{fn} has no form")


def is_below_exp(*graphs: Iterable[Op]) -> bool:
    """Does an exponential in one of the graphs depend on a function with a form, as in a softmax of tanh?

    By the form it would be a second exponential on the path, of which little is known. Of the function itself it is
    enough to know that equal arguments give equal results.
    """
    for ops in graphs:
        past: set[str] = set()
        for op in ops:
            is_past = not past.isdisjoint(op.inputs)
            if is_past and "exp" in op.kind.primitives:
                return True
            if is_past or (op.kind.is_function and op.fn in CONSTANTS):
                past.add(op.name)
    return False


def used(*graphs: Iterable[Op]) -> frozenset[str]:
    """Functions in the graphs that have forms."""
    return frozenset(op.fn for ops in graphs for op in ops if op.kind.is_function and op.fn in CONSTANTS)


def searchable(ops: Sequence[Op]) -> frozenset[str]:
    """Functions that a search of this program computes by their forms.

    These are the functions whose parts the program has, constants and all: there a value may be computed both by the
    function and by its parts. In any other program a form would only add to what is searched. SiLU stays the operator
    that it is in the papers.
    """
    constants = {op.value for op in ops if op.kind is Kind.CONST}
    sigmoid = {SIGMOID} if any("exp" in op.kind.primitives for op in ops) and not is_below_exp(ops) else set[str]()
    found = {fn for fn in sigmoid if CONSTANTS[fn] <= constants}
    if found or SIGMOID in used(ops):
        found |= {fn for fn in ("tanh", "gelu_tanh") if CONSTANTS[fn] <= constants}
    return frozenset(found)
