"""What the emitter asks of a node: the loops it varies in, its pass over each loop, what it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mugraph.codegen.tile.axes import Plan, Role
from mugraph.codegen.tile.kinds import EXP2
from mugraph.codegen.tile.nodes import Nodes
from mugraph.ir.dtypes import COMPUTED
from mugraph.ir.ops import Kind
from mugraph.ir.tensors import Tensor


def varying(nodes: Nodes, plan: Plan) -> dict[str, frozenset[str]]:
    """Loops in whose iterations each node changes. An accumulator takes its own away."""
    vary: dict[str, frozenset[str]] = {}
    for node in nodes.values():
        if node.kind is Kind.LOAD or node.kind.of_places:
            vary[node.name] = frozenset(axis for axis in node.axes if plan[axis].role is Role.LOOP)
        else:
            below = frozenset[str]().union(*(vary[name] for name in node.inputs))
            vary[node.name] = below - {node.loop}
    return vary


@dataclass(frozen=True)
class Analyses:
    """vary:     loops the node changes in
    passes:   loop -> accumulators of that loop below the node: the pass over the loop in which it can be computed
    below:    all nodes it depends on
    users:    number of uses
    reduced:  axes summed below it
    storage:  types of the tensors loaded below it; what is only stored in its type is a number of any
    """

    vary: Mapping[str, frozenset[str]]
    passes: Mapping[str, Mapping[str, int]]
    below: Mapping[str, frozenset[str]]
    users: Mapping[str, int]
    reduced: Mapping[str, frozenset[str]]
    storage: Mapping[str, frozenset[str]]


def analyse(
    nodes: Nodes, plan: Plan, tensors: Mapping[str, Tensor], storage_of: Mapping[str, tuple[str, ...]]
) -> Analyses:
    """storage_of: tensors that count as other types than their own (sums another kernel left unfinished)."""
    passes: dict[str, dict[str, int]] = {}
    below: dict[str, frozenset[str]] = {}
    users = dict.fromkeys(nodes, 0)
    reduced: dict[str, frozenset[str]] = {}
    storage: dict[str, frozenset[str]] = {}
    for node in nodes.values():
        # The maximum is not a factor of the result: an exponential belongs to the pass of its logits.
        inputs = node.inputs[:1] if node.kind is EXP2 else node.inputs
        counts: dict[str, int] = {}
        for name in inputs:
            for loop, count in passes[name].items():
                counts[loop] = max(counts.get(loop, 0), count)
        if node.loop:
            counts[node.loop] = counts.get(node.loop, 0) + 1
        passes[node.name] = counts
        below[node.name] = frozenset(node.inputs).union(*(below[name] for name in node.inputs))
        reduced[node.name] = node.over.union({node.loop} - {""}, *(reduced[name] for name in node.inputs))
        storage[node.name] = (
            frozenset(storage_of.get(node.tensor, (tensors[node.tensor].dtype,))) & COMPUTED.keys()
            if node.kind is Kind.LOAD
            else frozenset[str]().union(*(storage[name] for name in node.inputs))
        )
        for name in node.inputs:
            users[name] += 1
    return Analyses(varying(nodes, plan), passes, below, users, reduced, storage)
