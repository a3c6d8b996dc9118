"""Fills the pool: `python -m tests.trust.search_pool` traces programs.py, searches every function, and writes what was
found to pool/: a file a program, with its tensor program and a few graphs that differ in kind.

The only module here that calls the engine to find graphs. Nothing found is taken to be right: test_pool.py has the
interpreter judge it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.json import mugraph_to_json, program_to_json
from mugraph.ir.library import library_call
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Region, SearchUnit, Trace
from mugraph.ir.spec import check_candidate
from mugraph.optimizer.nodes import LIBRARY, node_of
from mugraph.optimizer.order import by_depth
from mugraph.plans.kernel_graph import kernel_graph
from mugraph.plans.plan import KernelStep
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.several import SeveralSearch
from mugraph.search.run import Search
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.schedules.splits import Cut, cuts, part_counts
from mugraph.search.topologies.limits import Limits
from mugraph.sizes.table import tested_steps
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect, resolve
from mugraph.units.own_names import with_own_names
from mugraph.units.ranged import ranged_units
from mugraph.verification.sizes import grid_axes
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_topologies

from tests.support.clock import slow_clock
from tests.trust.pool import POOL, REWRITTEN, REWRITTEN_POOL, SOURCES, brief

GRAPHS = 6
"""Of each program, at most."""
SECONDS = 2.0
"""Of each search."""
Kernels = Sequence[tuple[BlockGraph, Schedule]]


def main() -> None:
    POOL.mkdir(exist_ok=True)
    trace = trace_file(SOURCES)
    for region, unit in searched_units(trace):
        if len(sys.argv) > 1 and region.function not in sys.argv[1:]:
            continue
        graphs = [graph_of(region, unit, kernels) for kernels in islice(found_in(unit), GRAPHS)]
        document = {
            "program": brief(program_to_json(unit.program)),
            "steps": list(tested_steps(unit.program)),
            "results": [n for live in region.live_outs for n, value in unit.outputs.items() if value == live.value],
            "graphs": brief(graphs),
        }
        path = POOL / f"{region.function}.json"
        path.write_text(_text(document), encoding="utf-8")
        print(f"{region.function}: {len(graphs)} graphs, {path.stat().st_size} bytes", flush=True)
    rewrite_pool()


def rewrite_pool() -> None:
    """Of every function of rewritten.py its tensor program as one kernel."""
    graphs: dict[str, object] = {}
    for region, unit in searched_units(trace_file(REWRITTEN)):
        program = unit.program
        stores = [
            Op(f"store_{tensor.name}", Kind.STORE, (value,), program.op(value).axes, tensor=tensor.name)
            for value, tensor in program.outputs.items()
        ]
        tensors = (*program.tensors, *program.outputs.values())
        block = BlockGraph("kernel_1", program.sizes, tensors, (*program.ops, *stores))
        graphs[region.function] = graph_of(region, unit, [_scheduled(block, program, 16)])
        print(region.function, flush=True)
    REWRITTEN_POOL.write_text(_text(brief(graphs)), encoding="utf-8")


def _text(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True) + "\n"


def searched_units(trace: Trace) -> Iterator[tuple[Region, SearchUnit]]:
    """Every function with its tensor program. Raises ValueError where one is not a single search unit."""
    for region in trace.regions:
        units = with_own_names(ranged_units(region)[0]) if region.status is None else ()
        if len(units) != 1 or not isinstance(units[0], SearchUnit):
            raise ValueError(f"{region.function} is no single tensor program: {region.reason or len(units)}")
        yield region, units[0]


def found_in(unit: SearchUnit) -> Iterator[Kernels]:
    """Graphs that the search finds and verification takes, of many kinds: one kernel, split ones, kernel graphs."""
    program, target = unit.program, resolve("h100", detect())
    with slow_clock():
        limits = Limits(seconds=SECONDS)
        search = SeveralSearch(program, limits) if len(program.outputs) > 1 else Search(program, limits)
        blocks = [found.block for found in search.run()]
        candidates = kernel_candidates(blocks, target, varying=program.least)
        graphs = KernelGraphs(
            program, target, GraphLimits(slack=20.0), blocks=blocks, candidates=candidates, seconds=SECONDS
        )
        several = [found.candidates[0] for found in graphs.run()]
    # A queue of each class, taken from in turn: what is one kernel by its loops, what is split by where, and the rest.
    every: dict[object, dict[object, Sequence[BlockGraph | Candidate]]] = {}

    def add(of_class: object, kernels: Sequence[BlockGraph | Candidate]) -> None:
        every.setdefault(of_class, {}).setdefault(tuple(map(_kind, kernels)), kernels)

    for block in blocks:
        add(f"{len(block.loop_axes)} loops", (block,))
    for candidate in several:
        add(f"{len(candidate.kernels)} kernels", candidate.kernels)
        calls = [replace(one, schedule=LIBRARY) if library_call(one.block) else one for one in candidate.kernels]
        if any(one.schedule.library for one in calls):
            add("library", calls)
    for cut in (cut for block in blocks for cut in cuts(block) if cut.axis not in program.least):
        counts = part_counts(block_size(cut)) or [2] * (block_size(cut) % 2 == 0)
        for looped in (True, False) if counts else ():
            add(f"split {cut.axis}", cut.at(counts[-1], looped=looped))
    queues = [list(queue.values()) for queue in every.values()]
    rounds = [queue[i] for i in range(max(map(len, queues))) for queue in queues if i < len(queue)]
    for number, kernels in enumerate(rounds):
        made = [_scheduled(kernel, program, 16 if number % 2 else 8) for kernel in kernels]
        if verify_topologies(program, [(block, None) for block, _ in made]).passed:
            yield [(replace(block, name=f"kernel_{n}"), schedule) for n, (block, schedule) in enumerate(made, 1)]


def block_size(cut: Cut) -> int:
    return cut.block.sizes[cut.axis]


def _kind(kernel: BlockGraph | Candidate) -> object:
    """Its loops, the kinds of its operators, and whether a library computes it."""
    block = kernel if isinstance(kernel, BlockGraph) else kernel.block
    kinds = tuple(sorted(op.kind for op in block.ops if op.kind is not Kind.LOAD))
    return block.loops, kinds, isinstance(kernel, Candidate) and kernel.schedule.library


def _scheduled(kernel: BlockGraph | Candidate, program: TensorProgram, most: int) -> tuple[BlockGraph, Schedule]:
    """With tiles that cut as many axes as may be cut, most of them unevenly: the cost model has no reason to at sizes
    as small as these."""
    if isinstance(kernel, Candidate) and kernel.schedule.library:
        return kernel.block, kernel.schedule
    block = kernel if isinstance(kernel, BlockGraph) else kernel.block
    loops = {axis: _tile(block.sizes[axis], most) for axis in block.loop_axes}
    grid = dict.fromkeys(grid_axes(block), 1)
    for axis in grid:
        cut = {**grid, axis: _tile(block.sizes[axis], 16)}
        if not check_candidate(block, Schedule(tuple(cut.items()), loops)):
            grid = cut
    return block, Schedule(tuple(grid.items()), loops)


def _tile(size: int, most: int) -> int:
    """The largest power of two below the size, up to a bound."""
    return max(1, min(most, 1 << max(0, (size - 1).bit_length() - 1)))


def graph_of(region: Region, unit: SearchUnit, kernels: Kernels) -> object:
    nodes = [node_of(block if schedule.library else by_depth(block), schedule) for block, schedule in kernels]
    step = KernelStep(unit, nodes[0], Verdict(True), tuple(nodes[1:]))
    graph = kernel_graph(region.function, region, (step,))
    if unit.views:  # what the user's code cuts tensors into is the kernels' input: the program's, too
        graph = replace(graph, inputs=tuple(tensor.name for tensor in unit.program.tensors))
    return mugraph_to_json(graph)


if __name__ == "__main__":
    main()
