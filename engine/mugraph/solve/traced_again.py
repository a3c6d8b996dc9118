"""The recorded calls behind kernels that are in a file already: the file is traced again, as it was before the edit.

Tracing runs the user's code, so it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import cast

from mugraph.edit.source.record import Record
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.edit.undo import undo
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Region, SearchUnit, Trace
from mugraph.ir.transforms.renaming import canonical
from mugraph.memory.traced_ways import with_other_ways
from mugraph.memory.traces import traced
from mugraph.options import Options
from mugraph.recording.runs import Runs
from mugraph.sizes.search_unit import at_other_sizes
from mugraph.solve.divisions import all_left
from mugraph.solve.layouts import exactly, layouts, takes_tf32
from mugraph.units.layouts import Layout
from mugraph.units.region_units import cut_region
from mugraph.units.search_units import is_divisible
from mugraph.verification.float_test import FloatTester
from mugraph.verification.lowering.check import check_lowering, mark_of
from mugraph.verification.verdict import Lowering

_FEW = 4
"""Units with calls that may be left to PyTorch, of which every choice is tried: a cut of more is found where its units
are those of one of the cuts that are tried."""


@dataclass(frozen=True)
class TracedAgain:
    """trace: of the code that the kernels of a module replace; a clause that says why there is none."""

    trace: Trace | str

    @staticmethod
    def of(file: Path, record: Record, timeout_s: float = Options.trace_timeout_s) -> TracedAgain:
        """Runs the file's code, in another process. record: of the edit"""
        try:
            text = undo(SourceFile.decode(file.read_bytes()), record).text
        except OSError as error:
            return TracedAgain(f"{file.name} cannot be read ({error.strerror or error})")
        except EditError as error:
            return TracedAgain(f"what {file.name} was before the edit is not known: {error}")
        runs = Runs.of(file, text)
        own = traced(
            file,
            source=text,
            recorded_shapes=runs.shapes or None,
            pictures=runs.pictures,
            timeout_s=timeout_s,
            store=None,
        )
        trace = with_other_ways(own, file, text, runs, timeout_s=timeout_s, store=None).trace
        if trace.errors and not trace.regions:
            return TracedAgain(f"{file.name} cannot be traced again: {trace.errors[0]}")
        return TracedAgain(trace)

    def lowering(self, function: str, program: TensorProgram, tester: FloatTester) -> Lowering:
        """Is the program what the calls of the function's part compute that it comes from? Where several parts have it,
        of each."""
        if isinstance(self.trace, str):
            return Lowering(None, self.trace)
        regions = [region for region in self.trace.regions if region.function == function and region.status is None]
        wanted, _ = canonical(program)
        found: dict[str, Lowering] = {}
        for region in regions:
            for unit in possible_units(region):
                if canonical(unit.program)[0] != wanted:
                    continue
                smaller = at_other_sizes(unit, region)
                mark = mark_of(unit, smaller)
                if mark not in found:
                    found[mark] = check_lowering(unit, smaller, tester)
        if not found:
            return Lowering(None, self._why_not(function, regions))
        return min(found.values(), key=lambda one: _ORDER.index(one.passed))

    def _why_not(self, function: str, regions: Sequence[Region]) -> str:
        assert isinstance(self.trace, Trace)
        if not regions and self.trace.errors:
            return f"{function} cannot be traced again: {self.trace.errors[0]}"
        if not regions:
            return f"{function} has no region when it is traced here (a recorded run may be missing)"
        return f"no part of {function}, as it is traced here, has the program that the kernel was made for"


_ORDER = (False, None, True)
"""The worst first."""


def possible_units(region: Region) -> Iterator[SearchUnit]:
    """Those that a job may solve (job.py): of the whole cut, of cuts with calls left to PyTorch, for each choice of how
    convolutions lie in memory; with kernels that may round to tf32, and with such as may not."""
    for unit in _of_layouts(region):
        yield unit
        if takes_tf32(unit):
            yield cast("SearchUnit", exactly(unit))


def _of_layouts(region: Region) -> Iterator[SearchUnit]:
    for turned in dict.fromkeys((*layouts(region), frozenset[int]())):
        whole = [*_units(region, turned)]
        yield from whole
        for left in _left(region, turned, whole):
            yield from _units(region, turned, left)
        for unit in whole:
            if is_divisible(unit):
                made = frozenset(value for call in unit.calls for value in call.outputs)
                yield from _units(region, turned, [made])


def _left(region: Region, turned: Layout, whole: Sequence[SearchUnit]) -> Iterator[list[frozenset[int]]]:
    """What the calls make that a job may leave to PyTorch: those of all units with some, then of several, of one."""
    every = all_left(whole, lambda left: cut_region(region, left, turned)[1])
    made = [frozenset(value for call in unit.calls for value in call.outputs) for unit in whole]
    of_units = [left for unit in made if (left := [one for one in every if one <= unit])]
    counts = range(len(of_units), 0, -1) if len(of_units) <= _FEW else dict.fromkeys((len(of_units), 1))
    for count in counts:
        for some in combinations(of_units, count):
            yield [made for left in some for made in left]


def _units(region: Region, turned: Layout, refused: Sequence[frozenset[int]] = ()) -> Iterator[SearchUnit]:
    """With those that they were joined of."""
    waiting = [*cut_region(region, refused, turned)[1]]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, SearchUnit):
            yield part
            waiting += part.apart
