"""Programs in which axes are bound and free at once: whatever is found for them is what PyTorch computes, in float64.

More than 2,000 random programs, no two alike, each recorded, cut into search units and lowered as a user's would be;
every unit is searched, and its candidates, with those split across the grid, are run tile by tile in float64 beside
PyTorch's own values.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.block import BlockGraph
from mugraph.ir.region import Region, SearchUnit
from mugraph.search import Limits, NotSearchable, Search
from mugraph.search.schedules.splits import cuts
from mugraph.trace.regions.replay import replay
from mugraph.units.search_units import single_units
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.execute import execute_kernels
from mugraph.verification.sizes import Assignment, grid_axes
from numpy.typing import NDArray

from tests.engine.ops.harness import record
from tests.engine.search.einsum_programs import EinsumProgram, chunks, programs

CHUNKS, PER_CHUNK = 8, 280
FIRST = 3
"""Chunks that are always tried."""
LEAST_SEARCHED = 250
"""Of a chunk; the others have no product or sum of their own left to search for."""
ENOUGH, MOST = 4_000, 300_000
"""Work granted to a search, and to one that has found nothing by then."""
COMPARED = 5
"""Candidates of a search unit that are run: the first three, the last and one between."""
TOLERANCE = 1e-9
"""Of float64 values, against the largest of them."""


@dataclass(frozen=True)
class Small(Limits):
    """Work by itself: most programs of this size are through with a few thousand comparisons."""

    granted: int = ENOUGH

    @property
    def work(self) -> int:
        return self.granted


@dataclass
class Tally:
    searched: int = 0
    units: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    candidates: int = 0
    splits: int = 0
    looped: int = 0
    renamed: int = 0

    def __str__(self) -> str:
        reasons = "; ".join(f"{reason}: {count}" for reason, count in self.refused.most_common())
        return (
            f"{self.searched} programs searched; {self.units} search units, {self.renamed} of them with one tensor "
            f"under several axes; {self.candidates} candidates compared, {self.looped} with loops, {self.splits} "
            f"split across the grid; {self.refused.total()} refused ({reasons})"
        )


def recorded(program: EinsumProgram) -> Region:
    """As for float32 inputs, recorded in float64."""
    namespace: dict[str, Any] = {"torch": torch, "F": F}
    exec(program.source, namespace)
    region = record(namespace[program.name], program.inputs)
    values = {number: replace(info, dtype="f32") for number, info in region.values.items()}
    return replace(region, values=values)


def tiled(block: BlockGraph) -> Any:
    """Tiles of two along every axis that is cut, the last one shorter where the extent is odd."""
    return Assignment(block.sizes, dict.fromkeys(block.sizes, 2)).schedule(block, grid_axes(block))


def kernels_of(block: BlockGraph) -> Iterator[tuple[BlockGraph, ...]]:
    """The block graph on its own, and with each loop that the grid can share cut in the least parts."""
    yield (block,)
    for cut in cuts(block):
        size = block.sizes[cut.axis]
        count = next((count for count in (2, 3, 5) if size % count == 0), size)
        yield cut.at(count, looped=size > count)


def searched(unit: SearchUnit, work: int = ENOUGH) -> list[BlockGraph]:
    limits = Small(max_topologies=8, max_loops=1, granted=work)
    return [found.block for found in Search(unit.program, limits).run()]


def chosen(blocks: list[BlockGraph], seed: int) -> list[BlockGraph]:
    if len(blocks) <= COMPARED:
        return blocks
    return [*blocks[:3], blocks[-1], blocks[random.Random(seed).randrange(3, len(blocks) - 1)]]


def close(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    return found.shape == expected.shape and bool((abs(found - expected) <= TOLERANCE * abs(expected).max()).all())


def check(program: EinsumProgram, tally: Tally) -> None:
    region = recorded(program)
    values = replay(region.calls, {live.value: program.inputs[live.expression] for live in region.live_ins})
    units = [piece for piece in single_units(region) if isinstance(piece, SearchUnit)]
    if not units:
        tally.refused["nothing in it is worth a kernel"] += 1
        return
    found = [check_unit(unit, values, program, tally) for unit in units]
    tally.searched += any(found)
    tally.units += sum(found)
    tally.renamed += sum(len(set(unit.inputs.values())) < len(unit.inputs) for unit in units)


def check_unit(unit: SearchUnit, values: Mapping[int, torch.Tensor], program: EinsumProgram, tally: Tally) -> bool:
    arithmetic = FloatArithmetic()
    tensors = (*unit.program.tensors, *unit.program.outputs.values())
    shapes = {tensor.name: tensor.shape(unit.program.sizes) for tensor in tensors}  # neighbouring axes may be one
    inputs = {name: values[value].reshape(shapes[name]).numpy()[None] for name, value in unit.inputs.items()}
    ((output, value),) = unit.outputs.items()
    expected = values[value].permute(unit.order_of(value)).reshape(shapes[output]).numpy()[None]
    meaning = evaluate_program(unit.program, inputs, arithmetic)[output]
    assert close(meaning, expected), f"lowered wrongly:\n{program.source}\n{unit.program}"
    try:
        blocks = searched(unit) or searched(unit, MOST)
    except NotSearchable as refused:
        tally.refused[str(refused)] += 1
        return False
    assert blocks, f"nothing found:\n{program.source}\n{unit.program}"
    for block in chosen(blocks, len(unit.program.ops)):
        for kernels in kernels_of(block):
            result = execute_kernels([(kernel, tiled(kernel)) for kernel in kernels], inputs, arithmetic)[output]
            assert close(result, expected), f"found wrongly:\n{program.source}\n{unit.program}\n{kernels}"
            tally.candidates += 1
            tally.splits += len(kernels) > 1
            tally.looped += bool(kernels[0].loops)
    return True


@pytest.mark.parametrize("chunk", chunks(CHUNKS, FIRST))
def test_what_is_found_is_what_pytorch_computes(chunk: int) -> None:
    tally = Tally()
    for program in programs(CHUNKS * PER_CHUNK)[chunk * PER_CHUNK : (chunk + 1) * PER_CHUNK]:
        check(program, tally)
    print(tally)
    assert tally.searched >= LEAST_SEARCHED
    assert tally.renamed > PER_CHUNK / 4
    assert tally.splits > PER_CHUNK / 2
    assert tally.looped - tally.splits > PER_CHUNK / 2


def test_no_two_are_alike() -> None:
    drawn = programs(CHUNKS * PER_CHUNK)
    assert len({program.body for program in drawn}) == len(drawn)
    assert CHUNKS * LEAST_SEARCHED >= 2_000
