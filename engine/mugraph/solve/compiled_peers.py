"""What a region is compared with, PyTorch's own ways to run it: compiled while the region is searched, and waited for
before something is measured on the device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from mugraph.edit.module.index_limits import index_limit
from mugraph.events import Event
from mugraph.ir.dtypes import DRAWN, INTEGERS, itemsize
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import Region, SearchUnit
from mugraph.plans.plan import RegionPlan
from mugraph.plans.positive import positive_inputs, positive_of_units
from mugraph.plans.scales import input_scales, unit_scales
from mugraph.solve.code import code_of
from mugraph.solve.offering import PEERS_OF
from mugraph.solve.tools import Tools
from mugraph.solve.waiting import waited, waited_within
from mugraph.tune.against import peer_subjects, times_itself
from mugraph.tune.device import device_memory
from mugraph.tune.messages import InputSpec

_EARLY_PART = 24
"""Of the device's memory, that inputs may take: of larger ones two copies would lie on the device, with what each peer
computes from them, all the while that candidates are measured there."""


@dataclass
class CompiledPeers:
    """number: of the region, for events"""

    number: int
    tools: Tools
    cancelled: Callable[[], bool]
    _scales: dict[int, float] = field(default_factory=dict[int, float])
    _positive: frozenset[int] = frozenset()
    _expected: Region | None = None
    _later: Region | None = None
    _in_turn: bool = False

    def quiet(self) -> Generator[Event, None, None]:
        """Until the device is free to be measured on."""
        self.begin()
        yield from self.in_time()

    def expect(self, region: Region, units: Sequence[SearchUnit]) -> None:
        """What `begin` begins."""
        if self.tools.peers is not None:
            self._scales, self._positive = unit_scales(region, units), positive_of_units(region, units)
            self._expected, self._in_turn = region, len(units) > 1

    def begin(self) -> None:
        """Compile what the region will be compared with, while it is searched: with a range, at the largest size. Once;
        and not before it is clear that something has to be searched or measured.

        A compiler that times its own choices keeps the device from search units that are measured in turn, in the
        seconds of the file: it comes after them.
        """
        region, self._expected = self._expected, None
        if region is None:
            return
        if self._in_turn:
            self._later = region
        self._begin(region, [name for name in self.names if not self._in_turn or not times_itself(name)])

    def begin_later(self) -> None:
        """What `begin` has left for later."""
        region, self._later = self._later, None
        if region is not None and any(map(times_itself, self.names)):
            self._begin(region, self.names)

    def _begin(self, region: Region, names: Sequence[str]) -> None:
        if self.tools.peers is None or self._is_too_late_for_peers:
            return
        specs = _specs(self._scales, self._positive, region)
        memory = device_memory()
        if specs is None or (memory is not None and _EARLY_PART * sum(map(_bytes, specs)) > memory):
            return
        with contextlib.suppress(Rejected):  # a call that cannot be spelled: the plan says so
            eager = code_of(region)
            self.tools.peers.begin(peer_subjects(eager, names), specs)

    @property
    def names(self) -> tuple[str, ...]:
        """What is timed beside the generated code; the code as it runs first."""
        given = self.tools.timed_peers
        return PEERS_OF[self.tools.compare_with] if given is None else given

    def in_time(self) -> Generator[Event, None, bool]:
        """Wait until nothing compiles on the device. Where a kernel has to be faster than the code as it runs, and the
        file's time is over, what still compiles is given up: false then."""
        tools = self.tools
        if not self._may_lack_peers:
            yield from waited(tools, self.number, self.cancelled)
            return True
        may_be_ready = tools.peers is None or not self._is_too_late_for_peers or tools.peers.is_ready
        if may_be_ready and (yield from waited_within(tools, self.number, self.cancelled)):
            return True
        if tools.peers is not None:
            tools.peers.release()
        return False

    @property
    def _may_lack_peers(self) -> bool:
        return self.tools.compare_with == "code" and "max-autotune" not in self.names

    @property
    def _is_too_late_for_peers(self) -> bool:
        """What is not compiled yet is left out: the user waits, and no kernel is offered or not because of it."""
        return self._may_lack_peers and self.tools.file_time.is_too_late_for_peers

    def specs(self, plan: RegionPlan, region: Region | None = None) -> tuple[InputSpec, ...] | None:
        """The plan's arguments, none larger than what PyTorch's code was compiled with; None where one cannot be drawn.

        region: the plan's at a size
        """
        scales = {value: min(one, self._scales.get(value, one)) for value, one in input_scales(plan).items()}
        return _specs(scales, self._positive | positive_inputs(plan), region or plan.region)


def _bytes(spec: InputSpec) -> int:
    return prod(spec.shape) * itemsize(spec.dtype)


def _specs(scales: Mapping[int, float], positive: Collection[int], region: Region) -> tuple[InputSpec, ...] | None:
    """The region's arguments for measuring; None for a type that cannot be drawn.

    region: at the size that is measured
    scales, positive: of its live-ins
    """
    specs: list[InputSpec] = []
    for live in region.live_ins:
        info = region.values[live.value]
        high = index_limit(region, live.value) if info.dtype in INTEGERS else 2
        if (high is None and info.triangle is None) or info.dtype not in DRAWN:
            return None
        scale = scales.get(live.value, 1.0)
        sign = live.value in positive
        drawn = scale, high or 2, info.triangle, sign
        specs.append(InputSpec(info.shape, info.strides, info.dtype, *drawn, info.skew))
    return tuple(specs)
