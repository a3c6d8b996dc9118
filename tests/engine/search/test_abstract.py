"""The normal form against the axioms it was made from (Mirage, Table 2)."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
import z3
from mugraph.search.abstract import NF, Algebra


@dataclass(frozen=True)
class Expr:
    """A plain expression tree: what the axioms speak about."""

    fn: str
    args: tuple[Expr, ...] = ()
    n: int = 0

    def nf(self, algebra: Algebra) -> NF:
        parts = [arg.nf(algebra) for arg in self.args]
        match self.fn:
            case "add" | "mul" | "div":
                return getattr(algebra, self.fn)(*parts)
            case "sum":
                return algebra.sum(self.n, parts[0])
            case "sqrt" | "exp":
                return getattr(algebra, self.fn)(parts[0])
            case "silu":
                return algebra.unary("silu", parts[0])
            case name:
                return algebra.atom(name)

    def subterms(self) -> list[Expr]:
        return [self, *(t for arg in self.args for t in arg.subterms())]


def random_expr(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.15:
        return Expr(rng.choice("xyz"))
    fn = rng.choice(["add", "mul", "mul", "div", "sum", "sqrt", "exp", "silu"])
    if fn in ("add", "mul", "div"):
        return Expr(fn, (random_expr(rng, depth - 1), random_expr(rng, depth - 1)))
    return Expr(fn, (random_expr(rng, depth - 1),), rng.choice([2, 3, 4]) if fn == "sum" else 0)


def rewrites(e: Expr) -> list[Expr]:
    """Every expression one instance of A_eq away, at the root."""
    found: list[Expr] = []
    match e:
        case Expr("add" | "mul" as fn, (a, b)):
            found.append(Expr(fn, (b, a)))
            if b.fn == fn:
                found.append(Expr(fn, (Expr(fn, (a, b.args[0])), b.args[1])))
            if fn == "mul" and a.fn == "add":
                found.append(Expr("add", (Expr("mul", (a.args[0], b)), Expr("mul", (a.args[1], b)))))
            if fn == "mul" and b.fn == "div":
                found.append(Expr("div", (Expr("mul", (a, b.args[0])), b.args[1])))
            if fn == "mul" and a.fn == "sum":
                found.append(Expr("sum", (Expr("mul", (a.args[0], b)),), a.n))
            if fn == "mul" and a.fn == b.fn == "sqrt":
                found.append(Expr("sqrt", (Expr("mul", (a.args[0], b.args[0])),)))
            if fn == "mul" and a.fn == b.fn == "exp":
                found.append(Expr("exp", (Expr("add", (a.args[0], b.args[0])),)))
        case Expr("div", (a, b)):
            if a.fn == "add":
                found.append(Expr("add", (Expr("div", (a.args[0], b)), Expr("div", (a.args[1], b)))))
            if a.fn == "div":
                found.append(Expr("div", (a.args[0], Expr("mul", (a.args[1], b)))))
            if a.fn == "sum":
                found.append(Expr("sum", (Expr("div", (a.args[0], b)),), a.n))
        case Expr("sum", (a,), n):
            if a.fn == "sum":
                found.append(Expr("sum", a.args, n * a.n))
            if a.fn == "add":
                found.append(Expr("add", (Expr("sum", (a.args[0],), n), Expr("sum", (a.args[1],), n))))
        case _:
            pass
    return found


def rewrite_somewhere(rng: random.Random, e: Expr) -> Expr:
    here = rewrites(e)
    if here and (not e.args or rng.random() < 0.4):
        return rng.choice(here)
    if not e.args:
        return e
    i = rng.randrange(len(e.args))
    args = tuple(rewrite_somewhere(rng, arg) if j == i else arg for j, arg in enumerate(e.args))
    return Expr(e.fn, args, e.n)


def test_rewritten_expressions_share_the_normal_form_and_keep_their_subterms() -> None:
    rng, algebra = random.Random(1), Algebra()
    changed = 0
    for _ in range(3000):
        e = random_expr(rng, 4)
        other = e
        for _ in range(4):
            other = rewrite_somewhere(rng, other)
        changed += other != e
        assert e.nf(algebra) == other.nf(algebra), (e, other)
        # A_sub: a subterm of either is a subexpression of both.
        term = rng.choice([*e.subterms(), *other.subterms()])
        assert algebra.sub(term.nf(algebra), e.nf(algebra)), (term, e)
    assert changed > 1000


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


def test_agrees_with_z3_on_what_the_axioms_entail() -> None:
    """z3 proves entailment only (it cannot refute here), so: whatever it proves must hold in the normal form."""
    term = z3.DeclareSort("E")
    integer = z3.IntSort()
    add, mul, div = (z3.Function(n, term, term, term) for n in ("add", "mul", "div"))
    exp, sqrt, silu = (z3.Function(n, term, term) for n in ("exp", "sqrt", "silu"))
    total = z3.Function("sum", integer, term, term)
    sub = z3.Function("sub", term, term, z3.BoolSort())
    x, y, z = z3.Consts("x y z", term)
    i, j = z3.Ints("i j")
    equations = [
        (add(x, y), add(y, x)), (mul(x, y), mul(y, x)), (add(x, add(y, z)), add(add(x, y), z)),
        (mul(x, mul(y, z)), mul(mul(x, y), z)), (add(mul(x, z), mul(y, z)), mul(add(x, y), z)),
        (add(div(x, z), div(y, z)), div(add(x, y), z)), (mul(x, div(y, z)), div(mul(x, y), z)),
        (div(div(x, y), z), div(x, mul(y, z))), (mul(sqrt(x), sqrt(y)), sqrt(mul(x, y))),
        (mul(exp(x), exp(y)), exp(add(x, y))), (total(i, total(j, x)), total(i * j, x)),
        (total(i, add(x, y)), add(total(i, x), total(i, y))), (total(i, mul(x, y)), mul(total(i, x), y)),
        (total(i, div(x, y)), div(total(i, x), y)),
    ]  # fmt: skip
    facts = [sub(x, x), sub(x, exp(x)), sub(x, sqrt(x)), sub(x, silu(x)), sub(x, total(i, x))]
    facts += [sub(x, add(x, y)), sub(x, mul(x, y)), sub(x, div(x, y)), sub(y, div(x, y))]
    axioms = [z3.ForAll(list(_free(a, (x, y, z, i, j))), a == b) for a, b in equations]
    axioms += [z3.ForAll(list(_free(f, (x, y, z, i, j))), f) for f in facts]
    axioms.append(z3.ForAll([x, y, z], z3.Implies(z3.And(sub(x, y), sub(y, z)), sub(x, z))))
    functions = {"add": add, "mul": mul, "div": div, "exp": exp, "sqrt": sqrt, "silu": silu}

    def translate(e: Expr) -> z3.ExprRef:
        if e.fn == "sum":
            return total(z3.IntVal(e.n), translate(e.args[0]))
        if e.fn in functions:
            return functions[e.fn](*map(translate, e.args))
        return z3.Const(f"leaf_{e.fn}", term)

    solver = z3.Solver()
    solver.set("mbqi", False)
    solver.set("auto_config", False)
    solver.set("timeout", 200)
    solver.add(axioms)
    rng, algebra = random.Random(3), Algebra()
    proved = 0
    for _ in range(30):
        whole = random_expr(rng, 3)
        part = rng.choice(
            [rewrite_somewhere(rng, whole).subterms()[-1], random_expr(rng, 1), rng.choice(whole.subterms())]
        )
        solver.push()
        solver.add(z3.Not(sub(translate(part), translate(whole))))
        entailed = solver.check() == z3.unsat
        solver.pop()
        if entailed:
            proved += 1
            assert algebra.sub(part.nf(algebra), whole.nf(algebra)), (part, whole)
    assert proved >= 10


def _free(e: z3.ExprRef, variables: tuple[z3.ExprRef, ...]) -> list[z3.ExprRef]:
    """The variables that occur in an expression."""
    found: set[int] = set()

    def walk(node: z3.ExprRef) -> None:
        found.add(node.get_id())
        for child in node.children():
            walk(child)

    walk(e)
    return [v for v in variables if v.get_id() in found]


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
