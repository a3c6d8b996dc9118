"""What was proved before is not asked again: of the kernels of a range the same follows where others are launched up to
some sizes, and where one of several schedules is.

A proof is of integers, whatever they are called: what follows from some formulas follows from more of them, and under
other names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mugraph.triton_text.ranges.formulas import All, AtLeastZero, Formula, Not, Some, Zero
from mugraph.triton_text.ranges.poly import Poly

_MOST = 4096
"""Claims that are kept."""


@dataclass
class Proved:
    """Claims, each with the formulas that it was proved from."""

    _from: dict[Formula, list[frozenset[Formula]]] = field(default_factory=dict[Formula, list[frozenset[Formula]]])

    def has(self, known: Sequence[Formula], claim: Formula) -> bool:
        own, plain = _with_plain_names(known, claim)
        return any(of <= own for of in self._from.get(plain, ()))

    def add(self, known: Sequence[Formula], claim: Formula) -> None:
        own, plain = _with_plain_names(known, claim)
        if len(self._from) >= _MOST:
            self._from.clear()
        self._from.setdefault(plain, []).append(own)


def _with_plain_names(known: Sequence[Formula], claim: Formula) -> tuple[frozenset[Formula], Formula]:
    """Numbers that are called alike but for primes, as a reading of a text calls them apart, are counted."""
    alike: dict[str, list[str]] = {}
    for name in sorted({name for one in (*known, claim) for name in one.atoms}, key=lambda name: (len(name), name)):
        alike.setdefault(name.replace("'", ""), []).append(name)
    names = {
        own: plain if len(group) == 1 else f"{plain}#{at}"
        for plain, group in alike.items()
        for at, own in enumerate(group)
    }
    changed = {own: plain for own, plain in names.items() if own != plain}
    return frozenset(_renamed(one, changed) for one in known), _renamed(claim, changed)


def _renamed(formula: Formula, names: Mapping[str, str]) -> Formula:
    if formula.atoms.isdisjoint(names):
        return formula
    match formula:
        case AtLeastZero(poly):
            return AtLeastZero(_poly(poly, names))
        case Zero(poly):
            return Zero(_poly(poly, names))
        case All(parts):
            return All(_all(parts, names))
        case Some(parts):
            return Some(_all(parts, names))
        case Not(part):
            return Not(_renamed(part, names))


def _all(parts: Iterable[Formula], names: Mapping[str, str]) -> tuple[Formula, ...]:
    return tuple(_renamed(part, names) for part in parts)


def _poly(poly: Poly, names: Mapping[str, str]) -> Poly:
    return Poly.of({tuple(sorted(names.get(one, one) for one in of)): factor for of, factor in poly.terms})
