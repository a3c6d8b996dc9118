"""Hyperedges between values, and what follows from all the ways to compute one."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from mugraph.ir.ops import Kind


@dataclass(frozen=True, slots=True)
class Edge:
    """One way to compute a value: an operator on values, by number. over: axes reduced, or the loop of an ACCUM."""

    kind: Kind
    inputs: tuple[int, ...]
    over: tuple[str, ...] = ()
    fn: str = ""


Dag = dict[int, Edge]
"""Value -> the edge that computes it, for every value a topology computes; the target is the first key."""


def needs(edges: Sequence[Sequence[Edge]], leaves: Container[int]) -> list[int]:
    """Of each value, the values that all of its DAGs compute, as bits, itself among them (the greatest fixed point);
    0 of a leaf."""
    everything = (1 << len(edges)) - 1
    found = [0 if index in leaves else everything for index in range(len(edges))]
    users: list[dict[int, None]] = [{} for _ in edges]
    for index, own in enumerate(edges):
        for edge in own:
            for i in edge.inputs:
                users[i][index] = None
    todo = dict.fromkeys(index for index in range(len(edges)) if index not in leaves)
    while todo:
        index = next(iter(todo))
        del todo[index]
        shared = everything
        for edge in edges[index]:
            below = 0
            for i in edge.inputs:
                below |= found[i]
            shared &= below
        shared |= 1 << index
        if shared != found[index]:
            found[index] = shared
            todo |= users[index]
    return found


def reaches(chosen: Mapping[int, Edge], start: int, goal: int) -> bool:
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
