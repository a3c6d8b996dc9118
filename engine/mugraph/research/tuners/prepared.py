"""An operator with its kernels: what the search finds for it, and the space of their schedules."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import msgspec

from mugraph.ir.block import Schedule
from mugraph.ir.json import block_to_json
from mugraph.ir.kernel import Rejected
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.options import Bounds
from mugraph.research.tuners.operators import Operator
from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import ScheduleSpace, topology
from mugraph.sizes.table import SizeTable
from mugraph.solve.ranking import Judged, ranked_candidates
from mugraph.solve.telling import Place, Telling
from mugraph.solve.testing import output_names
from mugraph.solve.tools import Tools
from mugraph.solve.writing import kernels_of, written
from mugraph.targets import Target
from mugraph.trace.tracer import trace_file
from mugraph.tune.tuner import Variant
from mugraph.units.search_units import single_units
from mugraph.verification.float_test import FloatTester

SEARCH_S = 10.0
RANKED = 256
"""Candidates of the search, at most, whose order by estimate tuners are told."""


@dataclass
class Prepared:
    """ranked: the best by estimate, as the search ranks them, in the space"""

    operator: Operator
    program: TensorProgram
    target: Target
    space: ScheduleSpace
    ranked: list[Point]
    _table: SizeTable
    _digests: dict[int, str] = field(default_factory=dict[int, str])

    def key(self, point: Point) -> str:
        """Equal for equal kernels, in every process: of the block graphs and the schedules."""
        candidate = self.space.candidate(point)
        number = point[0]
        if number not in self._digests:
            blocks = msgspec.json.encode([block_to_json(kernel.block) for kernel in candidate.kernels])
            self._digests[number] = sha256(blocks).hexdigest()[:8]
        return " ".join([self._digests[number], *(_words(kernel.schedule) for kernel in candidate.kernels)])

    def variant(self, point: Point) -> Variant | str:
        """Its kernels, or why they cannot be written."""
        candidate = self.space.candidate(point)
        try:
            return Variant(candidate, self._table.lowered(kernels_of(candidate)))
        except Rejected as error:
            return f"it cannot be written: {error}"


def prepared(operator: Operator, dtype: str, target: Target, topologies: int) -> Prepared:
    """Searched, verified and written without a GPU. Raises ValueError where nothing was found.

    topologies: the best by estimate, whose schedules are the space
    """
    with tempfile.TemporaryDirectory(prefix="mugraph-operator-") as folder:
        path = Path(folder, "one_operator.py")  # no module is called so
        path.write_text(operator.text(dtype))
        (region,) = trace_file(path).regions
    units = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    if region.status is not None or len(units) != 1:
        raise ValueError(f"{operator.name} is not one search unit: {region.reason or region.status}")
    program = units[0].program
    table = SizeTable(program, target, output_names(program))
    found = _found(program, operator.name, target)
    named = [variant.candidate for variant, _ in written(found, table, operator.name, RANKED, measured=True).variants]
    named = [candidate for candidate in named if not any(kernel.schedule.library for kernel in candidate.kernels)]
    if not named:
        raise ValueError(f"no kernel was found for {operator.name}")
    first = list(dict.fromkeys(map(topology, named)))[:topologies]
    space = ScheduleSpace([candidate for candidate in named if topology(candidate) in first], target)
    places = [space.point(candidate) for candidate in named]
    return Prepared(operator, program, target, space, [place for place in places if place is not None], table)


def _found(program: TensorProgram, name: str, target: Target) -> tuple[Judged, ...]:
    with FloatTester() as tester:
        tools = Tools(target, tester)
        until = time.monotonic() + 6 * SEARCH_S
        telling = Telling(Place(0, 0, 1, name, name))
        steps = ranked_candidates(program, telling, tools, Bounds(SEARCH_S), lambda: time.monotonic() > until)
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                return ended.value.candidates


def _words(schedule: Schedule) -> str:
    tiles = ",".join(f"{axis}{tile}" for axis, tile in (*schedule.grid, *schedule.loops.items()))
    swap = " swap" if schedule.swap else ""
    return f"{tiles} w{schedule.num_warps} s{schedule.num_stages} {schedule.precision}{swap}"
