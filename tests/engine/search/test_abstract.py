"""The normal form against the axioms it was made from (Mirage, Table 2)."""

from __future__ import annotations

import itertools
import random

import pytest
from mugraph.search.algebra.abstract import Algebra

from tests.engine.search.plain_expressions import Expr, random_expr


def test_the_relation_is_transitive_on_a_pool() -> None:
    rng, algebra = random.Random(2), Algebra()
    pool = list({random_expr(rng, 3).nf(algebra) for _ in range(150)})
    below = {a: {b for b in pool if algebra.sub(b, a)} for a in pool}
    assert sum(len(b) for b in below.values()) > 3 * len(pool)
    for a in pool:
        for b in below[a]:
            assert below[b] <= below[a], (algebra.text(b), algebra.text(a))


def _sum(n: int, e: Expr) -> Expr:
    return Expr("sum", (e,), n)


X, Y, Z = Expr("x"), Expr("y"), Expr("z")


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (Expr("add", (X, Y)), Expr("add", (Expr("mul", (X, Z)), Expr("mul", (Y, Z)))), True),  # the paper's example
        (Expr("mul", (X, Y)), Expr("add", (Expr("mul", (X, Z)), Expr("mul", (Y, Z)))), False),
        (_sum(2, X), _sum(4, X), True),
        (_sum(3, X), _sum(4, X), False),
        (Expr("div", (X, Y)), Expr("div", (X, _sum(2, Y))), False),  # the quotient would be a bare 2
        (Expr("sqrt", (X,)), Expr("sqrt", (_sum(2, X),)), False),
        (Expr("add", (X, Y)), Expr("add", (_sum(2, X), _sum(3, Y))), False),
        (Expr("add", (X, X)), _sum(2, X), False),
        (Expr("div", (X, Expr("div", (Y, Z)))), Expr("div", (Expr("mul", (X, Z)), Y)), False),
        (X, Expr("silu", (Expr("exp", (X,)),)), True),
        (Expr("exp", (X,)), Expr("exp", (Expr("add", (X, Y)),)), True),
        (Y, Expr("div", (X, Expr("sqrt", (Y,)))), True),
    ],
)
def test_corner_cases(part: Expr, whole: Expr, expected: bool) -> None:
    algebra = Algebra()
    assert algebra.sub(part.nf(algebra), whole.nf(algebra)) is expected


def test_equal_constants_are_one_atom_and_functions_are_told_apart() -> None:
    algebra = Algebra()
    x = algebra.atom("x")
    assert algebra.atom(0.5) == algebra.atom(0.5) != algebra.atom(0.25)
    assert algebra.unary("silu", x) == algebra.unary("silu", x) != algebra.unary("relu", x)
    assert algebra.sub(x, algebra.unary("relu", algebra.mul(x, x)))
    assert not algebra.sub(algebra.unary("silu", x), algebra.unary("relu", x))


def test_text_names_what_it_is_made_of() -> None:
    algebra = Algebra()
    x, y = algebra.atom("x"), algebra.atom("y")
    text = algebra.text(algebra.div(algebra.sum(6, algebra.mul(x, x)), algebra.sqrt(algebra.unary("silu", y))))
    assert text == "Σ6·x·x / (sqrt(silu(y)))"


def test_products_distribute_whatever_the_order() -> None:
    algebra = Algebra()
    atoms = [algebra.atom(name) for name in "abc"]
    results = set()
    for p, q, r in itertools.permutations(atoms):
        results.add(algebra.mul(algebra.add(p, q), r))
    assert len(results) == 3


@pytest.mark.parametrize("many", [3, 1200])
def test_long_sums_are_divided(many: int) -> None:
    """Also those whose first try for a term leads nowhere."""
    algebra = Algebra()
    x, y, z = (algebra.atom(name) for name in "xyz")
    both, total = algebra.add(y, z), algebra.atom("a0")
    for number in range(1, many):
        total = algebra.add(total, algebra.atom(f"a{number}"))
    whole = algebra.div(x, algebra.mul(both, total))
    assert algebra.sub(algebra.div(x, both), whole)
    assert algebra.sub(algebra.div(x, total), whole)
    assert not algebra.sub(algebra.div(x, algebra.add(both, algebra.atom("a0"))), whole)
    squares = algebra.mul(algebra.add(y, y), algebra.add(both, y))  # (2y)(2y + z)
    assert algebra.sub(algebra.div(x, algebra.add(both, y)), algebra.div(x, squares))
