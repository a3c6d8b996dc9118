"""What the fields must know of the real numbers: constants by any route, signs, roots, zeros and sizes.

Pairs of programs, each as a program and as a graph for the other: equal ones pass both ways, others do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_topology

from tests.engine.verification.graphs import Builder, tensor

SIZES = {"row": 48, "column": 64, "group": 32}
X, Y, S = tensor("x", "row column", SIZES), tensor("y", "row column", SIZES), tensor("s", "row", SIZES)
W, V = tensor("w", "column group", SIZES), tensor("v", "group", SIZES)
INPUTS = (X, Y, S, W, V)
Write = Callable[["Writer"], str]


class Writer(Builder):
    """Expressions of x, y [row, column], s [row], w [column, group] and v [group]."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y, self.s, self.w, self.v = (self.load(t.name, t) for t in INPUTS)

    def do(self, kind: Kind, *operands: str | float, fn: str = "") -> str:
        named = [o if isinstance(o, str) else self.const(f"c{len(self.ops)}_{i}", o) for i, o in enumerate(operands)]
        return self.ew(f"v{len(self.ops)}", kind, *named, fn=fn)

    def add(self, a: str | float, b: str | float) -> str:
        return self.do(Kind.ADD, a, b)

    def sub(self, a: str | float, b: str | float) -> str:
        return self.add(a, self.mul(-1.0, b))

    def mul(self, a: str | float, b: str | float) -> str:
        return self.do(Kind.MUL, a, b)

    def div(self, a: str | float, b: str | float) -> str:
        return self.do(Kind.DIV, a, b)

    def sqrt(self, a: str | float) -> str:
        return self.do(Kind.SQRT, a)

    def square(self, a: str) -> str:
        return self.mul(a, a)

    def max(self, a: str | float, b: str | float) -> str:
        return self.do(Kind.MAX, a, b)

    def relu(self, a: str) -> str:
        return self.do(Kind.UNARY, a, fn="relu")

    def abs(self, a: str) -> str:
        return self.do(Kind.UNARY, a, fn="abs")

    def sum(self, a: str, over: str = "column") -> str:
        return self.reduce(f"v{len(self.ops)}", Kind.SUM, a, over=over)

    def largest(self, a: str) -> str:
        return self.reduce(f"v{len(self.ops)}", Kind.AMAX, a, over="column")

    def mean(self, a: str) -> str:
        return self.mul(self.sum(a), 1 / 64)

    def product(self) -> str:
        """x w + v"""
        return self.add(self.reduce(f"v{len(self.ops)}", Kind.DOT, self.x, self.w, over="column"), self.v)

    def axes(self, value: str) -> tuple[str, ...]:
        return self._axes[value]


def verdict(one: Write, other: Write, seed: int | None = None) -> Verdict:
    """Is the graph of `other` the program of `one`?"""
    p, b = Writer(), Writer()
    value = one(p)
    out = tensor("out", " ".join(p.axes(value)), SIZES)
    program = TensorProgram("one", SIZES, INPUTS, tuple(p.ops), {value: out})
    b.store(other(b), out)
    tensors: tuple[Tensor, ...] = (*INPUTS, out)
    return verify_topology(program, BlockGraph("other", SIZES, tensors, tuple(b.ops), ()), seed)


def positive(w: Writer) -> str:
    return w.sum(w.square(w.x))


def distance(w: Writer) -> str:
    """|x|^2 + |y|^2 - 2 x y"""
    return w.add(w.add(w.sum(w.square(w.x)), w.sum(w.square(w.y))), w.mul(-2.0, w.sum(w.mul(w.x, w.y))))


EQUAL: dict[str, tuple[Write, Write]] = {
    # constants
    "root of 25": (lambda w: w.sqrt(w.mul(25.0, positive(w))), lambda w: w.mul(5.0, w.sqrt(positive(w)))),
    "root of 9 s / 49": (lambda w: w.sqrt(w.mul(9 / 49, positive(w))), lambda w: w.mul(3 / 7, w.sqrt(positive(w)))),
    "root of 41 * 41": (lambda w: w.sqrt(w.mul(1681.0, positive(w))), lambda w: w.mul(41.0, w.sqrt(positive(w)))),
    "1 / sqrt(64)": (lambda w: w.mul(w.x, 0.125), lambda w: w.div(w.x, w.sqrt(64.0))),
    "1 / sqrt(80)": (lambda w: w.mul(w.x, 80**-0.5), lambda w: w.div(w.x, w.sqrt(80.0))),
    "1 / sqrt(768), squared": (lambda w: w.mul(w.square(w.x), 1 / 768), lambda w: w.square(w.mul(w.x, 768**-0.5))),
    "a tenth of a tenth": (lambda w: w.mul(w.x, 0.01), lambda w: w.mul(w.mul(w.x, 0.1), 0.1)),
    "a rounded product": (lambda w: w.mul(w.mul(w.x, 0.1), 0.1), lambda w: w.mul(w.x, 0.1 * 0.1)),
    "a fifth, five times": (lambda w: w.mul(w.x, 1.0), lambda w: w.mul(w.mul(w.x, 0.2), 5.0)),
    "parts of one": (lambda w: w.mul(w.x, 1.0), lambda w: w.add(w.mul(w.x, 0.41), w.mul(0.59, w.x))),
    "three tenths": (lambda w: w.mul(w.x, 0.1 + 0.2), lambda w: w.add(w.mul(w.x, 0.1), w.mul(w.x, 0.2))),
    "an epsilon moved": (
        lambda w: w.div(w.x, w.sqrt(w.add(w.mean(w.square(w.x)), 1e-5))),
        lambda w: w.div(w.mul(w.x, 8.0), w.sqrt(w.add(w.sum(w.square(w.x)), 64e-5))),
    ),
    "twice the root of 2 / pi": (
        lambda w: w.mul(w.x, math.sqrt(8 / math.pi)),
        lambda w: w.mul(w.mul(w.x, 0.7978845608028654), 2.0),
    ),
    "GELU's cube, multiplied out": (
        lambda w: w.mul(math.sqrt(2 / math.pi), w.add(w.x, w.mul(0.044715, w.mul(w.x, w.square(w.x))))),
        lambda w: w.mul(w.x, w.add(0.7978845608028654, w.mul(0.035677408136300125, w.square(w.x)))),
    ),
    # roots
    "of a product of positive numbers": (
        lambda w: w.sqrt(w.mul(positive(w), w.sum(w.square(w.y)))),
        lambda w: w.mul(w.sqrt(positive(w)), w.sqrt(w.sum(w.square(w.y)))),
    ),
    "of a matrix": (lambda w: w.sqrt(w.mul(4.0, w.product())), lambda w: w.mul(2.0, w.sqrt(w.product()))),
    "of relu": (lambda w: w.sqrt(w.relu(w.product())), lambda w: w.sqrt(w.relu(w.add(w.v, w.sub(w.product(), w.v))))),
    "of relu, scaled": (
        lambda w: w.sqrt(w.relu(w.mul(4.0, w.product()))),
        lambda w: w.mul(2.0, w.sqrt(w.relu(w.product()))),
    ),
    "of a square": (lambda w: w.sqrt(w.square(w.x)), lambda w: w.abs(w.x)),
    "rsqrt": (
        lambda w: w.div(w.x, w.sqrt(w.add(positive(w), 1e-6))),
        lambda w: w.mul(w.x, w.sqrt(w.div(1.0, w.add(positive(w), 1e-6)))),
    ),
    "a distance": (
        lambda w: w.sqrt(distance(w)),
        lambda w: w.sqrt(w.sum(w.square(w.sub(w.x, w.y)))),
    ),
    # signs
    "relu of a multiple": (lambda w: w.relu(w.mul(3.0, w.x)), lambda w: w.mul(3.0, w.relu(w.x))),
    "relu as a maximum": (lambda w: w.relu(w.x), lambda w: w.max(w.x, 0.0)),
    "relu by abs": (lambda w: w.relu(w.x), lambda w: w.mul(0.5, w.add(w.x, w.abs(w.x)))),
    "relu of the negative": (lambda w: w.sub(w.relu(w.x), w.relu(w.mul(-1.0, w.x))), lambda w: w.mul(w.x, 1.0)),
    "abs as a maximum": (lambda w: w.abs(w.x), lambda w: w.max(w.x, w.mul(-1.0, w.x))),
    "abs of a product": (lambda w: w.abs(w.mul(w.x, w.y)), lambda w: w.mul(w.abs(w.x), w.abs(w.y))),
    "the square of abs": (lambda w: w.square(w.abs(w.x)), lambda w: w.square(w.x)),
    "a shifted maximum": (
        lambda w: w.max(w.add(w.x, w.s), w.add(w.y, w.s)),
        lambda w: w.add(w.max(w.x, w.y), w.s),
    ),
    "a maximum shifted far": (
        lambda w: w.max(w.add(w.x, 1e6), w.add(w.y, 1e6)),
        lambda w: w.add(w.max(w.x, w.y), 1e6),
    ),
    "the largest of a shifted row": (
        lambda w: w.largest(w.add(w.x, w.s)),
        lambda w: w.add(w.largest(w.x), w.s),
    ),
    "the largest of a scaled row": (
        lambda w: w.largest(w.mul(0.125, w.x)),
        lambda w: w.mul(0.125, w.largest(w.x)),
    ),
    "the exponential of the largest": (
        lambda w: w.do(Kind.EXP, w.largest(w.x)),
        lambda w: w.largest(w.do(Kind.EXP, w.x)),
    ),
    "a maximum by relu": (lambda w: w.max(w.x, w.y), lambda w: w.add(w.y, w.relu(w.sub(w.x, w.y)))),
    "what is positive already": (lambda w: w.relu(w.square(w.x)), lambda w: w.square(w.x)),
    "a distance that is not negative": (
        lambda w: w.sqrt(w.max(distance(w), 0.0)),
        lambda w: w.sqrt(w.sum(w.square(w.sub(w.x, w.y)))),
    ),
    "GELU by erf": (
        lambda w: w.do(Kind.UNARY, w.x, fn="gelu"),
        lambda w: w.mul(w.mul(w.x, 0.5), w.add(1.0, w.do(Kind.UNARY, w.mul(w.x, math.sqrt(0.5)), fn="erf"))),
    ),
    "GELU of the negative": (
        lambda w: w.sub(w.do(Kind.UNARY, w.x, fn="gelu"), w.do(Kind.UNARY, w.mul(-1.0, w.x), fn="gelu")),
        lambda w: w.mul(w.x, 1.0),
    ),
    "relu times itself": (lambda w: w.square(w.relu(w.x)), lambda w: w.mul(w.x, w.relu(w.x))),
    # sizes
    "variance": (
        lambda w: w.mean(w.square(w.sub(w.x, w.mean(w.x)))),
        lambda w: w.sub(w.mean(w.square(w.x)), w.square(w.mean(w.x))),
    ),
    "layer norm": (
        lambda w: w.div(w.sub(w.x, w.mean(w.x)), w.sqrt(w.add(w.mean(w.square(w.sub(w.x, w.mean(w.x)))), 1e-5))),
        lambda w: w.div(
            w.sub(w.x, w.mean(w.x)), w.sqrt(w.add(w.sub(w.mean(w.square(w.x)), w.square(w.mean(w.x))), 1e-5))
        ),
    ),
    "a mean of a sum with a row's number": (
        lambda w: w.mean(w.add(w.x, w.s)),
        lambda w: w.add(w.mean(w.x), w.s),
    ),
    "a sum of a row's number": (lambda w: w.sum(w.add(w.x, w.s)), lambda w: w.add(w.sum(w.x), w.mul(64.0, w.s))),
}
FEWER_ROOTS: dict[str, tuple[Write, Write]] = {
    "x / sqrt(s) / sqrt(s)": (
        lambda w: w.div(w.div(w.x, w.sqrt(positive(w))), w.sqrt(positive(w))),
        lambda w: w.div(w.x, positive(w)),
    ),
    "what has a root is positive": (
        lambda w: w.abs(w.div(w.sum(w.x), w.sqrt(w.sum(w.x)))),
        lambda w: w.sqrt(w.sum(w.x)),
    ),
}
"""Equal where the program's roots are roots. The fields know no sum of squares for one, so not the other way round."""
UNEQUAL: dict[str, tuple[Write, Write]] = {
    "root of 25 as -5": (lambda w: w.sqrt(w.mul(25.0, positive(w))), lambda w: w.mul(-5.0, w.sqrt(positive(w)))),
    "the square of the root of 41": (lambda w: w.mul(w.x, w.square(w.sqrt(41.0))), lambda w: w.mul(w.x, -41.0)),
    "a third of three digits": (lambda w: w.mul(w.x, 1 / 3), lambda w: w.mul(w.x, 0.333)),
    "a number that is 3 modulo P": (lambda w: w.mul(w.x, 1_940_566_322.0), lambda w: w.mul(w.x, 3.0)),
    "the square of a root": (lambda w: w.sqrt(w.square(w.x)), lambda w: w.square(w.sqrt(w.x))),
    "no absolute value": (lambda w: w.sqrt(w.square(w.x)), lambda w: w.mul(w.x, 1.0)),
    "negative at other scales": (
        lambda w: w.sqrt(w.square(w.add(w.x, 40.0))),
        lambda w: w.square(w.sqrt(w.add(w.x, 40.0))),
    ),
    "negative seldom": (
        lambda w: w.sqrt(w.square(w.add(w.x, 1e6))),
        lambda w: w.square(w.sqrt(w.add(w.x, 1e6))),
    ),
    "negative near zero": (
        lambda w: w.sqrt(w.square(w.sub(w.sum(w.square(w.x)), 1e-9))),
        lambda w: w.square(w.sqrt(w.sub(w.sum(w.square(w.x)), 1e-9))),
    ),
    "roots of factors": (
        lambda w: w.sqrt(w.mul(w.add(w.x, 1e5), w.add(w.x, 1e5))),
        lambda w: w.mul(w.sqrt(w.add(w.x, 1e5)), w.sqrt(w.add(1e5, w.x))),
    ),
    "a root of the negative": (lambda w: w.sqrt(positive(w)), lambda w: w.sqrt(w.mul(-1.0, positive(w)))),
    "relu of a negative multiple": (lambda w: w.relu(w.mul(-3.0, w.x)), lambda w: w.mul(-3.0, w.relu(w.x))),
    "relu without the absolute value": (lambda w: w.relu(w.x), lambda w: w.mul(w.x, 1.0)),
    "abs of a sum": (lambda w: w.abs(w.add(w.x, w.y)), lambda w: w.add(w.abs(w.x), w.abs(w.y))),
    "a smaller maximum": (lambda w: w.max(w.x, 0.0), lambda w: w.max(w.x, -1.0)),
    "a maximum shifted once": (
        lambda w: w.max(w.add(w.x, w.s), w.add(w.y, w.s)),
        lambda w: w.add(w.max(w.x, w.add(w.y, w.s)), w.s),
    ),
    "the largest of a row scaled by a negative number": (
        lambda w: w.largest(w.mul(-2.0, w.x)),
        lambda w: w.mul(-2.0, w.largest(w.x)),
    ),
    "a limit that is seldom met": (lambda w: w.max(w.x, -1e5), lambda w: w.mul(w.x, 1.0)),
    "a limit that is never met": (lambda w: w.max(w.square(w.x), -1e30), lambda w: w.relu(w.x)),
    "a limit of small numbers": (lambda w: w.max(w.square(w.x), 1e-12), lambda w: w.square(w.x)),
    "a distance with a limit": (
        lambda w: w.sqrt(w.max(distance(w), 1e-8)),
        lambda w: w.sqrt(w.sum(w.square(w.sub(w.x, w.y)))),
    ),
    "relu of what is negative where one is small and one large": (
        lambda w: w.relu(w.add(w.add(w.square(w.x), 1.0), w.mul(1e-3, w.y))),
        lambda w: w.add(w.add(w.square(w.x), 1.0), w.mul(1e-3, w.y)),
    ),
    "a smaller largest": (lambda w: w.largest(w.x), lambda w: w.mul(w.sum(w.x), 1 / 64)),
    "GELU by erf of x": (
        lambda w: w.do(Kind.UNARY, w.x, fn="gelu"),
        lambda w: w.mul(w.mul(w.x, 0.5), w.add(1.0, w.do(Kind.UNARY, w.x, fn="erf"))),
    ),
    "x y / y": (lambda w: w.mul(w.x, 1.0), lambda w: w.div(w.mul(w.x, w.y), w.y)),
    "s / sqrt(s)": (lambda w: w.sqrt(positive(w)), lambda w: w.div(positive(w), w.sqrt(positive(w)))),
    "a mean of too many": (lambda w: w.mean(w.x), lambda w: w.mul(w.sum(w.x), 1 / 32)),
    "a mean of as many as there are rows": (
        lambda w: w.mean(w.square(w.sub(w.x, w.mean(w.x)))),
        lambda w: w.sub(w.mul(w.sum(w.square(w.x)), 1 / 48), w.square(w.mul(w.sum(w.x), 1 / 48))),
    ),
    "an unbiased variance": (
        lambda w: w.mul(w.sum(w.square(w.sub(w.x, w.mean(w.x)))), 1 / 63),
        lambda w: w.sub(w.mean(w.square(w.x)), w.square(w.mean(w.x))),
    ),
    "too large a sum of a row's number": (
        lambda w: w.sum(w.add(w.x, w.s)),
        lambda w: w.add(w.sum(w.x), w.mul(48.0, w.s)),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str) -> None:
    one, other = EQUAL[name]
    for found in (verdict(one, other), verdict(other, one)):
        assert found.passed, found.reason


def test_a_maximum_that_no_draw_of_all_seeds_shows_is_drawn_again() -> None:
    """With this seed the second place is the largest of a tile's only row in none of the first 32 seeds."""
    found = verdict(*EQUAL["the largest of a shifted row"], seed=242991952826292)
    assert found.passed, found.reason


@pytest.mark.parametrize("name", FEWER_ROOTS)
def test_equal_where_the_program_has_a_number(name: str) -> None:
    found = verdict(*FEWER_ROOTS[name])
    assert found.passed, found.reason


@pytest.mark.parametrize("name", UNEQUAL)
def test_unequal(name: str) -> None:
    one, other = UNEQUAL[name]
    assert not verdict(one, other).passed


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_constant_that_is_no_number_has_no_meaning(value: float) -> None:
    found = verdict(lambda w: w.mul(w.x, 2.0), lambda w: w.mul(w.x, value))
    assert not found.passed
    assert "no number" in (found.reason or "")


@pytest.mark.parametrize("name", ["a fifth, five times", "three tenths", "variance"])
def test_what_has_a_bound_still_has_one(name: str) -> None:
    found = verdict(*EQUAL[name])
    assert found.lax
    assert found.bound is not None
    assert found.bound <= 1e-9
