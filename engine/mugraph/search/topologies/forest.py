"""The tree of loops that runs a DAG (MCFuser §3: deep and flat tiling expressions)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mugraph.ir.block import Loop


def forest(
    axes: Sequence[str], inside: Mapping[str, Collection[str]], after: Mapping[str, Collection[str]]
) -> tuple[Loop, ...] | None:
    """The loops as trees, outermost first and in the order they run; None where there is no such order.

    inside: loop -> the loops in each of whose iterations it runs
    after:  loop -> the loops whose results are used by a value that varies in it
    """
    around = {axis: frozenset(inside[axis]) for axis in axes}
    parent: dict[str, str] = {}
    for axis in axes:
        if axis in around[axis]:
            return None
        outer = max(around[axis], key=lambda other: len(around[other]), default="")
        if outer and around[outer] | {outer} != around[axis]:
            return None
        parent[axis] = outer
        if around[axis].intersection(after[axis]):  # the result of a loop is not known inside of the loop
            return None

    def subtree(axis: str) -> frozenset[str]:
        return frozenset(other for other in axes if other == axis or axis in around[other])

    def trees(outer: str) -> tuple[Loop, ...] | None:
        waiting = [axis for axis in axes if parent[axis] == outer]
        waits = {axis: frozenset(x for one in subtree(axis) for x in after[one]) for axis in waiting}
        loops: list[Loop] = []
        while waiting:
            ready = [
                axis for axis in waiting if not any(waits[axis] & subtree(other) for other in waiting if other != axis)
            ]
            if not ready:
                return None
            waiting.remove(ready[0])
            body = trees(ready[0])
            if body is None:
                return None
            loops.append(Loop(ready[0], body))
        return tuple(loops)

    return trees("")
