"""Partitions of a program's values into kernels: dynamic programming, best per set of values that are still to compute.

A kernel computes one value, two, or several of the program's outputs, from program inputs and values that other kernels
have stored: a *part*. What it needs below those it computes itself, also where another kernel computes the same. State:
the values that kernels still have to store; step: the last of them in the program's order becomes a part, whose own
stored inputs join the state (Mirage §4.2's kernel level, over values in place of operators).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Generic, TypeAlias, TypeVar

from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram

Options = Sequence[tuple[int, float]]
"""(kernels, microseconds) of ways to compute a part."""
T = TypeVar("T")
_Chain: TypeAlias = "tuple[int, int, _Chain] | None"
"""The last part of a partition by number, its kernels, and the parts before it."""
_Found = tuple[float, int, _Chain]
"""Microseconds, a number that is another one for each of a list, and the parts."""
_LOOK = 64
"""States between two looks at whether to end: those of a program of many values take 10 ms each."""
_TRIMMED = 4
"""Times as many partitions as are kept that are collected before the best are taken."""


@dataclass(frozen=True, slots=True)
class Part:
    """values: what it stores, in the program's order. leaves: stored values it reads."""

    values: tuple[str, ...]
    leaves: frozenset[str]


@dataclass(frozen=True, slots=True)
class Partition:
    """parts: in an order in which they run, each with the number of kernels it has. us: of all, launches included"""

    us: float
    parts: tuple[tuple[Part, int], ...]


class _Numbered(Generic[T]):
    """Things by number, as they were met: their own hashes take longer than all that is done with them."""

    def __init__(self) -> None:
        self.things: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, thing: T) -> int:
        known = self._numbers.setdefault(thing, len(self.things))
        if known == len(self.things):
            self.things.append(thing)
        return known


class Partitions:
    """The partitions of one program.

    stored: values that may be handed from kernel to kernel
    most:   of them that one kernel reads
    is_late: the last call of `best` was ended, so there may be better ones
    """

    def __init__(self, program: TensorProgram, stored: Collection[str], most: int = 3) -> None:
        self._inputs = {op.name: op.inputs for op in program.ops}
        self._computed = frozenset(op.name for op in program.ops if not op.kind.is_leaf)
        self._loaded = frozenset(op.name for op in program.ops if op.kind is Kind.LOAD)
        self._stored = frozenset(stored) | frozenset(program.outputs)
        self._most = most
        self.is_late = False
        self.outputs = frozenset(program.outputs)
        self._rank = {op.name: number for number, op in enumerate(program.ops)}
        self._above: dict[str, frozenset[str]] = {}  # what each value is computed from
        for op in program.ops:
            self._above[op.name] = frozenset(op.inputs).union(*(self._above[i] for i in op.inputs))
        reduced = {axis for op in program.ops for axis in op.over}
        self._grids = {op.name: frozenset(op.axes) - reduced for op in program.ops}
        self._loads: dict[Part, frozenset[str]] = {}
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._states = _Numbered[frozenset[str]]()  # what kernels still have to store
        self._parts_met = _Numbered[Part]()
        self._known_steps: dict[int, Sequence[tuple[int, int]]] = {}

    @property
    def whole(self) -> Part:
        """All outputs in one kernel that reads nothing but inputs."""
        return Part(tuple(sorted(self.outputs, key=self._rank.__getitem__)), frozenset())

    def parts(self, value: str) -> tuple[Part, ...]:
        """Every way to cut what one value is computed from."""
        if value not in self._parts:
            found = dict.fromkeys(self._cuts(list(self._inputs[value]), frozenset(), frozenset()))
            self._parts[value] = tuple(Part((value,), leaves) for leaves in found)
        return self._parts[value]

    @property
    def apart(self) -> tuple[Part, ...]:
        """Each output in a kernel of its own that reads nothing but inputs."""
        return tuple(Part((value,), frozenset()) for value in self.whole.values)

    def best(
        self,
        options: Callable[[Part], Options],
        kernels: int,
        keep: int,
        within: float,
        over: Callable[[], bool] = lambda: False,
    ) -> list[Partition]:
        """The `keep` best partitions of at most so many kernels, in at most `within` microseconds, best first. over:
        those met by then are all"""
        self.is_late, looks = False, 0
        memo: dict[tuple[int, int], list[_Found]] = {}
        known: dict[int, Options] = {}

        def costs(part: int) -> Options:
            if part not in known:
                known[part] = [option for option in options(self._parts_met.things[part]) if option[1] <= within]
            return known[part]

        def rest(state: int, left: int) -> list[_Found]:
            if not self._states.things[state]:
                return [(0.0, 0, None)]
            if not left:
                return []
            if (state, left) not in memo:
                memo[state, left] = first(state, left)
            return memo[state, left]

        def first(state: int, left: int) -> list[_Found]:
            nonlocal looks
            looks += 1
            self.is_late = self.is_late or (looks % _LOOK == 0 and over())
            if self.is_late:
                return []
            found: list[_Found] = []
            most = within
            for part, after in self._steps(state):
                for count, us in costs(part):
                    if count > left or us > most:
                        continue
                    for before in rest(after, left - count):
                        total = before[0] + us
                        if total > most:
                            break
                        found.append((total, len(found), (part, count, before[2])))
                if len(found) > _TRIMMED * keep:
                    # No more of them than are kept. Equal ones stay in the order in which they were found.
                    found = [(us, number, chain) for number, (us, _, chain) in enumerate(sorted(found)[:keep])]
                    most = found[-1][0]
            return sorted(found)[:keep]

        return [
            Partition(us, self._parts_of(chain)) for us, _, chain in rest(self._states.number(self.outputs), kernels)
        ]

    def _parts_of(self, chain: _Chain) -> tuple[tuple[Part, int], ...]:
        """In an order in which they run: the last is the first of the chain."""
        found: list[tuple[Part, int]] = []
        while chain is not None:
            part, count, chain = chain
            found.append((self._parts_met.things[part], count))
        return tuple(reversed(found))

    def _steps(self, state: int) -> Sequence[tuple[int, int]]:
        """Parts that compute the last value of a state, and the states before them; both by number. They do not depend
        on what is known of the parts."""
        if state not in self._known_steps:
            todo = self._states.things[state]
            steps: list[tuple[int, int]] = []
            for part in dict.fromkeys(self._last_of(todo)):
                before = self._states.number(todo.difference(part.values) | part.leaves)
                steps.append((self._parts_met.number(part), before))
            self._known_steps[state] = steps
        return self._known_steps[state]

    def _last_of(self, todo: frozenset[str]) -> Iterator[Part]:
        """Parts that compute the last of these values, alone or with others."""
        last = max(todo, key=self._rank.__getitem__)
        yield from self.parts(last)
        for other in sorted(todo - {last}, key=self._rank.__getitem__):
            # What is computed from the other value runs after this kernel, so none of it may be needed by it or before.
            if any(other in self._above[value] for value in todo - {last, other}):
                continue
            if not self._have_a_grid(last, other):
                continue
            for part in self.parts(last):
                for second in self.parts(other):
                    leaves = part.leaves | second.leaves
                    if other not in leaves and not any(other in self._above[leaf] for leaf in leaves):
                        joint = Part((other, last), leaves)
                        if len(leaves) <= self._most and self._shares(part, second):
                            yield joint
        if last in self.outputs:
            yield from self._of_outputs(last, todo)

    def _of_outputs(self, last: str, todo: frozenset[str]) -> Iterator[Part]:
        """Parts that compute three outputs of the program or more, each from the same stored values."""
        outputs = sorted((todo & self.outputs) - {last}, key=self._rank.__getitem__)
        for count in range(2, len(outputs) + 1):
            for others in combinations(outputs, count):
                group = {*others, last}
                if not self._have_a_grid(*group) or any(
                    other in self._above[value] for other in others for value in todo - group
                ):
                    continue
                for part in self.parts(last):
                    if group & part.leaves or any(group & self._above[leaf] for leaf in part.leaves):
                        continue
                    alike = [Part((other,), part.leaves) for other in others]
                    if all(one in self.parts(*one.values) and self._shares(part, one) for one in alike):
                        yield Part((*others, last), part.leaves)

    def _have_a_grid(self, *values: str) -> bool:
        """Has one of the values all axes that any of them can be parallel over (as merge.py asks for)?"""
        grids = sorted((self._grids[value] for value in values), key=len)
        return all(one <= other for one, other in pairwise(grids))

    def _shares(self, one: Part, two: Part) -> bool:
        """Do both values read a common tensor?"""
        return bool(self._read(one) & self._read(two))

    def _read(self, part: Part) -> frozenset[str]:
        """Program inputs and stored values the part reads."""
        if part not in self._loads:
            found, todo = set[str](), list(part.values)
            while todo:
                value = todo.pop()
                if value in part.leaves or value in self._loaded:
                    found.add(value)
                else:
                    todo.extend(self._inputs[value])
            self._loads[part] = frozenset(found)
        return self._loads[part]

    def _cuts(self, todo: list[str], leaves: frozenset[str], inside: frozenset[str]) -> Iterator[frozenset[str]]:
        """Sets of stored values below which a kernel need not look. inside: values it computes itself"""
        while todo and (todo[-1] in leaves or todo[-1] in inside or todo[-1] not in self._computed):
            todo = todo[:-1]
        if not todo:
            yield leaves
            return
        *others, value = todo
        yield from self._cuts([*others, *self._inputs[value]], leaves, inside | {value})
        if value in self._stored and len(leaves) < self._most:
            yield from self._cuts(others, leaves | {value}, inside)
