"""The schedules of some topologies as one product of parameters, for tuners that know nothing of kernels.

The parameters are those of OpEvo (§3): the tile of each axis is a factorisation of the axis into blocks and tile, warps
and stages are numbers, the order of a product's operands, its precision and the topology itself are categories. A
topology does not have all of them; what it lacks is carried along and means nothing.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol, cast

from mugraph.ir.block import PRECISIONS, Candidate, Precision, Schedule
from mugraph.ir.parts import with_parts_at
from mugraph.search.schedules.cost import estimate_us, mcfuser_us
from mugraph.search.schedules.neighbours import WALKED
from mugraph.search.schedules.parameters import Parameter, Point, Value, categorical, discrete, factorisation
from mugraph.search.schedules.sizes import ScheduleLimits, fits, tilings
from mugraph.search.schedules.split_schedules import alone
from mugraph.search.schedules.tiles import Shape, next_power
from mugraph.targets import Target

Choice = int | str
"""What a kernel has of a parameter; of an axis, its tile."""
WARPS, STAGES, SWAP, PRECISION, TOPOLOGY, TILE = "warps", "stages", "swap", "precision", "topology", "tile of "


class Space(Protocol):
    """What a tuner searches."""

    @property
    def parameters(self) -> Sequence[Parameter]: ...

    def key(self, point: Point) -> Hashable:
        """Equal for points that mean the same."""
        ...

    def is_valid(self, point: Point) -> bool: ...

    def sample(self, random: random.Random) -> Point | None:
        """A valid point, drawn at random; None where some draws found none."""
        ...

    def points(self) -> Iterator[Point]:
        """All valid points, each meaning once, those with the fewest and least tiles first."""
        ...

    def estimate_us(self, point: Point) -> float:
        """Of a valid point, by the cost model."""
        ...

    def mcfuser_us(self, point: Point) -> float:
        """Of a valid point, by MCFuser's model."""
        ...


class ScheduleSpace:
    """The schedules that the topologies of some candidates have on a device, by estimate.

    candidates: at least one. Each topology counts once, in their order, with the block graphs of the first that has it;
                kernels of one that follow one another have parameters of their own. Where a topology lacks a
                parameter, its points carry what the first candidate with it has.
    """

    def __init__(self, candidates: Sequence[Candidate], target: Target, limits: ScheduleLimits = WALKED) -> None:
        self._chains: list[tuple[_Kernel, ...]] = []
        self._topology: dict[Hashable, int] = {}
        for candidate in candidates:
            if topology(candidate) in self._topology:
                continue
            self._topology[topology(candidate)] = len(self._topology)
            self._chains.append(tuple(_Kernel(one, target, limits) for one in candidate.kernels))
        self.parameters = self._united()
        self._place = {one.name: at for at, one in enumerate(self.parameters)}
        self._choices = [[_choice(value) for value in one.values] for one in self.parameters]
        self._at = [{value: at for at, value in enumerate(values)} for values in self._choices]
        self._active = [
            [
                (kernel, [self._place[_named(name, position)] for name in kernel.choices])
                for position, kernel in enumerate(chain)
            ]
            for chain in self._chains
        ]
        """Of each topology, its kernels, and which parameters each has."""
        self._valid: dict[Hashable, bool] = {}
        self._carried: Point = tuple(0 for _ in self.parameters)
        self._carried = self._first_values(candidates)

    def key(self, point: Point) -> Hashable:
        return (point[0], *[point[at] for _, ats in self._active[point[0]] for at in ats])

    def is_valid(self, point: Point) -> bool:
        key = self.key(point)
        known = self._valid.get(key)
        if known is None:
            known = all(kernel.estimate_us(values) is not None for kernel, values in self._values(point))
            self._valid[key] = known
        return known

    def sample(self, random: random.Random, tries: int = 200) -> Point | None:
        for _ in range(tries):
            number = random.randrange(len(self._chains))
            drawn = [kernel.draw(random) for kernel in self._chains[number]]
            point = self._point(number, [values for values in drawn if values is not None])
            if all(values is not None for values in drawn) and self.is_valid(point):
                return point
        return None

    def points(self) -> Iterator[Point]:
        for number, chain in enumerate(self._chains):
            for every in itertools.product(*(list(kernel.valid()) for kernel in chain)):
                yield self._point(number, every)

    def estimate_us(self, point: Point) -> float:
        return self.candidate(point).estimate_us

    def mcfuser_us(self, point: Point) -> float:
        return sum(kernel.mcfuser_us(values) for kernel, values in self._values(point))

    def candidate(self, point: Point) -> Candidate:
        """What a valid point means. Raises ValueError for another."""
        found: Candidate | None = None
        for kernel, values in reversed(self._values(point)):
            us, schedule = kernel.estimate_us(values), kernel.schedule(values)
            if us is None or schedule is None:
                raise ValueError(f"not a valid point of this space: {point}")
            found = Candidate(kernel.block, schedule, us + (found.estimate_us if found is not None else 0.0), found)
        assert found is not None
        return found

    def point(self, candidate: Candidate) -> Point | None:
        """The candidate's place; None where the space does not have it."""
        number = self._topology.get(topology(candidate))
        if number is None:
            return None
        every = [
            kernel.values(one.schedule) for kernel, one in zip(self._chains[number], candidate.kernels, strict=True)
        ]
        known = [values for values in every if values is not None]
        return self._point(number, known) if len(known) == len(every) else None

    def _values(self, point: Point) -> list[tuple[_Kernel, Mapping[str, Choice]]]:
        """Of each kernel of its topology, what it has."""
        return [
            (kernel, {name: self._choices[at][point[at]] for name, at in zip(kernel.choices, ats, strict=True)})
            for kernel, ats in self._active[point[0]]
        ]

    def _point(self, number: int, every: Sequence[Mapping[str, Choice]]) -> Point:
        made = list(self._carried)
        made[0] = number
        for position, values in enumerate(every):
            for name, value in values.items():
                at = self._place[_named(name, position)]
                made[at] = self._at[at][value]
        return tuple(made)

    def _first_values(self, candidates: Sequence[Candidate]) -> Point:
        """Of every parameter, the value of the first candidate that has it."""
        known: dict[int, int] = {}
        for candidate in candidates:
            number = self._topology[topology(candidate)]
            for position, (kernel, one) in enumerate(zip(self._chains[number], candidate.kernels, strict=True)):
                for name, value in (kernel.values(one.schedule) or {}).items():
                    at = self._place[_named(name, position)]
                    known.setdefault(at, self._at[at][value])
        return tuple(known.get(at, 0) for at in range(len(self.parameters)))

    def _united(self) -> tuple[Parameter, ...]:
        """One parameter for all topologies that have it: with the values of each."""
        values: dict[str, dict[Choice, None]] = {}
        sizes: dict[str, int] = {}
        for chain in self._chains:
            for position, kernel in enumerate(chain):
                for name, own in kernel.choices.items():
                    values.setdefault(_named(name, position), {}).update(dict.fromkeys(own))
                    # An axis may have several sizes: in parts, and whole.
                    sizes[_named(name, position)] = max(sizes.get(_named(name, position), 1), kernel.size(name))
        found = [categorical(TOPOLOGY, range(len(self._chains)))]
        for name, own in values.items():
            numbers = [value for value in own if isinstance(value, int)]
            if TILE in name:
                found.append(_tile_parameter(name, sizes[name], numbers))
            elif name.endswith((WARPS, STAGES)):
                found.append(discrete(name, numbers))
            else:
                found.append(categorical(name, list(own)))
        return tuple(found)


class _Kernel:
    """The schedules of one topology of one kernel.

    choices: parameter -> its values, in the order of the parameters
    """

    def __init__(self, kernel: Candidate, target: Target, limits: ScheduleLimits) -> None:
        self.block, self._target, self._limits = kernel.block, target, limits
        self._part = kernel.schedule.part
        self._library_us = alone(kernel).estimate_us if kernel.schedule.library else None
        self._estimates: dict[tuple[Choice, ...], float | None] = {}
        self._by_mcfuser: dict[tuple[Choice, ...], float] = {}
        self._shape = shape = Shape(kernel.block)
        self._axes = (*shape.grid_axes, *shape.loop_axes)
        self._tilings: dict[tuple[int, ...], tuple[Schedule, tuple[bool, ...]]] = {}
        self.choices: dict[str, tuple[Choice, ...]] = {}
        if self._library_us is None:  # a pre-defined kernel has nothing to choose
            self._choose(shape, limits)
        self._listed = list(self._tilings.items())
        self._tiles_of = {_tiling(plain): tiles for tiles, (plain, _) in self._listed}

    def _choose(self, shape: Shape, limits: ScheduleLimits) -> None:
        for tile, plain, swaps in tilings(shape):
            self._tilings[tuple(tile[axis] for axis in self._axes)] = plain, swaps
        for at, axis in enumerate(self._axes):
            self.choices[f"{TILE}{axis}"] = tuple(sorted({tiles[at] for tiles in self._tilings}))
        self.choices[SWAP] = tuple(sorted({int(swap) for _, swaps in self._tilings.values() for swap in swaps}))
        self.choices[WARPS] = limits.num_warps
        if shape.loop_axes:
            self.choices[STAGES] = limits.num_stages
        if shape.is_exact:
            self.choices[PRECISION] = tuple(shape.precisions(limits.precisions))

    def size(self, name: str) -> int:
        """Of the axis that a parameter tiles; 1 for another parameter."""
        return self._shape.sizes.get(name.removeprefix(TILE), 1) if name.startswith(TILE) else 1

    def schedule(self, values: Mapping[str, Choice]) -> Schedule | None:
        """None where no tiling of the topology has these tiles."""
        if self._library_us is not None:
            return Schedule((), library=True)
        found = self._tilings.get(tuple(_number(values[f"{TILE}{axis}"]) for axis in self._axes))
        swap = bool(values[SWAP])
        if found is None or swap not in found[1]:
            return None
        precision = PRECISIONS[PRECISIONS.index(cast(Precision, values.get(PRECISION, PRECISIONS[0])))]
        warps, stages = _number(values[WARPS]), _number(values.get(STAGES, 2))
        made = Schedule(found[0].grid, found[0].loops, swap, warps, stages, precision=precision, part=self._part)
        return with_parts_at(made, self.block)

    def values(self, schedule: Schedule) -> Mapping[str, Choice] | None:
        """None where the space does not have it."""
        if self._library_us is not None:
            return {}
        tiles = self._tiles_of.get(_tiling(schedule))
        if tiles is None:
            return None
        own: dict[str, Choice] = {**self._of(tiles), SWAP: int(schedule.swap), PRECISION: schedule.precision}
        own |= {WARPS: schedule.num_warps, STAGES: schedule.num_stages}
        found = {name: own[name] for name in self.choices}
        return found if all(value in self.choices[name] for name, value in found.items()) else None

    def estimate_us(self, values: Mapping[str, Choice]) -> float | None:
        """None where it does not fit on the device, or is no schedule at all."""
        if self._library_us is not None:
            return self._library_us
        key = tuple(values.values())
        if key not in self._estimates:
            schedule = self.schedule(values)
            used = fits(self._shape, schedule, self._target, self._limits) if schedule is not None else None
            us = estimate_us(self._shape, schedule, self._target, used) if schedule is not None and used else None
            self._estimates[key] = us
        return self._estimates[key]

    def mcfuser_us(self, values: Mapping[str, Choice]) -> float:
        """Of a library's kernel, which MCFuser does not have, the other model's estimate."""
        if self._library_us is not None:
            return self._library_us
        key = tuple(values.values())
        if key not in self._by_mcfuser:
            schedule = self.schedule(values)
            assert schedule is not None
            self._by_mcfuser[key] = mcfuser_us(self._shape, schedule, self._target)
        return self._by_mcfuser[key]

    def draw(self, random: random.Random) -> Mapping[str, Choice] | None:
        """Any tiles that go together, and of the rest anything. None where it has none."""
        if self._library_us is not None:
            return {}
        if not self._listed:
            return None
        tiles, (_, swaps) = random.choice(self._listed)
        drawn: dict[str, Choice] = {**self._of(tiles), SWAP: int(random.choice(swaps))}
        return drawn | {name: random.choice(own) for name, own in self.choices.items() if name not in drawn}

    def valid(self) -> Iterator[Mapping[str, Choice]]:
        """All that fit, those with the least tiles first."""
        if self._library_us is not None:
            yield {}
            return
        rest = [name for name in self.choices if not name.startswith(TILE)]
        for tiles in sorted(self._tilings):
            for chosen in itertools.product(*(self.choices[name] for name in rest)):
                values = self._of(tiles) | dict(zip(rest, chosen, strict=True))
                if self.estimate_us(values) is not None:
                    yield values

    def _of(self, tiles: Sequence[int]) -> dict[str, Choice]:
        return {f"{TILE}{axis}": tile for axis, tile in zip(self._axes, tiles, strict=True)}


def topology(candidate: Candidate) -> Hashable:
    """Equal for candidates of the same kernels one after the other, whatever they are called."""
    return tuple(_identity(kernel) for kernel in candidate.kernels)


def _identity(kernel: Candidate) -> Hashable:
    block = kernel.block
    return block.ops, block.tensors, block.loops, tuple(sorted(block.sizes.items())), kernel.schedule.library


def _named(name: str, position: int) -> str:
    return "then " * position + name


def _tiling(schedule: Schedule) -> Hashable:
    return frozenset(schedule.grid), frozenset(schedule.loops.items())


def _choice(value: Value) -> Choice:
    """Of a factorisation into blocks and tile, the tile."""
    return value[-1] if isinstance(value, tuple) else value


def _number(value: Choice) -> int:
    assert isinstance(value, int)
    return value


def _tile_parameter(name: str, size: int, tiles: Sequence[int]) -> Parameter:
    """The axis, padded to a power of two, as blocks (or iterations of a loop) times a tile that some topology has."""
    return factorisation(name, max(next_power(size), *tiles), 2, lambda factors: factors[-1] in tiles)
