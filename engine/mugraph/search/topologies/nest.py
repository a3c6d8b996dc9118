"""One set of loops in a search: saturate, report the first hit at once, then read every topology off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.through_exp import searchable
from mugraph.search.algebra.abstract import Algebra
from mugraph.search.topologies.edges import Dag
from mugraph.search.topologies.extract import Extraction, smallest
from mugraph.search.topologies.frame import Frame
from mugraph.search.topologies.limits import Limits
from mugraph.search.topologies.saturate import Saturation
from mugraph.search.topologies.softmax import is_shift_invariant
from mugraph.search.topologies.topology import Topologies


@dataclass(frozen=True, slots=True)
class Account:
    """What has become of a nest.

    values:      reached
    complete_to: operators up to which every topology was found
    complete:    every topology within the limits' bound was found
    bounded:     the bound of operators cut something off
    ended_by:    what kept it from its whole space: "values", "memory", "topologies" or "work"; "" for nothing
    bytes:       of memory it holds, by estimate
    """

    values: int
    pruned: Counter[str]
    complete_to: int
    complete: bool
    bounded: bool
    ended_by: str
    bytes: int


class Nest:
    """A generator in turns: `turn` does a piece of the work, so that nests can be worked on side by side.

    work: done so far, in the saturation's unit. hit: it has given a topology. over: nothing is left to do
    saturating: still looking for values
    """

    def __init__(self, program: TensorProgram, loops: tuple[str, ...], limits: Limits) -> None:
        """Raises NotSearchable."""
        self.loops, self._limits = loops, limits
        direct = len(program.compute_ops) + sum(len(set(op.over) & set(loops)) for op in program.compute_ops)
        self.max_ops = direct + limits.slack
        if direct <= limits.max_block_ops:
            self.max_ops = min(self.max_ops, limits.max_block_ops)
        self.hit = self.over = False
        self.saturating = True
        self._is_softmax = is_shift_invariant(program.ops)
        frame = Frame(program, loops, Algebra(searchable(program.ops)))
        self._saturation: Saturation | None = Saturation(frame, self.max_ops, limits.max_values)
        self._extraction: Extraction | None = None
        self._pruned: Counter[str] = Counter()
        self._ended_by = ""
        self._life = self._live(self._saturation, Topologies(frame, self._saturation))
        self._last: tuple[int, Account] | None = None

    @property
    def work(self) -> int:
        if self._last is not None:
            return self._last[0]
        assert self._saturation is not None
        return self._saturation.work + (self._extraction.work if self._extraction else 0)

    @property
    def account(self) -> Account:
        if self._last is not None:
            return self._last[1]
        saturation, extraction = self._saturation, self._extraction
        assert saturation is not None
        reached = saturation.complete_to
        bounded = bool(saturation.pruned["size"]) or (extraction.cut if extraction else False)
        complete_to = max(saturation.least_possible - 1, min(reached, extraction.complete_to if extraction else 0))
        ended_by = self._ended_by or ("" if self.over else "work")
        pruned = saturation.pruned + self._pruned
        complete = complete_to >= min(self.max_ops, self._limits.max_block_ops)
        return Account(len(saturation.values), pruned, complete_to, complete, bounded, ended_by, saturation.bytes)

    def turn(self, work: int) -> Iterator[BlockGraph | None]:
        """Go on until so much more work is done, or it is over. None now and then."""
        until = self.work + work
        for block in self._life:
            yield block
            if self.work >= until:
                return
        self._end()

    def stop_saturating(self, reason: str) -> None:
        """Topologies of the values known so far are read off from the next turn on."""
        if self.saturating:
            self.saturating, self._ended_by = False, reason

    def _end(self) -> None:
        """Keep the account, drop the rest: a search holds no more than it still works on."""
        self.over = True
        self._last = (self.work, self.account)
        self._life = iter(())
        self._saturation = self._extraction = None

    def _live(self, saturation: Saturation, topologies: Topologies) -> Iterator[BlockGraph | None]:
        first: Dag | None = None
        for added in saturation.steps():
            block = None
            if added and not self.hit:
                dag = smallest(saturation, saturation.targets[-1])
                block = self._built(topologies, dag) if dag and len(dag) <= self.max_ops else None
                if block:
                    self.hit, first = True, dag
            yield block
            if not self.saturating:
                break
        else:
            if not saturation.over:
                self._ended_by = "values"
        self.saturating = False
        extraction = self._extraction = Extraction(saturation, self.max_ops)
        count = 0
        for dag in extraction.dags():
            block = self._built(topologies, dag) if dag and dag != first else None
            self.hit = self.hit or block is not None
            yield block
            count += block is not None
            if count >= self._limits.max_topologies:
                self._ended_by = self._ended_by or "topologies"
                return

    def _built(self, topologies: Topologies, dag: Dag) -> BlockGraph | None:
        block = topologies.build(dag)
        if block is None:
            self._pruned["nest"] += 1
            return None
        # A program that is a softmax must stay one; a plain exp has no safe form to lose.
        if self._is_softmax and not is_shift_invariant(block.ops):
            self._pruned["softmax"] += 1
            return None
        return block
