"""Search: the topologies that compute a program with one kernel."""

from __future__ import annotations

from collections.abc import Callable, Generator

from mugraph.events import Event
from mugraph.executors.searches import begin_search
from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.options import Bounds
from mugraph.search.schedules.sizes import Looks
from mugraph.search.topologies.limits import Limits, Stats
from mugraph.solve.telling import Telling
from mugraph.solve.tools import Tools
from mugraph.solve.verdicts import Verdicts


def topologies_of_one(
    program: TensorProgram,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool],
    verdicts: Verdicts,
    telling: Telling,
) -> Generator[Event, None, tuple[list[BlockGraph], Stats]]:
    """All that are found, and how the search ended. The first that is right is told of at once, and after it each that
    a coarse look expects to be faster than all before. Raises NotSearchable."""
    search = begin_search(
        program, Limits(bounds.max_ops, seconds=bounds.seconds), tools.executor, cancelled, tools.alike
    )
    looks = Looks(tools.target)
    blocks: list[BlockGraph] = []
    for found in search.run():
        block = found.block
        blocks.append(block)
        if telling.first_hit_s is None and verdicts.of_block(block).passed:
            yield from telling.hit(block)
        if telling.first_hit_s is not None:
            candidate = looks.at(block)
            if candidate is not None and telling.is_promising(candidate) and verdicts.early(candidate).passed:
                yield from telling.met(candidate)
        yield from telling.progress(len(blocks))
    return blocks, search.stats
