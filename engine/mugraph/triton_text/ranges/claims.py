"""What has to be true of a kernel's use of memory at every size, each claim a question for the prover.

- An access is inside of its tensor, along each axis.
- Of what a launch writes, every element is written exactly once.
- Along an axis whose size varies a kernel reads what it writes, or, where it adds up, every element exactly once; what
  a causal mask takes nothing of it need not read.
- A number that is read says which row of another tensor is read, no more.
- A mask that decides between numbers is the end of an axis, the one that the tensors have there, or a mask of the
  program, with its diagonal at every size.

An address that fits into 32 bits at the largest size does at each: inside of a tensor none is larger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mugraph.triton_text.ranges.accesses import Launch
from mugraph.triton_text.ranges.atoms import Atoms
from mugraph.triton_text.ranges.formulas import (
    AtLeastZero,
    Formula,
    at_most,
    every,
    less,
    opposite,
    parts_of,
    replaced,
    same,
    some,
)
from mugraph.triton_text.ranges.masks import Triangle
from mugraph.triton_text.ranges.numbers_read import check_numbers
from mugraph.triton_text.ranges.placed import Placed, check_lanes, one_lane, placed_all, witness
from mugraph.triton_text.ranges.poly import ZERO, Poly, atom
from mugraph.triton_text.ranges.prover import Counterexample, Prover, Undecided
from mugraph.triton_text.ranges.values import Along
from mugraph.triton_text.refusals import Refused, Unreadable, Wrong


class NotProved(Refused):
    """The prover has found neither a proof nor a counterexample in its time."""


@dataclass
class Claims:
    """
    known:   on the way through the launcher that is looked at
    largest: of each size
    masks:   of the program
    proved:  claims that were
    """

    atoms: Atoms
    prover: Prover
    known: Sequence[Formula]
    largest: Mapping[str, int]
    masks: Sequence[Triangle] = ()
    proved: int = 0
    _launch: Launch = field(init=False)
    _triangles: frozenset[Formula] = field(init=False)

    def check(self, launch: Launch) -> None:
        """Raises Wrong with a counterexample, NotProved and Unreadable."""
        self._launch = launch
        places = placed_all(launch, self.atoms, self.largest)
        for one in places:
            check_numbers(one, self.atoms, launch.kernel)
            self._inside(one)
        self._triangles = self._masked(places)
        stores = [one for one in places if one.access.what == "writes"]
        for memory in dict.fromkeys(one.access.memory for one in stores):
            self._written([one for one in stores if one.access.memory is memory])
        for one in places:
            if one.access.what == "reads":
                for axis in one.axes:
                    if axis.stride != ZERO and self._varies(axis.extent.atoms):
                        self._read(one, axis, stores)
        for choice in launch.choices:
            equal, _ = one_lane(choice.lanes, self.atoms)
            mask = self.atoms.normal_formula(replaced(choice.mask, equal))
            for part in parts_of(mask):
                self._chosen(part, places, choice.place.line)
        for poly, line in launch.numbers:
            if any(self.atoms.known[name].sort == "derived" for name in self.atoms.normal(poly).atoms):
                raise Unreadable(f"numbers are computed from {poly}", line)

    def _masked(self, places: Sequence[Placed]) -> frozenset[Formula]:
        """The program's masks, at the indices that the launch has of their axes."""
        indices: dict[str, set[Poly]] = {}
        for one in places:
            for axis in one.axes:
                indices.setdefault(axis.axis, set()).add(one.index[axis.axis] + axis.pad)
        return frozenset(formula for mask in self.masks for formula in mask.formulas(indices))

    def _varies(self, names: Iterable[str]) -> bool:
        return any(self.atoms.known[name].sort == "size" for name in self.atoms.varying(names))

    # --- claims

    def _inside(self, one: Placed) -> None:
        claims = {
            axis.axis: every((at_most(ZERO, one.index[axis.axis]), less(one.index[axis.axis], axis.extent)))
            for axis in one.axes
        }
        self._prove([*one.holds, *self._facts(one)], every(claims.values()), one, "bounds", _outside(one))

    def _written(self, stores: Sequence[Placed]) -> None:
        """Every element, by one lane of one block, in one pass of its loops."""
        for one in stores:
            check_lanes(one)
            self._once(one, one.variables, one.index, "order", f"an element of {one.access.memory.name} twice")
        for at, one in enumerate(stores):
            for other in stores[at + 1 :]:
                values = self._copies(other, other.variables)
                theirs = self._after(other, values)
                equal = [same(one.index[axis], other.index[axis].replaced(values)) for axis in one.index]
                known = [*one.holds, *self._facts(one), *theirs, *equal]
                self._prove(known, some(()), one, "order", f"an element of {one.access.memory.name} twice")
        axes = stores[0].axes
        wanted = {axis.axis: self.atoms.below(f"index of {axis.axis}", "index", axis.extent) for axis in axes}
        ways = [self._led(one, wanted, one.variables) for one in stores]
        known = [*every(ways).atoms, *(name for index in wanted.values() for name in index.atoms)]
        reason = f"not every element of {stores[0].access.memory.name}"
        self._prove(self.atoms.facts(known), some(ways), stores[0], "unwritten", reason, wanted)

    def _read(self, one: Placed, axis: Along, stores: Sequence[Placed]) -> None:
        """Along an axis whose size varies."""
        own = one.index[axis.axis]
        written = [store.index[axis.axis] for store in stores if axis.axis in store.index]
        if own + axis.pad in written:
            self._unhidden(one, [store for store in stores if store.index.get(axis.axis) == own + axis.pad])
            self.proved += 1
            return
        name = f"{one.access.memory.name} along {axis.axis}"
        if written and own.atoms & set(one.blocks):
            raise Wrong("order", f"{self._launch.kernel} reads {name} elsewhere than it writes", one.access.place.line)
        begun = frozenset(name for loop in one.loops if loop in own.atoms for name in self._begun(loop))
        try:
            self._summed(one, axis, own, self.atoms.varying(own.atoms), name)
        except Refused:
            if not begun:
                raise
            # Where a block's loop begins, as that over a window does, is given: the sum is that of the block.
            self._summed(one, axis, own, self.atoms.varying(own.atoms - begun), name)

    def _unhidden(self, one: Placed, stores: Sequence[Placed]) -> None:
        """Of what a lane reads for the element that it writes, does its mask hide nothing that the tensor has?"""
        inside = [
            part
            for axis in one.axes
            for part in (at_most(ZERO, one.index[axis.axis]), less(one.index[axis.axis], axis.extent))
        ]
        for store in stores:
            known = [*store.holds, *inside]
            left = [part for part in one.holds if part not in known and part not in self._triangles]
            if left:
                reason = f"not every element of {one.access.memory.name} that is written for"
                self._prove([*known, *self._facts(one), *self._facts(store)], every(left), one, "order", reason)

    def _summed(self, one: Placed, axis: Along, own: Poly, varying: Collection[str], name: str) -> None:
        """Every element once. varying: numbers that the index is made of, of which those vary that are no sizes"""
        variables = [variable for variable in one.variables if variable in varying]
        self._once(one, variables, {axis.axis: own}, "order", f"an element of {name} twice")
        before, behind = (_skipped(places) for places in (-axis.pad, axis.rest))
        read = self.atoms.below(f"index of {axis.axis}", "index", axis.extent - before - behind)
        wanted = {axis.axis: read + before}
        led = some((self._led(one, wanted, variables), *self._left_out(own, wanted[axis.axis], variables)))
        others = [part for part in one.holds if not self.atoms.varying(part.atoms) & set(variables)]
        known = self.atoms.facts([*led.atoms, *wanted[axis.axis].atoms, *every(others).atoms])
        self._prove([*others, *known], led, one, "unwritten", f"not every element of {name}", wanted)

    def _left_out(self, own: Poly, wanted: Poly, variables: Sequence[str]) -> list[Formula]:
        """What masks take nothing of need not be read: as the keys after a block's last query, or before a window of
        its first.

        It holds of an index if every row of the block has a zero of one of the masks there, and all that is masked is
        masked by these."""
        every_choice: set[frozenset[Formula]] = set()
        for choice in self._launch.choices:
            equal, _ = one_lane(choice.lanes, self.atoms)
            found: set[Formula] = set()
            for part in parts_of(self.atoms.normal_formula(replaced(choice.mask, equal))):
                if isinstance(part, AtLeastZero) and part.atoms & set(variables):
                    moved = self._moved(part.poly, own, wanted)
                    known = part in self._triangles or not self._varies(moved.atoms - wanted.atoms)
                    if not moved.atoms & set(variables) and known:
                        found.add(opposite(AtLeastZero(moved)))
            every_choice |= {frozenset(found)} if found else set()
        return list(*every_choice) if len(every_choice) == 1 else []

    @staticmethod
    def _moved(poly: Poly, own: Poly, wanted: Poly) -> Poly:
        """With another index in the place of one that is in it, once with either sign."""
        added, taken = poly + own, poly - own
        return added - wanted if len(added.atoms) <= len(taken.atoms) else taken + wanted

    def _once(self, one: Placed, variables: Sequence[str], index: Mapping[str, Poly], check: str, reason: str) -> None:
        """No other values of the variables lead to the same indices."""
        values = self._copies(one, variables)
        again = self._after(one, values)
        equal = [same(poly, poly.replaced(values)) for poly in index.values()]
        claim = every(same(atom(name), values[name]) for name in variables)
        self._prove([*one.holds, *self._facts(one), *again, *equal], claim, one, check, reason)

    def _begun(self, loop: str) -> list[str]:
        """What a loop begins with that is a smallest or a largest number, or made of one."""
        start = self.atoms.normal(self.atoms.starts[loop])
        return [name for name in start.atoms if self.atoms.known[name].sort == "derived"]

    def _led(self, one: Placed, wanted: Mapping[str, Poly], variables: Sequence[str]) -> Formula:
        """There are values of the variables that lead to the wanted indices: it holds of those that division finds."""
        found = witness(one.index, wanted, variables, self.atoms)
        values = self._derived(one, found)
        parts = [part for part in one.holds if self.atoms.varying(part.atoms) & set(variables)]
        ranges = [self.atoms.normal_formula(fact) for name in variables for fact in self.atoms.known[name].facts]
        equal = [same(one.index[axis].replaced(values), index) for axis, index in wanted.items()]
        return every([*(replaced(part, values) for part in (*parts, *ranges)), *equal])

    def _chosen(self, part: Formula, places: Sequence[Placed], line: int) -> None:
        """A mask that depends on a size, or on where along an axis of such a size an element is."""
        names = self.atoms.varying(part.atoms)
        along = {
            (axis.axis, one.index[axis.axis], end): one
            for one in places
            for axis in one.axes
            for end in (axis.extent, axis.extent - axis.rest)  # of the dimension, and of what runs over it
            if one.index[axis.axis].atoms & names and one.index[axis.axis].atoms - self._sizes(names)
        }
        if not self._varies(part.atoms) and not any(self._varies(extent.atoms) for _, _, extent in along):
            return
        if any(part == less(index, extent) for _, index, extent in along):
            self.proved += 1
            return
        if part in self._triangles:
            self.proved += 1
            return
        for (_, index, extent), one in along.items():
            end = less(index, extent)
            facts = self.atoms.facts({*part.atoms, *end.atoms, *one.access.place.loops})
            if all(self.prover.refuted([*self.known, *facts, a], b) is None for a, b in ((part, end), (end, part))):
                self.proved += 1
                return
        raise Wrong("values", f"{self._launch.kernel} tells numbers apart by what is not the end of an axis", line)

    # --- what is assumed

    def _sizes(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if self.atoms.known[name].sort == "size")

    def _facts(self, one: Placed) -> list[Formula]:
        return self.atoms.facts(one.atoms)

    def _copies(self, one: Placed, variables: Sequence[str]) -> dict[str, Poly]:
        """Other values of the variables, of which the same is known."""
        values = {name: atom(self.atoms.made(f"{name}*", self.atoms.known[name].sort, ())) for name in variables}
        values = self._derived(one, values)
        for name in variables:
            (copy,) = values[name].atoms
            facts = [self.atoms.normal_formula(fact) for fact in self.atoms.known[name].facts]
            self.atoms.define(copy, [replaced(fact, values) for fact in facts])
        return values

    def _derived(self, one: Placed, values: Mapping[str, Poly]) -> dict[str, Poly]:
        ranges = every(self._facts(one))
        return self.atoms.copied(values, {*one.atoms, *ranges.atoms})

    def _after(self, one: Placed, values: Mapping[str, Poly]) -> list[Formula]:
        holds = [replaced(part, values) for part in one.holds]
        names = {name for value in values.values() for name in value.atoms} | every(holds).atoms
        return [*holds, *self.atoms.facts(names)]

    def _prove(
        self,
        known: Iterable[Formula],
        claim: Formula,
        one: Placed,
        check: str,
        reason: str,
        wanted: Mapping[str, Poly] | None = None,
    ) -> None:
        assumed = [*self.known, *known]
        names = frozenset(name for formula in (*self.known, claim) for name in formula.atoms)
        found = self.prover.refuted(dict.fromkeys([*assumed, *self.atoms.facts(self._free(names))]), claim)
        line = one.access.place.line
        does = "reads" if one.access.what == "reads" else "writes"
        match found:
            case None:
                self.proved += 1
            case Undecided(why):
                raise NotProved(f"{self._launch.kernel} {does} {reason}, or not: not proved ({why})", line)
            case Counterexample(values):
                where = self._where(values, one, wanted or {})
                raise Wrong(check, f"{self._launch.kernel} {does} {reason}{where}", line, dict(values))

    def _free(self, names: Iterable[str]) -> list[str]:
        """Sizes, and what is derived of sizes alone."""
        return [name for name in names if not self.atoms.depends(name) - self._sizes(self.atoms.varying([name]))]

    def _where(self, values: Mapping[str, int], one: Placed, wanted: Mapping[str, Poly]) -> str:
        """In words: at which size, in which block and lane."""
        said = [f"{name} = {n}" for name, n in values.items() if self.atoms.known[name].sort == "size"]
        told = [f"{name} = {values[name]}" for name in one.variables if name in values]
        at = [f"{axis} {index.replaced({}) if index.atoms.isdisjoint(values) else values[min(index.atoms)]}"
              for axis, index in wanted.items() if index.atoms]  # fmt: skip
        places = ", ".join(at or told)
        return f" with {', '.join(said)}" + (f" ({places})" if places else "")


def _skipped(places: Poly) -> Poly:
    """Places that a window leaves out on one side, where they are known to be some; of others all are asked for."""
    return places if places.constant is not None and places.constant > 0 else ZERO


def _outside(one: Placed) -> str:
    return f"outside of {one.access.memory.name}"
