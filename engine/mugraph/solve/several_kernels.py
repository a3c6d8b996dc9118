"""Search: kernel graphs that compute a program with several kernels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence

from mugraph.codegen.dynamic import check_dynamic
from mugraph.events import Event
from mugraph.executors.searches import begin_kernel_graphs
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.kernel import Rejected
from mugraph.ir.program import TensorProgram
from mugraph.options import Bounds
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.telling import Telling
from mugraph.solve.tools import Tools
from mugraph.solve.verdicts import Verdicts

_log = logging.getLogger("mugraph.solve")

LEAST = 0.25
"""Of the seconds of a search, what kernel graphs get at least, however many the search for one kernel took."""
LEAST_ALONE = 0.6
"""The same where no single kernel fits on the device: what the search for one leaves then (one_kernel.PATIENCE)."""


def kernel_graphs(
    program: TensorProgram,
    blocks: Sequence[BlockGraph],
    candidates: Sequence[Candidate],
    best: Candidate | None,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool],
    verdicts: Verdicts,
    telling: Telling,
    ending: Ending = NO_END,
) -> Generator[Event, None, tuple[list[Candidate], bool]]:
    """All that can be launched for every size. Each that is right and expected to be faster than all before is told of
    at once. And whether the time was over before all was searched.

    blocks, candidates: of one kernel. best: of the candidates that are right, the fastest by estimate
    """
    seconds = max(bounds.seconds - telling.seconds, (LEAST if candidates else LEAST_ALONE) * bounds.seconds)
    graphs = begin_kernel_graphs(
        program,
        tools.target,
        tools.executor,
        cancelled,
        max_kernels=bounds.max_kernels,
        max_block_ops=bounds.max_ops,
        blocks=blocks,
        candidates=candidates,
        seconds=min(seconds, ending.search_s) if best is not None else seconds,
        alike=tools.alike,
    )
    several: list[Candidate] = []
    for found in graphs.run():
        launched = _for_any_size(found.candidates, program)
        several += launched
        yield telling.searching(len(blocks))
        fastest = found.candidates[0]
        better = best is None or fastest.estimate_us < best.estimate_us
        if better and fastest in launched[:1] and verdicts.of(fastest).passed:
            best = fastest
            yield from telling.hit(best.block)
            yield from telling.met(best)
    return several, graphs.stats.ended_by == "time"


def _for_any_size(candidates: Sequence[Candidate], program: TensorProgram) -> list[Candidate]:
    """Those whose kernels can be launched for every size of the program."""
    found: list[Candidate] = []
    for candidate in candidates:
        try:
            for kernel in candidate.kernels:
                check_dynamic(kernel.block, program, kernel.schedule)
        except Rejected as error:  # one candidate of many
            _log.debug("a candidate is not for every size: %s", error)
            continue
        found.append(candidate)
    return found
