"""Thread graphs: element-wise operators of a block graph that run in registers as one (Mirage §4.4).

Greedy and maximal: every element-wise operator joins the thread graph of the operator that uses it, as long as all its
uses lie in that one thread graph and in the same phase, so that its value never leaves the registers.
"""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.mugraph import ThreadGraph
from mugraph.ir.ops import ELEMENTWISE, Kind, Op
from mugraph.optimizer.order import phases


def fuse_threads(block: BlockGraph) -> tuple[ThreadGraph, ...]:
    """Thread graphs of two operators or more, in the order in which their results are computed.

    A thread graph has one result. Constants move into the thread graphs that use them and count as no operator. Two
    operators are of one phase when they vary with the same loops and have left the same loops behind.
    """
    users: dict[str, list[Op]] = {op.name: [] for op in block.ops}
    for op in block.ops:
        for name in op.inputs:
            users[name].append(op)
    phase = _phases(block)
    root: dict[str, str] = {}  # element-wise value -> result of its thread graph
    for op in reversed(block.ops):
        if op.kind not in ELEMENTWISE:
            continue
        roots = {root.get(user.name) for user in users[op.name]}
        only = roots.pop() if len(roots) == 1 else None
        root[op.name] = only if only is not None and phase[only] == phase[op.name] else op.name
    constants = {op.name: op for op in block.ops if op.kind is Kind.CONST}
    graphs: list[ThreadGraph] = []
    for op in block.ops:
        members = [member for member in block.ops if root.get(member.name) == op.name]
        if len(members) > 1:
            graphs.append(_thread_graph(op.name, members, constants))
    return tuple(graphs)


def _thread_graph(name: str, members: list[Op], constants: dict[str, Op]) -> ThreadGraph:
    inside = {member.name for member in members}
    read = list(dict.fromkeys(value for member in members for value in member.inputs if value not in inside))
    own = tuple(constants[value] for value in read if value in constants)
    return ThreadGraph(name, tuple(value for value in read if value not in constants), (*own, *members))


def _phases(block: BlockGraph) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Value -> (loops it varies with, loops left behind)."""
    left = phases(block)
    loops = frozenset(block.loop_axes)
    varies: dict[str, frozenset[str]] = {}
    for op in block.ops:
        if op.kind in (Kind.LOAD, Kind.MASK):
            varies[op.name] = loops.intersection(op.axes)
            continue
        here = frozenset[str]().union(*(varies[name] for name in op.inputs))
        varies[op.name] = here.difference(op.over) if op.kind is Kind.ACCUM else here
    return {name: (varies[name], left[name]) for name in varies}
