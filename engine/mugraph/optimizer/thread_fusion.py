"""Thread graphs: operators of a block graph that run as one, the values between them in registers (Mirage §4.2).

An operator joins the thread graph of the operators that use it if all of them are in one thread graph, and if its value
stays in registers on the way to each (ir/registers.py). So thread graphs are as large as they can be. Products and
reductions join too, as the paper's Table 1 has it; its implementation fuses only what is element-wise.

No operator outside of a thread graph lies between two inside, because values leave it only by its result.
"""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.mugraph import ThreadGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.registers import THREAD_LEVEL, leaving


def fuse_threads(block: BlockGraph) -> tuple[ThreadGraph, ...]:
    """Thread graphs of two operators or more, in the order in which their results are computed.

    A thread graph has one result, and its name. Constants move into the thread graphs that use them and count as no
    operator.
    """
    users: dict[str, list[Op]] = {op.name: [] for op in block.ops}
    for op in block.ops:
        for name in op.inputs:
            users[name].append(op)
    leaves = leaving(block)
    root: dict[str, str] = {}  # value -> result of its thread graph
    for op in reversed(block.ops):
        if op.kind not in THREAD_LEVEL:
            continue
        roots = {root.get(user.name, "") for user in users[op.name]}
        stays = len(roots) == 1 and not any(leaves(op, user) for user in users[op.name])
        root[op.name] = roots.pop() if stays else op.name
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
