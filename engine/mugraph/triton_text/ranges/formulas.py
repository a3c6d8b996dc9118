"""Formulas over unknown integers: comparisons, and combinations of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from mugraph.triton_text.ranges.poly import ONE, Poly


@dataclass(frozen=True)
class AtLeastZero:
    poly: Poly

    @property
    def atoms(self) -> frozenset[str]:
        return self.poly.atoms


@dataclass(frozen=True)
class Zero:
    poly: Poly

    @property
    def atoms(self) -> frozenset[str]:
        return self.poly.atoms


@dataclass(frozen=True)
class All:
    parts: tuple[Formula, ...]

    @cached_property
    def atoms(self) -> frozenset[str]:
        return frozenset(atom for part in self.parts for atom in part.atoms)


@dataclass(frozen=True)
class Some:
    parts: tuple[Formula, ...]

    @cached_property
    def atoms(self) -> frozenset[str]:
        return frozenset(atom for part in self.parts for atom in part.atoms)


@dataclass(frozen=True)
class Not:
    part: Formula

    @property
    def atoms(self) -> frozenset[str]:
        return self.part.atoms


Formula = AtLeastZero | Zero | All | Some | Not
TRUE, FALSE = All(()), Some(())


def less(a: Poly, b: Poly) -> Formula:
    return _folded(AtLeastZero(b - a - ONE))


def at_most(a: Poly, b: Poly) -> Formula:
    return _folded(AtLeastZero(b - a))


def same(a: Poly, b: Poly) -> Formula:
    return _folded(Zero(a - b))


def _folded(formula: AtLeastZero | Zero) -> Formula:
    known = formula.poly.constant
    if known is None:
        return formula
    return TRUE if (known >= 0 if isinstance(formula, AtLeastZero) else known == 0) else FALSE


def every(parts: Iterable[Formula]) -> Formula:
    """Flat, without what is known to hold."""
    found: dict[Formula, None] = {}
    for part in parts:
        if part == FALSE:
            return FALSE
        found |= dict.fromkeys(part.parts if isinstance(part, All) else (part,))
    return next(iter(found)) if len(found) == 1 else All(tuple(found))


def some(parts: Iterable[Formula]) -> Formula:
    kept = tuple(dict.fromkeys(part for part in parts if part != FALSE))
    if any(part == TRUE for part in kept):
        return TRUE
    return kept[0] if len(kept) == 1 else Some(kept)


def opposite(part: Formula) -> Formula:
    match part:
        case AtLeastZero(poly):
            return _folded(AtLeastZero(-poly - ONE))
        case Not(inner):
            return inner
        case All(()):
            return FALSE
        case Some(()):
            return TRUE
        case _:
            return Not(part)


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """All of which have to hold."""
    return formula.parts if isinstance(formula, All) else (formula,)


def replaced(formula: Formula, values: Mapping[str, Poly]) -> Formula:
    if not formula.atoms & values.keys():
        return formula
    match formula:
        case AtLeastZero(poly):
            return _folded(AtLeastZero(poly.replaced(values)))
        case Zero(poly):
            return _folded(Zero(poly.replaced(values)))
        case All(parts):
            return every(replaced(part, values) for part in parts)
        case Some(parts):
            return some(replaced(part, values) for part in parts)
        case Not(part):
            return opposite(replaced(part, values))
