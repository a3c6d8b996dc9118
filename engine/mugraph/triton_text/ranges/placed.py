"""An access as what is to be proved of it: an index of each axis, and the numbers that it varies with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mugraph.triton_text.ranges.accesses import Access, Launch
from mugraph.triton_text.ranges.atoms import Atoms
from mugraph.triton_text.ranges.formulas import Formula, at_most, every, parts_of, replaced
from mugraph.triton_text.ranges.layouts import taken_apart
from mugraph.triton_text.ranges.poly import ZERO, Poly, atom, number
from mugraph.triton_text.ranges.values import Along, Lanes
from mugraph.triton_text.refusals import Unreadable, Wrong


@dataclass(frozen=True)
class Placed:
    """
    index:   of each axis
    holds:   what has to hold for it to happen: its mask, and the branches that it is in
    blocks, loops, lanes: numbers that tell one time that it happens from another
    """

    access: Access
    index: Mapping[str, Poly]
    holds: tuple[Formula, ...]
    blocks: tuple[str, ...]
    loops: tuple[str, ...]
    lanes: tuple[str, ...]

    @property
    def axes(self) -> tuple[Along, ...]:
        return self.access.axes

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.blocks, *self.loops, *self.lanes)

    @property
    def atoms(self) -> frozenset[str]:
        found = every(self.holds).atoms.union(self.variables)
        return found.union(*(index.atoms for index in self.index.values()))


def placed_all(launch: Launch, atoms: Atoms, largest: Mapping[str, int]) -> list[Placed]:
    """All accesses of a launch: first those by whose strides each index is told."""
    told = [not any(axis.is_of_another_length for axis in access.axes) for access in launch.accesses]
    known: dict[str, list[Poly]] = {}
    found: dict[int, Placed] = {}
    for at in sorted(range(len(told)), key=lambda at: not told[at]):
        found[at] = one = placed(launch.accesses[at], launch, atoms, largest, known)
        for axis in one.axes if told[at] else ():
            known.setdefault(axis.axis, []).append(one.index[axis.axis] + axis.pad)
    return [found[at] for at in range(len(told))]


def placed(
    access: Access, launch: Launch, atoms: Atoms, largest: Mapping[str, int], known: Mapping[str, Sequence[Poly]]
) -> Placed:
    equal, lanes = one_lane(access.lanes, atoms)
    offset = atoms.normal(access.offset.replaced(equal))
    index = taken_apart(offset, access.axes, largest, known)
    if index is None:
        raise Unreadable(f"no element of {access.memory.name} is told by the address {offset}", access.place.line)
    holds = every((access.mask, *access.place.ways))
    parts = parts_of(atoms.normal_formula(replaced(holds, equal)))
    blocks = leaves(launch.blocks, atoms)
    return Placed(access, index, parts, blocks, access.place.loops, lanes)


def leaves(values: Iterable[Poly], atoms: Atoms) -> tuple[str, ...]:
    """The numbers that these are made of, sizes aside."""
    names = (name for value in values for name in atoms.normal(value).atoms)
    return tuple(sorted(name for name in names if atoms.known[name].sort in ("block", "lane")))


def one_lane(lanes: Lanes, atoms: Atoms) -> tuple[dict[str, Poly], tuple[str, ...]]:
    """What runs along one dimension of a tile is one number."""
    equal: dict[str, Poly] = {}
    found: list[str] = []
    for along in lanes:
        first, *others = sorted(along) or [""]
        if others and any(atoms.normal(atom(one)) != atom(one) for one in (first, *others)):
            raise Unreadable("two kinds of tl.arange run along one dimension of a tile")
        equal |= {other: atom(first) for other in others}
        found += leaves([atom(first)], atoms) if first else ()
    return equal, tuple(found)


def check_lanes(one: Placed) -> None:
    """Is every lane of what is stored another element? Raises Wrong."""
    for size, along in zip(one.access.shape, one.access.lanes, strict=True):
        if size > 1 and not along:
            reason = f"several lanes write one element of {one.access.memory.name}"
            raise Wrong("order", reason, one.access.place.line)


def witness(
    index: Mapping[str, Poly], wanted: Mapping[str, Poly], variables: Sequence[str], atoms: Atoms
) -> dict[str, Poly]:
    """Which numbers lead to the wanted indices, if any do: those with the largest factors first, by division."""
    found: dict[str, Poly] = {}
    for axis, poly in index.items():
        if axis not in wanted:
            continue
        rest = wanted[axis]
        own: list[tuple[int, str]] = []
        for monomial, factor in poly.terms:
            if len(monomial) == 1 and monomial[0] in variables and monomial[0] not in found and factor > 0:
                own.append((factor, monomial[0]))
            else:
                rest = rest - Poly.of({monomial: factor})
        rest = rest.replaced(found)
        for factor, name in sorted(own, reverse=True):
            if factor == 1 and name == sorted(own, reverse=True)[-1][1]:
                found[name] = rest
                continue
            made = atoms.made(f"{name} for {axis}", "derived", ())
            value = atom(made)
            below, above = rest - number(factor) * value, number(factor - 1)
            atoms.define(made, (at_most(ZERO, below), at_most(below, above)))
            found[name] = value
            rest = below
    return {name: found.get(name, ZERO) for name in variables}
