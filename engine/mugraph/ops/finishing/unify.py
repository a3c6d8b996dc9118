"""Which axes of a built graph are one: a value asked for twice is asked for at the same axes wherever that can be.

RMSNorm + Linear asks for x at the linear's contracted axis and again at the mean's: one axis, one load. Self-attention
asks for x at the queries' rows and at the keys', which meet in the logits: two axes, two loads. Two axes become one
when no operator would see it twice, and when an axis that was reduced does not come back through a product with
another tensor (`x + (x @ w) @ w.T`): there a second name keeps the loop and the grid apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable

_STATES = 8
"""States of the atoms for which the axes of all nodes are remembered: a refused merge goes back to an earlier one."""
_MOST = 2000
"""Nodes that outputs need; a kernel has a few dozen operators. Windows that are shifted (`torch.roll`) are joined of
four parts, of each of which what comes before is computed: two shifts took seconds here, and were refused after it."""


@dataclass(frozen=True, slots=True)
class _Scopes:
    """Axes of a graph's nodes in one state of the atoms.

    seen:    of each node: those it has before its reduction; each set once
    free:    node -> those of its result
    reduced: node -> those it reduces, where it has one for all of them
    """

    seen: frozenset[frozenset[int]]
    free: Mapping[Node, frozenset[int]]
    reduced: Mapping[Node, frozenset[int]]


def reachable(builder: Builder, outputs: Sequence[Node]) -> list[Node]:
    """Nodes the outputs need, inputs before uses."""
    live = set(outputs)
    for node in reversed(builder.nodes):
        if node in live:
            live.update(node.inputs)
    return [node for node in builder.nodes if node in live]


def _scopes(builder: Builder, nodes: Sequence[Node]) -> _Scopes:
    seen: set[frozenset[int]] = set()
    free: dict[Node, frozenset[int]] = {}
    reduced: dict[Node, frozenset[int]] = {}
    for node in nodes:
        over = frozenset(builder.atoms.resolve(node.over))
        own = frozenset(atom for dim in node.dims for atom in builder.atoms.free(dim))
        axes = own.union(over, *(free[i] for i in node.inputs))
        seen.add(axes)
        free[node] = axes if node.kind.scans else axes - over
        if over and not node.kind.scans:
            reduced[node] = over
    return _Scopes(frozenset(seen), free, reduced)


def _returns(nodes: Sequence[Node], scopes: _Scopes, axis: frozenset[int]) -> bool:
    """Does an axis, once reduced, come back through a product with a tensor that has it? axis: two axes that no node
    sees together, as one"""
    below = {node for node, over in scopes.reduced.items() if not over.isdisjoint(axis)}
    if not below:
        return False
    for node in nodes:
        if not below.isdisjoint(node.inputs):
            below.add(node)
        if node.kind.contracts:
            for a, b in (node.inputs, node.inputs[::-1]):
                if a in below and scopes.free[a].isdisjoint(axis) and not scopes.free[b].isdisjoint(axis):
                    return True
    return False


def _merge(
    builder: Builder, nodes: Sequence[Node], outputs: Sequence[AtomDims], one: AtomDim, two: AtomDim,
    known: dict[int, _Scopes],
) -> bool:  # fmt: skip
    """Make the axes of two dimensions equal as far as that is right; did anything change?

    known: state of the atoms -> the axes of the nodes in it, of states met before
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
            known[atoms.state] = _scopes(builder, nodes)
        scopes = known[atoms.state]
        written = (frozenset(x for dim in dims for x in atoms.free(dim)) for dims in outputs)
        if any(a in axes and b in axes for axes in (*scopes.seen, *written)):
            continue
        if not _returns(nodes, scopes, frozenset((a, b))):
            atoms.union(a, b)
            merged = True
    if not merged:
        atoms.restore(before)
    return merged


def unify(builder: Builder, outputs: Sequence[tuple[AtomDims, Node]]) -> None:
    """Merge axes until nothing more can be; later values first, for that settles most of what is below them."""
    nodes = reachable(builder, [node for _, node in outputs])
    if len(nodes) > _MOST:
        raise NotLowerable("it would compute parts of one value again and again, in too many places")
    live = set(nodes)
    dims = [at for at, _ in outputs]
    known: dict[int, _Scopes] = {}
    changed = True
    while changed:
        changed = False
        for value in sorted(builder.demands, reverse=True):
            places = [at for at, node in builder.demands[value].items() if node in live]
            asked = {builder.atoms.resolve_dims(at): at for at in places}.values()  # of equal ones, one
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
