"""Exact expressions: equal ones are one normal form, and what is not equal never is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.verification.constants import read
from mugraph.verification.expressions import Expression, Expressions
from mugraph.verification.polynomials import Unproved, Work

Node = tuple[Any, ...]
X, Y, Z = ("x",), ("y",), ("z",)
ZERO, ONE = ("const", 0.0), ("const", 1.0)


def mul(*of: Node) -> Node:
    return of[0] if len(of) == 1 else ("mul", of[0], mul(*of[1:]))


def times(number: float, a: Node) -> Node:
    return ("mul", ("const", number), a)


def minus(a: Node, b: Node) -> Node:
    return ("add", a, times(-1.0, b))


def relu(a: Node) -> Node:
    return ("max", a, ZERO)


def square(a: Node) -> Node:
    return ("mul", a, a)


def exact(node: Node, on: Expressions, inputs: Mapping[str, Expression]) -> Expression:
    match node:
        case ("const", value):
            return on.constant(read(value))
        case ("div", a, b):
            return on.mul(exact(a, on, inputs), on.inverse(exact(b, on, inputs)))
        case ("max", *of):
            return on.maximum([exact(a, on, inputs) for a in of])
        case (("sin" | "atan2") as name, *of):
            return on.opaque(name, *(exact(a, on, inputs) for a in of))
        case (name,):
            return inputs[name]
        case (name, *of):
            return getattr(on, name)(*(exact(a, on, inputs) for a in of))
        case _:
            raise ValueError(node)


FLOATS: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": max,
    "where": lambda a, b: b if a else 0.0,
} | {name: getattr(math, name) for name in ("exp", "log", "sqrt", "erf", "sin", "atan2")}


def real(node: Node, inputs: Mapping[str, float]) -> float:
    """Raises ArithmeticError and ValueError where it is not defined."""
    match node:
        case ("const", value):
            return value
        case (name,):
            return inputs[name]
        case (name, *of):
            return FLOATS[name](*(real(a, inputs) for a in of))
        case _:
            raise ValueError(node)


def are_equal(one: Node, other: Node) -> bool:
    on = Expressions(Work(200_000, 2_000))
    inputs = {name: on.variable() for name in "xyz"}
    return on.equal(exact(one, on, inputs), exact(other, on, inputs))


EQUAL: list[tuple[Node, Node]] = [
    (square(("add", X, Y)), ("add", square(X), ("add", times(2.0, mul(X, Y)), square(Y)))),
    (("div", minus(square(X), square(Y)), minus(X, Y)), ("add", X, Y)),
    (("add", ("div", X, Y), ("div", Z, Y)), ("div", ("add", X, Z), Y)),
    (("div", ONE, ("add", ONE, ("div", X, Y))), ("div", Y, ("add", X, Y))),
    (times(0.1, X), ("div", X, ("const", 10.0))),
    (square(times(1 / math.sqrt(6), X)), ("div", square(X), ("const", 6.0))),
    (("exp", minus(X, Y)), ("div", ("exp", X), ("exp", Y))),
    (("exp", ("add", X, X)), square(("exp", X))),
    (("exp", ("exp", ("add", X, ZERO))), ("exp", ("exp", X))),
    (("sqrt", mul(("const", 4.0), X, Y)), times(2.0, mul(("sqrt", X), ("sqrt", Y)))),
    (("sqrt", ("exp", X)), ("exp", times(0.5, X))),
    (("sqrt", ("div", X, ("add", X, Y))), ("div", ("sqrt", X), ("sqrt", ("add", X, Y)))),
    (("log", mul(("exp", X), ("exp", Y))), ("add", X, Y)),
    (relu(times(3.0, X)), times(3.0, relu(X))),
    (minus(relu(X), relu(times(-1.0, X))), X),
    (relu(relu(X)), relu(X)),
    (relu(("add", relu(X), square(Y))), ("add", relu(X), square(Y))),
    (("max", ("add", X, Z), ("add", Y, Z)), ("add", Z, ("max", X, Y))),
    (("max", X, ("max", Y, Z)), ("max", ("max", Z, X), ("max", Y, X))),
    (("max", times(2.0, X), times(2.0, Y), times(2.0, Z)), times(2.0, ("max", X, Y, Z))),
    (relu(mul(("exp", X), Y)), mul(("exp", X), relu(Y))),
    (relu(("div", Y, ("add", ONE, ("exp", X)))), ("div", relu(Y), ("add", ONE, ("exp", X)))),
    (("erf", minus(X, Y)), times(-1.0, ("erf", minus(Y, X)))),
    (("sin", ("div", mul(X, ("add", Y, Z)), ("add", Y, Z))), ("sin", X)),
    (("where", ONE, X), X),
    (("where", ZERO, X), ZERO),
]
DIFFERENT: list[tuple[Node, Node]] = [
    (("sqrt", square(X)), X),
    (relu(times(-3.0, X)), times(-3.0, relu(X))),
    (relu(mul(X, Y)), mul(X, relu(Y))),
    (relu(("div", Y, minus(ONE, ("exp", X)))), ("div", relu(Y), minus(ONE, ("exp", X)))),
    (relu(("add", X, Y)), ("add", relu(X), relu(Y))),
    (relu(minus(relu(X), square(Y))), minus(relu(X), square(Y))),
    (relu(mul(X, Y, Y, Y)), mul(X, Y, Y, Y)),
    (("max", X, Y), ("add", X, relu(minus(X, Y)))),
    (("max", ("const", -1.0), X), ("max", ZERO, X)),
    (("exp", mul(X, Y)), mul(("exp", X), ("exp", Y))),
    (("log", ("add", ("exp", X), ("exp", Y))), ("add", X, Y)),
    (("log", times(2.0, ("exp", X))), X),
    (("erf", times(-1.0, X)), ("erf", X)),
    (("sin", X), ("sin", times(-1.0, X))),
    (("atan2", X, Y), ("atan2", Y, X)),
    (("where", X, Y), Y),
    (times(1 / math.sqrt(6), X), times(1 / math.sqrt(7), X)),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_expressions_have_one_form(one: Node, other: Node) -> None:
    assert are_equal(one, other)
    assert are_equal(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_expressions_do_not(one: Node, other: Node) -> None:
    assert not are_equal(one, other)
    assert not are_equal(other, one)


NODES = st.recursive(
    st.sampled_from([X, Y, Z]) | st.sampled_from([0.0, 1.0, -1.0, 2.0, -0.5, 3.0]).map(lambda value: ("const", value)),
    lambda inner: (
        st.tuples(st.sampled_from(["add", "mul", "div", "max"]), inner, inner)
        | st.tuples(st.just("max"), inner, inner, inner)
        | st.tuples(st.sampled_from(["exp", "sqrt", "log", "erf"]), inner)
    ),
    max_leaves=8,
)


def steps(a: Node) -> list[Node]:
    """The node after one law, true or false; which of them hold is not said."""
    found: list[Node] = []
    match a:
        case ("max", b, c):
            found = [("add", c, relu(minus(b, c))), ("add", b, relu(minus(b, c))), ("max", c, b), ("add", b, c)]
            found += [times(0.5, ("max", times(2.0, b), times(2.0, c))), times(-1.0, ("max", minus(ZERO, b), c)), b]
            found += [mul(b, ("max", ONE, ("div", c, b)))]
        case ("mul", b, c):
            found = [("mul", c, b), ("sqrt", mul(b, b, c, c)), ("exp", ("add", ("log", b), ("log", c)))]
        case ("exp", ("add", b, c)):
            found = [mul(("exp", b), ("exp", c)), ("add", ("exp", b), ("exp", c))]
        case ("sqrt", b):
            found = [
                ("exp", times(0.5, ("log", b))),
                ("div", b, a),
                ("sqrt", minus(ZERO, b)),
                ("sqrt", ("max", b, ZERO)),
            ]
        case ("div", b, c):
            found = [("div", mul(b, X), mul(c, X)), ("div", ("add", b, X), ("add", c, X)), mul(b, ("div", ONE, c))]
        case ("erf", b):
            found = [times(-1.0, ("erf", times(-1.0, b))), ("erf", times(-1.0, b))]
        case _:
            found = [relu(a), minus(relu(a), relu(minus(ZERO, a))), ("log", ("exp", a)), ("sqrt", square(a))]
    return found


def rewritten(node: Node, rng: random.Random) -> Node:
    """A node of it after one step."""
    places = [i for i, part in enumerate(node) if isinstance(part, tuple)]
    if places and rng.random() < 0.6:
        place = rng.choice(places)
        return (*node[:place], rewritten(node[place], rng), *node[place + 1 :])
    return rng.choice(steps(node))


@settings(max_examples=600, deadline=None)
@given(NODES, st.integers(0, 2**32))
def test_what_is_shown_to_be_equal_is_equal_in_numbers(node: Node, seed: int) -> None:
    rng = random.Random(seed)
    other = node
    for _ in range(rng.randint(1, 3)):
        other = rewritten(other, rng)
    try:
        if not are_equal(node, other):
            return
    except Unproved:
        return
    for _ in range(40):
        inputs = {name: rng.choice([-1, 1]) * rng.uniform(0.1, 2.0) for name in "xyz"}
        try:
            one, two = real(node, inputs), real(other, inputs)
        except (ArithmeticError, ValueError):
            continue
        if max(abs(one), abs(two)) < 1e6:
            assert math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-6), (node, other, inputs)


def test_a_proof_that_takes_too_much_work_is_none() -> None:
    on = Expressions(Work(200_000, 100))
    total = on.total([on.variable() for _ in range(20)])
    with pytest.raises(Unproved, match="over 100 terms"):
        on.mul(total, total)
    on = Expressions(Work(1_000, 10_000))
    total = on.total([on.variable() for _ in range(20)])
    on.mul(total, total)
    on.mul(total, total)
    with pytest.raises(Unproved, match="too much work"):
        on.mul(total, total)


def test_nothing_is_divided_by_what_is_always_zero() -> None:
    on = Expressions(Work(1_000, 100))
    x = on.variable()
    with pytest.raises(Unproved, match="always 0"):
        on.inverse(on.add(x, on.negative(x)))
    assert on.equal(on.number(Fraction(1)), on.mul(x, on.inverse(x)))
