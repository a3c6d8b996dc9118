"""A search of one program, in this process or on an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mugraph.executors.executor import Executor
from mugraph.executors.parts import SpreadParts
from mugraph.executors.spread import SpreadSearch
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.program import TensorProgram
from mugraph.search.alike import Alike
from mugraph.search.direct import DirectSearch, is_direct
from mugraph.search.factored import SHARE, FactoredSearch, blocks_of
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.several import SeveralSearch
from mugraph.search.run import Search
from mugraph.search.topologies.limits import Limits, Searcher
from mugraph.targets import Target


def begin_search(
    program: TensorProgram,
    limits: Limits,
    executor: Executor | None,
    cancelled: Callable[[], bool],
    alike: Alike | None = None,
) -> Searcher:
    """executor: None searches here. alike: searches of programs like it. Raises NotSearchable."""
    searches = alike or Alike()

    def of_one_output(program: TensorProgram, limits: Limits, cancelled: Callable[[], bool]) -> Searcher:
        found = searches.known(program, limits)
        if found is not None:
            return found
        factored = blocks_of(program)
        own = limits.shared(SHARE) if factored else limits
        search = (
            Search(program, own, cancelled) if executor is None else SpreadSearch(program, own, executor, cancelled)
        )
        return searches.keeping(program, limits, FactoredSearch(factored, search, cancelled))

    if is_direct(program):
        return DirectSearch(program)
    if len(program.outputs) > 1:
        return SeveralSearch(program, limits, cancelled, of_one_output)
    return of_one_output(program, limits, cancelled)


def begin_kernel_graphs(
    program: TensorProgram,
    target: Target,
    executor: Executor | None,
    cancelled: Callable[[], bool],
    *,
    max_kernels: int,
    max_block_ops: int,
    blocks: Sequence[BlockGraph],
    candidates: Sequence[Candidate],
    seconds: float,
    alike: Alike | None = None,
) -> KernelGraphs:
    """executor: works on parts beside this process. alike: searches of programs like its parts.
    max_kernels: in a graph. max_block_ops: operators in one kernel.
    blocks, candidates: as of KernelGraphs"""
    limits = GraphLimits.of(max_kernels, max_block_ops)
    workers = SpreadParts(executor) if executor is not None else None
    return KernelGraphs(
        program,
        target,
        limits,
        cancelled,
        blocks=blocks,
        candidates=candidates,
        seconds=seconds,
        workers=workers,
        alike=alike,
    )
