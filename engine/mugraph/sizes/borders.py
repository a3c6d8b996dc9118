"""Which other kernels are faster up to a size of a range, and where that ends.

Looked at are topologies that are right, and of each the kinds of schedules that have one text (sizes/in_parts.py):
with an axis in the grid or not, with operands in their places or swapped, with all of an axis held or walked. Between
borders runs what is fastest there; each border has to earn its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log2

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize_block
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.search.schedules.sizes import ScheduleLimits, schedules
from mugraph.sizes.in_parts import kind_of
from mugraph.sizes.table import sizes_at, steps_of
from mugraph.sizes.up_to import program_up_to
from mugraph.targets import Target

TOPOLOGIES = 12
"""That are looked at, the first ones."""
BORDERS = 3
"""At most."""
EARNED = 0.3
"""What a border has to gain, as a sum over steps, each twice the one before it, of log2 of how many times faster it is
there: a tenth less time at two of them."""
EARNED_BY_ESTIMATE = 1.0
"""The same where nothing is measured: an estimate knows less, and each text is tested in an interpreter."""
_FEW = ScheduleLimits(max_candidates=48, num_warps=(4,), num_stages=(3,))

Kind = tuple[object, bool]
"""Of a schedule; whether it holds all of an axis that varies."""


@dataclass(frozen=True, eq=False)
class Option:
    """Kernels for the sizes up to a step.

    chain:     its block graphs, at the largest size of all
    schedules: of each, at the step
    us:        microseconds by step, up to that; at other steps they are not known
    """

    end: int
    chain: Candidate
    schedules: tuple[Schedule, ...]
    us: Mapping[int, float]

    def at(self, program: TensorProgram, step: int) -> Candidate:
        """A candidate for the sizes up to a step that is no later than its end."""
        made: Candidate | None = None
        for kernel, schedule in reversed([*zip(self.chain.kernels, self.schedules, strict=True)]):
            made = Candidate(at_step_of(program, kernel.block, step), schedule, self.us.get(step, inf), made)
        assert made is not None
        return made


@dataclass(frozen=True)
class Border:
    """Up to step `end`, and from step `begin` on, an option runs that may be for more."""

    begin: int
    end: int
    option: Option


def powers(program: TensorProgram) -> list[int]:
    """Steps between which there may be borders, the smallest first."""
    least, largest = steps_of(program)
    return [1 << n for n in range(largest.bit_length()) if least <= 1 << n < largest]


def borders(options: Sequence[Option], now_us: Mapping[int, float], earned: float = EARNED) -> list[Border]:
    """The borders that gain most, the smallest first. now_us: of what runs without them, by step"""
    steps = sorted(now_us)
    best: dict[tuple[int, int], tuple[float, list[Border]]] = {(-1, 0): (0.0, [])}
    for at, end in enumerate(steps):
        fastest = _fastest(options, now_us, steps[: at + 1])
        for count in range(1, BORDERS + 1):
            for before in range(-1, at):
                known = best.get((before, count - 1))
                if known is None or before not in fastest:
                    continue
                faster, option = fastest[before]
                gain = known[0] + faster - earned
                if gain > best.get((at, count), (0.0, []))[0]:
                    best[at, count] = gain, [*known[1], Border(steps[before + 1], end, option)]
    return max(best.values(), key=lambda one: one[0])[1]


def _fastest(
    options: Sequence[Option], now_us: Mapping[int, float], steps: Sequence[int]
) -> dict[int, tuple[float, Option]]:
    """Of those that are for the last step: for each step, by its place, which is the fastest after it, and by how much
    over all of these steps, as log2; -1: from the first one on."""
    left = [(0.0, option) for option in options if option.end >= steps[-1]]
    found: dict[int, tuple[float, Option]] = {}
    for at, step in reversed([*enumerate(steps)]):
        now = log2(max(now_us[step], 1e-3))
        left = [(us + now - log2(max(one.us[step], 1e-3)), one) for us, one in left if step in one.us]
        if not left:
            break
        found[at - 1] = max(left, key=lambda pair: pair[0])
    return found


@dataclass
class Options:
    """Of one program on one device, by estimate. What is found for a block graph at a step is kept."""

    program: TensorProgram
    target: Target
    _found: dict[tuple[int, int], dict[Kind, tuple[float, Schedule]]] = field(
        default_factory=dict[tuple[int, int], dict[Kind, tuple[float, Schedule]]]
    )
    _kept: list[BlockGraph] = field(default_factory=list[BlockGraph])

    def of(self, candidates: Sequence[Candidate]) -> list[Option]:
        """For each step, those of the candidates' topologies, whose block graphs are at the largest size. Reductions in
        parts as long as a launch chooses are for the large sizes."""
        chains: dict[tuple[int, ...], Candidate] = {}
        for one in candidates:
            if not any(kernel.schedule.part for kernel in one.kernels):
                chains.setdefault(one.topology, one)
        steps = powers(self.program)
        found: list[Option] = []
        for at, end in enumerate(steps):
            if program_up_to(self.program, end) is not None:
                for chain in list(chains.values())[:TOPOLOGIES]:
                    found += self._up_to(chain, steps[: at + 1])
        return found

    def _up_to(self, chain: Candidate, steps: Sequence[int]) -> list[Option]:
        """A kernel with each kind of schedule; of several kernels, each with the best at the last step."""
        if chain.then is None and not chain.schedule.library:
            kinds = [*self._written(chain.block, steps[-1])]
            return [one for kind in kinds if (one := self._chained([(chain, kind)], steps)) is not None]
        pairs = [(kernel, self._best_kind(kernel, steps[-1])) for kernel in chain.kernels]
        one = self._chained(pairs, steps)
        return [one] if one is not None else []

    def _best_kind(self, kernel: Candidate, step: int) -> Kind | None:
        return None if kernel.schedule.library else next(self._written(kernel.block, step), None)

    def _written(self, block: BlockGraph, step: int) -> Iterator[Kind]:
        """Without those that hold all of an axis that is walked: a text for any size walks it."""
        walked = any(axis in self.program.least for axis in block.loop_axes)
        return (kind for kind in self._kinds(block, step) if not (kind[1] and walked))

    def _chained(self, pairs: Sequence[tuple[Candidate, Kind | None]], steps: Sequence[int]) -> Option | None:
        us = dict.fromkeys(steps, 0.0)
        chosen: list[Schedule] = []
        for kernel, kind in pairs:
            if kernel.schedule.library:
                own, schedule = [self._library_us(kernel.block, step) for step in steps], kernel.schedule
            elif kind is None:
                return None
            else:
                own, schedule = self._by_step(kernel.block, kind, steps)
            us = {step: us[step] + one for step, one in zip(steps, own, strict=True)}
            chosen.append(schedule)
        return None if inf in us.values() else Option(steps[-1], pairs[0][0], tuple(chosen), us)

    def _by_step(self, block: BlockGraph, kind: Kind, steps: Sequence[int]) -> tuple[list[float], Schedule]:
        """Microseconds at each step, and the schedule at the last one."""
        same, holds = kind
        last_us, schedule = self._kinds(block, steps[-1])[kind]
        found = [last_us]
        for step in reversed(steps[:-1]):  # a size without a schedule takes that for the next larger one
            known = self._kinds(block, step)
            own = [known[one][0] for one in ((same, False), (same, True)) if one in known and not holds]
            found.insert(0, min(own, default=found[0]))
        return found, schedule

    def _kinds(self, block: BlockGraph, step: int) -> Mapping[Kind, tuple[float, Schedule]]:
        """The best schedule of each kind at a step, the fastest first."""
        key = (id(block), step)
        if key not in self._found:
            at = at_step_of(self.program, block, step)
            fixed = {axis: size for axis, size in at.sizes.items() if axis not in self.program.least}
            kinds: dict[Kind, tuple[float, Schedule]] = {}
            for one in schedules(at, self.target, _FEW):
                kind = kind_of(one.schedule, fixed=fixed), self._holds(at, one.schedule)
                kinds.setdefault(kind, (one.estimate_us, one.schedule))
            self._found[key] = kinds
            self._kept.append(block)
        return self._found[key]

    def _holds(self, block: BlockGraph, schedule: Schedule) -> bool:
        """All of an axis that varies, so that its tile is as large as that at every size."""
        grid = dict(schedule.grid)
        held = (axis for axis in self.program.least if axis in block.sizes and axis not in grid)
        return any(schedule.tile(axis, block.sizes[axis]) >= block.sizes[axis] for axis in held)

    def _library_us(self, block: BlockGraph, step: int) -> float:
        call = library_call(at_step_of(self.program, block, step))
        return estimate_call_us(call, self.target) if call is not None else inf


def at_step_of(program: TensorProgram, block: BlockGraph, step: int) -> BlockGraph:
    """A block graph of the program at a step of it."""
    sizes = sizes_at(program, step)
    own = {axis: sizes.get(axis, n) for axis, n in block.sizes.items()}
    return resize_block(block, own, program.least.keys())
