"""One kernel with several outputs: the topologies of each output, laid over one another."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import product, zip_longest

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.renaming import Names, Renaming, key_of
from mugraph.search.kernel_graphs.merge import merged
from mugraph.search.kernel_graphs.subprogram import only
from mugraph.search.run import Search
from mugraph.search.topologies.frame import check
from mugraph.search.topologies.limits import Found, Limits, Searcher, Stats, never

LAID = 12
"""Topologies of each output and loop nest, the smallest, that are laid over those of the others."""


class SeveralSearch:
    """As mugraph.search.run.Search, of a program with several outputs. Raises NotSearchable where the program of one of
    them is outside of what the search covers.

    begin: a search for one output
    """

    def __init__(
        self,
        program: TensorProgram,
        limits: Limits | None = None,
        cancelled: Callable[[], bool] = never,
        begin: Callable[[TensorProgram, Limits, Callable[[], bool]], Searcher] = Search,
    ) -> None:
        # The smallest first: the last one's topologies are given while it is searched.
        parts = sorted((only(program, value) for value in program.outputs), key=lambda part: len(part.ops))
        for part in parts:
            check(part)
        self.program, self.limits = program, limits or Limits()
        self._parts, self._cancelled, self._begin = parts, cancelled, begin
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._count = 0
        self._searches: list[Searcher] = []

    @property
    def stats(self) -> Stats:
        """complete: every topology of each output was found. Not all of them were laid over all others."""
        each = [search.stats for search in self._searches]
        seconds = time.monotonic() - self._began if self._seconds is None else self._seconds
        ends = [stats.ended_by for stats in each if not stats.complete]
        return Stats(
            self._count,
            sum(stats.values for stats in each),
            bool(each) and not ends,
            min((stats.complete_to for stats in each), default=0),
            "running" if self._seconds is None else (ends or [each[0].ended_by if each else "cancelled"])[0],
            dict(sum((Counter(stats.pruned) for stats in each), Counter[str]())),
            seconds,
        )

    def run(self) -> Iterator[Found]:
        """Block graphs that store all outputs, each once, the smallest of those that are known first."""
        self._began, self._seconds, self._count, self._searches = time.monotonic(), None, 0, []
        known: dict[Hashable, tuple[Names, list[BlockGraph]]] = {}
        several = len({key_of(part)[0] for part in self._parts})
        share = self.limits.shared(several)
        together: list[BlockGraph] | None = None
        for number, part in enumerate(self._parts):
            key, names = key_of(part)
            if key in known:
                old, blocks = known[key]
                renaming = Renaming(old, names)
                blocks = [renaming.block(block) for block in blocks]
            else:
                search = self._begin(part, share, self._cancelled)
                self._searches.append(search)
                blocks = [found.block for found in search.run()]
                known[key] = names, blocks
            blocks = _smallest(blocks)
            if together is not None:
                blocks = _smallest(
                    block for one, other in product(together, blocks) if (block := merged(one, other)) is not None
                )
            together = blocks
            if self._cancelled() or not together:
                break
            if number == len(self._parts) - 1:
                for block in together[: self.limits.max_topologies]:
                    self._count += 1
                    yield Found(block, time.monotonic() - self._began)
        self._seconds = time.monotonic() - self._began


def _smallest(blocks: Iterable[BlockGraph]) -> list[BlockGraph]:
    """The smallest of each loop nest in turn: without loops there are fewer operators, but not always less to do."""
    nests: dict[Hashable, list[BlockGraph]] = {}
    for block in sorted(blocks, key=lambda block: len(block.ops)):
        nests.setdefault(block.loops, []).append(block)
    turns = zip_longest(*(nest[:LAID] for nest in nests.values()))
    return [block for turn in turns for block in turn if block is not None]
