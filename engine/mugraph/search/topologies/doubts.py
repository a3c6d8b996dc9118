"""Operators that were cut by size although a smaller way to their operands may be there.

A saturation takes the smallest DAG of two values to be that of their smallest DAGs together. Larger DAGs of the two
may share more, and be smaller together. So what the bound cut off is asked again once nothing else is left to reach,
and again whenever a new way to some value has turned up since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence

from mugraph.search.topologies.edges import Edge
from mugraph.search.topologies.fitting import Fitting

Operands = tuple[int, ...]
"""One value, or two."""


class Doubts:
    """Questions about one saturation.

    work: of the last question, in choices between edges
    """

    def __init__(self, max_ops: int) -> None:
        self.work = 0
        self._max_ops = max_ops
        self._after: dict[Operands, int] = {}  # -> operators that would follow one on these, at least
        self._answers: dict[
            Operands, tuple[int, int]
        ] = {}  # -> edges known when asked; operators needed then, at least
        self._questions: deque[Operands] = deque()
        self._fitting: Fitting | None = None

    def add(self, operands: Operands, after: int) -> None:
        """An operator on these was cut, and at least so many would follow it."""
        before = self._after.get(operands, after)
        self._after[operands] = min(after, before)
        if after < before:
            self._answers.pop(operands, None)

    def ask(
        self, edges: Sequence[Sequence[Edge]], leaves: Container[int], known: Sequence[int], count: int
    ) -> tuple[Operands, int] | None:
        """The next question: operands, and the operators of a DAG of them that fits, as bits, 0 for none. None where
        nothing is left to ask.

        known: of each value, the operators of one small DAG, as bits. count: of the edges
        """
        self.work = 0
        if not self._questions:
            self._questions.extend(key for key in self._after if self._answers.get(key, (-1, 0))[0] != count)
            self._fitting = Fitting(edges, leaves, known, count) if self._questions else None
            self.work += len(edges)
        if not self._questions or self._fitting is None:
            return None
        operands = self._questions.popleft()
        dag = self._answer(operands, self._fitting)
        if dag:
            del self._after[operands]
            self._answers.pop(operands, None)
        return operands, dag

    def lost(self, count: int) -> Iterator[tuple[Operands, int, int]]:
        """What is still cut: the operands, the operators that follow one on them, and the least operators of a topology
        with it, 0 where that was not asked. count: of the edges known now"""
        for operands, after in self._after.items():
            asked, least = self._answers.get(operands, (-1, 0))
            yield operands, after, least if asked == count else 0

    def _answer(self, operands: Operands, fitting: Fitting) -> int:
        """A DAG that fits, or 0. A question that is too hard is asked again with fewer operators, which is easier; a
        "none" then says how large what is lost must be at least."""
        after = self._after[operands]
        room = self._max_ops - 1 - after
        while room >= 0:
            dag = fitting.dag(operands, room)
            self.work += fitting.steps
            if dag:
                return dag
            if not fitting.gave_up:
                break
            room -= 1
        self._answers[operands] = fitting.count, room + 1 + 1 + after
        return 0
