"""Backward extraction: the DAGs of a saturation that compute its targets, smallest first.

A DAG chooses one edge for every value it needs. Values are decided deepest first, so that what is shared is counted
once; the bound is on decided and undecided values together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mugraph.search.saturate import Edge, Saturation

Dag = dict[int, Edge]
"""Value -> the edge that computes it, for every value a topology computes; the target is the first key."""


def smallest(saturation: Saturation, target: int) -> Dag | None:
    """One small DAG of a target, without a search: the first hit. None where greedy choices run in a circle."""
    chosen: Dag = {}
    todo = [target]
    while todo:
        index = todo.pop()
        if index in chosen or index in saturation.leaves:
            continue
        edges = saturation.edges[index]
        edge = min(edges, key=lambda edge: sum(saturation.size(i) for i in edge.inputs))
        chosen[index] = edge
        todo.extend(edge.inputs)
    return chosen if all(not _reaches(chosen, i, v) for v, edge in chosen.items() for i in edge.inputs) else None


def dags(saturation: Saturation, max_ops: int, cancelled: Callable[[], bool]) -> Iterator[Dag]:
    """Every DAG of every target with at most `max_ops` operators, in order of size, until cancelled."""
    heights = _heights(saturation)
    for size in range(1, max_ops + 1):
        for target in saturation.targets:
            yield from _exactly(saturation, heights, target, size, cancelled)
        if cancelled():
            return


def _exactly(
    saturation: Saturation, heights: list[int], target: int, size: int, cancelled: Callable[[], bool]
) -> Iterator[Dag]:
    """DAGs of `target` with exactly `size` operators."""
    if heights[target] > size:
        return
    chosen: Dag = {}
    edges, leaves = saturation.edges, saturation.leaves
    steps = 0

    def decide(todo: frozenset[int]) -> Iterator[Dag]:
        nonlocal steps
        steps += 1
        if not steps % 256 and cancelled():
            return
        if not todo:
            if len(chosen) == size:
                yield dict(chosen)
            return
        index = max(todo, key=lambda i: (heights[i], i))
        height = heights[index]
        # Below `index` lies a chain of one value per height; only values already decided can be shared with it.
        if len(chosen) + height - sum(heights[i] < height for i in chosen) > size:
            return
        rest = todo - {index}
        for edge in edges[index]:
            fresh = frozenset(i for i in edge.inputs if i not in leaves and i not in chosen)
            after = rest | fresh
            if len(chosen) + 1 + len(after) > size:
                continue
            if any(i in chosen and _reaches(chosen, i, index) for i in edge.inputs):
                continue
            chosen[index] = edge
            yield from decide(after)
            del chosen[index]

    yield from decide(frozenset({target}))


def _reaches(chosen: Dag, start: int, goal: int) -> bool:
    """Is `goal` among what `start` is computed from, as far as decided?"""
    stack, seen = [start], {start}
    while stack:
        index = stack.pop()
        if index == goal:
            return True
        edge = chosen.get(index)
        for i in edge.inputs if edge else ():
            if i not in seen:
                seen.add(i)
                stack.append(i)
    return False


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
