"""Plain expression trees, what the axioms speak about, and rewriting by them (Mirage, Table 2)."""

from __future__ import annotations

import random
from dataclasses import dataclass

from mugraph.search.algebra.abstract import NF, Algebra


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
