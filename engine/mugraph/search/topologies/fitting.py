"""Can some values be computed together with at most so many operators?"""

from __future__ import annotations

from collections.abc import Container, Sequence

from mugraph.search.topologies.edges import Dag, Edge, needs, reaches

_STEPS = 1000
"""Choices tried for one question before it is left open."""


class Fitting:
    """Answers for one state of a saturation.

    steps, gave_up: of the last question. count: of the edges of that state
    """

    def __init__(
        self, edges: Sequence[Sequence[Edge]], leaves: Container[int], known: Sequence[int], count: int
    ) -> None:
        """known: of each value, the operators of one small DAG, as bits."""
        self.count = count
        self._edges = [tuple(own) for own in edges]  # as they are now: others come while questions are asked
        self._leaves = leaves
        order = sorted(range(len(edges)), key=lambda i: (known[i].bit_count(), i))
        self._rank = {value: rank for rank, value in enumerate(order)}
        self._needs = needs(edges, leaves)
        self.steps = 0
        self.gave_up = False

    def dag(self, values: Sequence[int], limit: int) -> int:
        """Operators of a DAG of all the values, at most `limit`, as bits; 0 where there is none, or it gave up."""
        self.steps, self.gave_up = 1, False
        need = 0
        for value in values:
            need |= self._needs[value]
        todo = frozenset(value for value in values if value not in self._leaves)
        return self._decide({}, todo, need, limit)

    def _decide(self, chosen: Dag, todo: frozenset[int], need: int, limit: int) -> int:
        if need.bit_count() > limit:
            return 0
        if not todo:
            return need
        self.steps += 1
        if self.steps > _STEPS:
            self.gave_up = True
            return 0
        index = max(todo, key=self._rank.__getitem__)
        rest = todo - {index}
        for edge in self._edges[index]:
            more = need
            for i in edge.inputs:
                more |= self._needs[i]
            if more.bit_count() > limit or any(i in chosen and reaches(chosen, i, index) for i in edge.inputs):
                continue
            fresh = frozenset(i for i in edge.inputs if i not in self._leaves and i not in chosen)
            chosen[index] = edge
            found = self._decide(chosen, rest | fresh, more, limit)
            del chosen[index]
            if found or self.gave_up:
                return found
        return 0
