"""z3, asked whether something follows. It is imported when it is first asked: that takes a part of a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mugraph.triton_text.ranges.formulas import All, AtLeastZero, Formula, Not, Some, Zero, opposite
from mugraph.triton_text.ranges.poly import Poly
from mugraph.triton_text.ranges.proved import Proved

WAITED_MS = 2000
"""For one answer. What it does not find by then is not proved."""


@dataclass(frozen=True)
class Counterexample:
    values: Mapping[str, int]


@dataclass(frozen=True)
class Undecided:
    why: str


class Prover:
    """asked: questions that it was asked. proved: before, which it does not ask z3 again"""

    def __init__(self, waited_ms: int = WAITED_MS, proved: Proved | None = None) -> None:
        self._z3: Any = import_module("z3")
        # A context of its own: z3's common one is not for several threads.
        self._context: Any = self._z3.Context()
        self._waited_ms = waited_ms
        self._atoms: dict[str, Any] = {}
        self._written: dict[Formula, Any] = {}
        self._proved = proved or Proved()
        self.asked = 0

    def refuted(self, known: Iterable[Formula], claim: Formula) -> Counterexample | Undecided | None:
        """None if the claim follows from what is known."""
        formulas = list(known)
        if self._proved.has(formulas, claim):
            self.asked += 1
            return None
        found = self.model([*formulas, opposite(claim)])
        if found is None:
            self._proved.add(formulas, claim)
        return found

    def model(self, formulas: Sequence[Formula]) -> Counterexample | Undecided | None:
        """Numbers for which all of them hold; None if there are none."""
        self.asked += 1
        z3 = self._z3
        solver = z3.Solver(ctx=self._context)
        solver.set("timeout", self._waited_ms)
        for formula in formulas:
            solver.add(self._formula(formula))
        found = solver.check()
        if found == z3.unsat:
            return None
        if found != z3.sat:
            return Undecided(solver.reason_unknown())
        model = solver.model()
        names = frozenset(name for formula in formulas for name in formula.atoms)
        return Counterexample({name: model.eval(self._atom(name), True).as_long() for name in sorted(names)})

    def _formula(self, formula: Formula) -> Any:
        """Written for z3 once: a fact about a number is known wherever the number is."""
        found = self._written.get(formula)
        if found is None:
            found = self._written[formula] = self._as_z3(formula)
        return found

    def _as_z3(self, formula: Formula) -> Any:
        z3 = self._z3
        match formula:
            case AtLeastZero(poly):
                return self._poly(poly) >= 0
            case Zero(poly):
                return self._poly(poly) == 0
            case All(parts):
                return z3.And([z3.BoolVal(True, self._context), *map(self._formula, parts)])
            case Some(parts):
                return z3.Or([z3.BoolVal(False, self._context), *map(self._formula, parts)])
            case Not(part):
                return z3.Not(self._formula(part))

    def _poly(self, poly: Poly) -> Any:
        total = self._z3.IntVal(0, self._context)
        for monomial, factor in poly.terms:
            term = self._z3.IntVal(factor, self._context)
            for one in monomial:
                term = term * self._atom(one)
            total = total + term
        return total

    def _atom(self, name: str) -> Any:
        if name not in self._atoms:
            self._atoms[name] = self._z3.Int(name, self._context)
        return self._atoms[name]
