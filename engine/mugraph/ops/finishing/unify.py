"""Which axes of a built graph are one: a value asked for twice is asked for at the same axes wherever that can be.

RMSNorm + Linear asks for x at the linear's contracted axis and again at the mean's: one axis, one load. Self-attention
asks for x at the queries' rows and at the keys', which meet in the logits: two axes, two loads. Two axes become one
when no operator would see it twice, and when an axis that was reduced does not come back through a product with
another tensor (`x + (x @ w) @ w.T`): there a second name keeps the loop and the grid apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node

AxisSets = dict[Node, frozenset[int]]
_STATES = 8
"""States of the atoms for which the axes of all nodes are remembered: a refused merge goes back to an earlier one."""


def reachable(builder: Builder, outputs: Sequence[Node]) -> list[Node]:
    """Nodes the outputs need, inputs before uses."""
    live = set(outputs)
    for node in reversed(builder.nodes):
        if node in live:
            live.update(node.inputs)
    return [node for node in builder.nodes if node in live]


def scopes(builder: Builder, nodes: Sequence[Node]) -> tuple[AxisSets, AxisSets]:
    """Of every node: the axes it sees (before its reduction), and those its result has."""
    seen: AxisSets = {}
    free: AxisSets = {}
    for node in nodes:
        over = frozenset(builder.atoms.resolve(node.over))
        seen[node] = frozenset(atom for dim in node.dims for atom in builder.atoms.free(dim)).union(
            over, *(free[i] for i in node.inputs)
        )
        free[node] = seen[node] if node.kind.scans else seen[node] - over
    return seen, free


def _returns(builder: Builder, nodes: Sequence[Node], axis: int) -> bool:
    """Does `axis`, once reduced, come back through a product with a tensor that has it?"""
    _, free = scopes(builder, nodes)
    reduced: set[Node] = set()
    for node in nodes:
        own = () if node.kind.scans else builder.atoms.resolve(node.over)
        if any(i in reduced for i in node.inputs) or axis in own:
            reduced.add(node)
        if node.kind.contracts:
            for a, b in (node.inputs, node.inputs[::-1]):
                if a in reduced and axis not in free[a] and axis in free[b]:
                    return True
    return False


def _merge(
    builder: Builder, nodes: Sequence[Node], outputs: Sequence[AtomDims], one: AtomDim, two: AtomDim,
    known: dict[int, AxisSets],
) -> bool:  # fmt: skip
    """Make the axes of two dimensions equal as far as that is right; did anything change?

    known: state of the atoms -> the axes that each node sees in it, of states met before
    """
    atoms = builder.atoms
    if atoms.resolve(one) == atoms.resolve(two):
        return False
    before = atoms.snapshot()
    pairs = atoms.align(one, two)
    merged = False
    for a, b in pairs or ():
        a, b = atoms.resolve((a,))[0], atoms.resolve((b,))[0]
        if a == b:
            continue
        if atoms.state not in known:
            if len(known) > _STATES:
                known.clear()
            known[atoms.state] = scopes(builder, nodes)[0]
        seen = known[atoms.state]
        written = (frozenset(x for dim in dims for x in atoms.free(dim)) for dims in outputs)
        if any(a in axes and b in axes for axes in (*seen.values(), *written)):
            continue
        trial = atoms.snapshot()
        atoms.union(a, b)
        if _returns(builder, nodes, a):
            atoms.restore(trial)
        else:
            merged = True
    if not merged:
        atoms.restore(before)
    return merged


def unify(builder: Builder, outputs: Sequence[tuple[AtomDims, Node]]) -> None:
    """Merge axes until nothing more can be; later values first, for that settles most of what is below them."""
    nodes = reachable(builder, [node for _, node in outputs])
    live = set(nodes)
    dims = [at for at, _ in outputs]
    known: dict[int, AxisSets] = {}
    changed = True
    while changed:
        changed = False
        for value in sorted(builder.demands, reverse=True):
            asked = [at for at, node in builder.demands[value].items() if node in live]
            for one, two in combinations(asked, 2):
                for a, b in zip(one, two, strict=True):
                    changed |= _merge(builder, nodes, dims, a, b, known)
        for one, two in combinations((node for node in nodes if node.windows), 2):
            if _read_alike(builder, one, two):
                for a, b in zip(one.runs, two.runs, strict=True):
                    changed |= _merge(builder, nodes, dims, a, b, known)


def _read_alike(builder: Builder, one: Node, two: Node) -> bool:
    """Do both read one tensor through the same windows?"""
    windows = [[window for window, _ in node.windows] for node in (one, two)]
    sizes = [[builder.atoms.elements(builder.atoms.resolve(run)) for run in node.runs] for node in (one, two)]
    return one.source == two.source and windows[0] == windows[1] and sizes[0] == sizes[1]
