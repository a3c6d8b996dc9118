"""Backward extraction: the DAGs of a saturation that compute its targets, smallest first.

A DAG chooses one edge for every value it needs. Values are decided deepest first, so that what is shared is counted
once. Two lower bounds cut the choice: the values that *every* DAG of an undecided value computes, and the length of the
chain below the deepest one.
"""

from __future__ import annotations

from collections.abc import Iterator

from mugraph.search.topologies.edges import Dag, Edge, needs, reaches
from mugraph.search.topologies.saturate import CHOICE, Saturation


def smallest(saturation: Saturation, target: int) -> Dag | None:
    """One small DAG of a target, without a search: the first hit. None where greedy choices run in a circle."""
    chosen: Dag = {}
    todo = [target]
    while todo:
        index = todo.pop()
        if index in chosen or index in saturation.leaves:
            continue
        edge = min(saturation.edges[index], key=lambda edge: sum(saturation.size(i) for i in edge.inputs))
        chosen[index] = edge
        todo.extend(edge.inputs)
    circular = any(reaches(chosen, i, index) for index, edge in chosen.items() for i in edge.inputs)
    return None if circular else chosen


class Extraction:
    """Reads the DAGs of one saturation off.

    work:        choices looked at so far, in the saturation's unit
    complete_to: every DAG up to this many operators has been yielded
    cut:         larger ones than asked for were passed over
    """

    def __init__(self, saturation: Saturation, max_ops: int) -> None:
        self.saturation, self.max_ops = saturation, max_ops
        self.cut = False
        self.work = 0
        self.complete_to = 0
        self._heights = _heights(saturation)
        order = sorted(range(len(self._heights)), key=lambda i: (self._heights[i], i))
        self._rank = {value: rank for rank, value in enumerate(order)}
        self._needs = needs(saturation.edges, saturation.leaves)

    def dags(self) -> Iterator[Dag | None]:
        """Every DAG of every target with at most `max_ops` operators, in order of size; None now and then, so that the
        caller can turn to something else."""
        for size in range(1, self.max_ops + 1):
            self.cut = False  # only what the last, largest size passes over is lost
            for target in self.saturation.targets:
                need = self._needs[target]
                if need.bit_count() > size:
                    self.cut = True
                    continue
                yield from self._decide({}, frozenset({target}), need, size)
            self.complete_to = size

    def _decide(self, chosen: Dag, todo: frozenset[int], need: int, size: int) -> Iterator[Dag | None]:
        """DAGs with exactly `size` operators. need: all values known to be in them, as bits."""
        self.work += CHOICE
        if not self.work % (CHOICE * 64):
            yield None
        if not todo:
            if len(chosen) == size:
                yield dict(chosen)
            return
        heights, leaves = self._heights, self.saturation.leaves
        index = max(todo, key=self._rank.__getitem__)
        height = heights[index]
        # Below `index` lies a chain of one value per height; only values already decided can be shared with it.
        length = len(chosen) + height
        if length > size and length - sum(heights[i] < height for i in chosen) > size:
            self.cut = True
            return
        rest = todo - {index}
        for edge in self.saturation.edges[index]:
            more = need
            for i in edge.inputs:
                more |= self._needs[i]
            if more.bit_count() > size:
                self.cut = True
                continue
            if any(i in chosen and reaches(chosen, i, index) for i in edge.inputs):
                continue
            fresh = frozenset(i for i in edge.inputs if i not in leaves and i not in chosen)
            chosen[index] = edge
            yield from self._decide(chosen, rest | fresh, more, size)
            del chosen[index]


def _heights(saturation: Saturation) -> list[int]:
    """Of each value, the least length of its longest path to a leaf."""
    far = len(saturation.values) + 1
    heights = [0 if i in saturation.leaves else far for i in range(len(saturation.values))]
    users: list[list[tuple[int, Edge]]] = [[] for _ in heights]
    for index, edges in enumerate(saturation.edges):
        for edge in edges:
            for i in set(edge.inputs):
                users[i].append((index, edge))
    changed = sorted(saturation.leaves)
    while changed:
        following: list[int] = []
        for source in changed:
            for index, edge in users[source]:
                height = 1 + max(heights[i] for i in edge.inputs)
                if height < heights[index]:
                    heights[index] = height
                    following.append(index)
        changed = following
    return heights
