"""The search: saturate each loop nest, report the first hit of each at once, then extract the rest."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.search.abstract import Algebra
from mugraph.search.extract import Dag, Extraction, smallest
from mugraph.search.frame import Frame, check
from mugraph.search.limits import Found, Limits, Stats
from mugraph.search.saturate import Saturation
from mugraph.search.softmax import is_shift_invariant
from mugraph.search.topology import Topologies

_EXTRACTION_SHARE = 0.5
"""Of the time, kept for reading topologies off when saturation does not end by itself."""
_HIT_WEIGHT = 3
"""Time of a nest with a topology, as a multiple of that of one without."""
_SLICE = 0.05
"""Seconds a nest saturates before the next has its turn."""


def _never() -> bool:
    return False


class _Nest:
    """One set of loops: its saturation and what was built of it."""

    def __init__(self, program: TensorProgram, loops: tuple[str, ...], limits: Limits) -> None:
        self.frame = Frame(program, loops, Algebra())
        direct = len(program.compute_ops) + sum(bool(set(op.over) & set(loops)) for op in program.compute_ops)
        cap = direct + limits.slack
        if direct <= limits.max_block_ops:
            cap = min(cap, limits.max_block_ops)
        self.max_ops = cap
        self.saturation = Saturation(self.frame, cap, limits.max_values)
        self.steps = self.saturation.steps()
        self.topologies = Topologies(self.frame, self.saturation)
        self.built: set[frozenset[tuple[int, object]]] = set()
        self.hit = False
        self.exhausted = False


class Search:
    """All topologies of a program: single-kernel block graphs with at most `limits.max_loops` loops.

    `run()` yields them as they are found, the first of each loop nest before anything else; `stats` says how it ended
    (and, while it runs, how far it is). Raises NotSearchable for programs the search does not cover.
    """

    def __init__(
        self, program: TensorProgram, limits: Limits | None = None, cancelled: Callable[[], bool] = _never
    ) -> None:
        check(program)
        self.program, self.limits, self._cancelled = program, limits or Limits(), cancelled
        self._began = time.monotonic()
        self._count = 0
        self._pruned: Counter[str] = Counter()
        self._nests: list[_Nest] = []
        self._ended_by = "running"
        self._cut = False
        self._late = False
        self._safe = is_shift_invariant(program.ops)

    @property
    def stats(self) -> Stats:
        pruned = sum((nest.saturation.pruned for nest in self._nests), self._pruned)
        values = sum(len(nest.saturation.values) for nest in self._nests)
        complete = self._ended_by in ("space", "size") and self._within()
        return Stats(self._count, values, complete, self._ended_by, dict(pruned), time.monotonic() - self._began)

    def run(self) -> Iterator[Found]:
        """Topologies, each once; ends when the space, the limits or the caller ends it."""
        self._began = time.monotonic()
        waiting: list[_Nest] = []
        for loops in self._loop_sets():
            if self._stop():
                break
            self._nests.append(_Nest(self.program, loops, self.limits))
            waiting.append(self._nests[-1])
            yield from self._first(waiting[-1], _SLICE)
        # The first hit of every nest comes before the rest of any: slices in turn, growing, for a quarter of the time.
        slice_ = _SLICE
        while waiting and not self._stop() and time.monotonic() - self._began < self.limits.seconds / 4:
            waiting = [nest for nest in waiting if not (nest.hit or nest.exhausted)]
            for nest in waiting:
                yield from self._first(nest, slice_)
            slice_ *= 2
        # Nests that gave a topology promise more of them; the time they leave goes to the others.
        order = sorted(self._nests, key=lambda nest: not nest.hit)
        for i, nest in enumerate(order):
            weights = [_HIT_WEIGHT if later.hit else 1 for later in order[i:]]
            yield from self._rest(nest, weights[0] / sum(weights))
        self._ended_by = self._end()

    # ------------------------------------------------------------------ phases

    def _first(self, nest: _Nest, share: float) -> Iterator[Found]:
        """Saturate until the nest's first hit, for `share` seconds at most."""
        began = time.monotonic()
        for added in nest.steps:
            if added:
                target = nest.saturation.targets[-1]
                dag = smallest(nest.saturation, target)
                found = self._build(nest, dag) if dag else None
                if found:
                    nest.hit = True
                    yield found
                    return
            if time.monotonic() - began > share or self._stop():
                return
        nest.exhausted = True

    def _rest(self, nest: _Nest, part: float) -> Iterator[Found]:
        """Saturate to the end, then read off every topology, smallest first, in this part of the time that is left."""
        share = (self.limits.seconds - (time.monotonic() - self._began)) * part
        deadline = time.monotonic() + share * (1 - _EXTRACTION_SHARE)
        end = time.monotonic() + share
        for added in nest.steps:
            if added and not nest.hit:
                dag = smallest(nest.saturation, nest.saturation.targets[-1])
                found = self._build(nest, dag) if dag else None
                if found:
                    nest.hit = True
                    yield found
            if time.monotonic() > deadline or self._stop():
                break
        nest.exhausted = nest.saturation.done
        count = 0
        extraction = Extraction(nest.saturation, nest.max_ops, lambda: self._stop() or time.monotonic() > end)
        for dag in extraction.dags():
            found = self._build(nest, dag)
            if found:
                count += 1
                yield found
            if count >= self.limits.max_topologies:
                self._ended_by = "topologies"
                return
        self._cut = self._cut or extraction.cut
        self._late = self._late or extraction.stopped

    def _build(self, nest: _Nest, dag: Dag) -> Found | None:
        key = frozenset(dag.items())
        if key in nest.built:
            return None
        nest.built.add(key)
        block = nest.topologies.build(dag)
        if block is None:
            self._pruned["nest"] += 1
            return None
        if not self._is_safe(block):
            self._pruned["softmax"] += 1
            return None
        self._count += 1
        return Found(block, time.monotonic() - self._began)

    # ------------------------------------------------------------------ bounds

    def _is_safe(self, block: BlockGraph) -> bool:
        """A program that is a softmax must stay one; a plain exp has no safe form to lose."""
        return not self._safe or is_shift_invariant(block.ops)

    def _loop_sets(self) -> list[tuple[str, ...]]:
        """Sets of axes to loop over: none, then every one the program reduces and does not return, then pairs."""
        (output,) = self.program.outputs
        free = set(self.program.op(output).axes)
        reduced = sorted({axis for op in self.program.ops for axis in op.over} - free)
        return [s for n in range(self.limits.max_loops + 1) for s in itertools.combinations(reduced, n)]

    def _within(self) -> bool:
        return all(nest.saturation.done for nest in self._nests) and len(self._nests) == len(self._loop_sets())

    def _stop(self) -> bool:
        return self._cancelled() or time.monotonic() - self._began > self.limits.seconds

    def _end(self) -> str:
        if self._cancelled():
            return "cancelled"
        if self._late or time.monotonic() - self._began > self.limits.seconds:
            return "time"
        if self._ended_by == "topologies":
            return "topologies"
        if not self._within():
            over = any(len(n.saturation.values) > self.limits.max_values for n in self._nests)
            return "values" if over else "time"
        bounded = self._cut or any(nest.saturation.pruned["size"] for nest in self._nests)
        return "size" if bounded else "space"


def topologies(
    program: TensorProgram, limits: Limits | None = None, cancelled: Callable[[], bool] = _never
) -> Iterator[Found]:
    """Block graphs equal to the program, as they are found. For how the search ended use `Search` itself."""
    return Search(program, limits, cancelled).run()
