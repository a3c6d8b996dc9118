"""The axioms themselves, for z3 (Mirage, Table 2)."""

from __future__ import annotations

import z3

from tests.engine.search.plain_expressions import Expr


class Axioms:
    """A_eq and A_sub, asked whether they entail that one expression is a subexpression of another.

    z3 proves entailment only: without a model of the axioms it cannot refute, and gives up.
    effort: what it may spend on one question, in its own unit, so that a busy machine gets the same answers
    """

    def __init__(self, effort: int) -> None:
        self._term = term = z3.DeclareSort("E")
        integer = z3.IntSort()
        add, mul, div = (z3.Function(n, term, term, term) for n in ("add", "mul", "div"))
        exp, sqrt, silu = (z3.Function(n, term, term) for n in ("exp", "sqrt", "silu"))
        self._total = total = z3.Function("sum", integer, term, term)
        self._sub = sub = z3.Function("sub", term, term, z3.BoolSort())
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
        self._functions = {"add": add, "mul": mul, "div": div, "exp": exp, "sqrt": sqrt, "silu": silu}

        self._solver = solver = z3.Solver()
        solver.set("mbqi", False)
        solver.set("auto_config", False)
        solver.set("rlimit", effort)
        solver.add(axioms)

    def entail(self, part: Expr, whole: Expr) -> bool | None:
        """True: proved. None: z3 does not know. False, a model in which it does not hold, is possible in principle."""
        self._solver.push()
        self._solver.add(z3.Not(self._sub(self._translated(part), self._translated(whole))))
        answer = self._solver.check()
        self._solver.pop()
        return None if answer == z3.unknown else answer == z3.unsat

    def _translated(self, e: Expr) -> z3.ExprRef:
        if e.fn == "sum":
            return self._total(z3.IntVal(e.n), self._translated(e.args[0]))
        if e.fn in self._functions:
            return self._functions[e.fn](*map(self._translated, e.args))
        return z3.Const(f"leaf_{e.fn}", self._term)


def _free(e: z3.ExprRef, variables: tuple[z3.ExprRef, ...]) -> list[z3.ExprRef]:
    """The variables that occur in an expression."""
    found: set[int] = set()

    def walk(node: z3.ExprRef) -> None:
        found.add(node.get_id())
        for child in node.children():
            walk(child)

    walk(e)
    return [v for v in variables if v.get_id() in found]
