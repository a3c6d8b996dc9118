"""Where the nodes of one kernel's drawing go: columns from left to right, igraph's Sugiyama layout within them.

Columns follow the data flow. A loop has columns of its own: operators that feed it are to the left of them, all
others to the right, so that the loop's box holds only its own operators. Accumulators are in the last column of the
loop they close.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind
from mugraph.ir.placement import placement

INPUT, OUTPUT = "in ", "out "
"""Prefixes of the nodes of tensors in device memory, apart from the names of values."""


NODE, LINE = 0.35, 0.15
"""Half the height of a node and the room beside an edge, in rows."""

Box = tuple[int, int, float, float]
"""First and last column, top and bottom row (of nodes: half a node more lies inside)."""


@dataclass(frozen=True)
class Edge:
    """From node to node, through one row of each column between them."""

    source: str
    target: str
    rows: tuple[float, ...]


@dataclass(frozen=True)
class Layout:
    """columns: node -> column, 0 for input tensors, `last` for output tensors
    rows: node -> vertical position; two nodes of one column are at least 1 apart
    loops: loop axis -> its first and last column, and the rows its box spans
    """

    columns: Mapping[str, int]
    rows: Mapping[str, float]
    edges: tuple[Edge, ...]
    loops: Mapping[str, Box]
    last: int


def graph_edges(block: BlockGraph) -> list[tuple[str, str]]:
    """Between the drawn nodes: tensors and operators. Loads and stores are edges, constants are words."""
    names: dict[str, str] = {}
    edges: dict[tuple[str, str], None] = {}
    for op in block.ops:
        if op.kind is Kind.LOAD:
            names[op.name] = INPUT + op.tensor
        elif op.kind is not Kind.CONST:
            names[op.name] = OUTPUT + op.tensor if op.kind is Kind.STORE else op.name
            edges.update({(names[name], names[op.name]): None for name in op.inputs if name in names})
    return list(edges)


def layout(block: BlockGraph) -> Layout:
    edges = graph_edges(block)
    bodies = _bodies(block)
    ops = [op.name for op in block.ops if op.kind not in (Kind.LOAD, Kind.STORE, Kind.CONST)]
    columns = _columns(block, ops, edges, bodies)
    last = max([*columns.values(), 0]) + 1
    nodes = [*(INPUT + tensor.name for tensor in block.inputs), *ops, *(OUTPUT + t.name for t in block.outputs)]
    for node in nodes:
        columns.setdefault(node, 0 if node.startswith(INPUT) else last)
    rows, drawn = _sugiyama(nodes, edges, columns)
    return _with_bypasses(columns, rows, drawn, bodies, last)


def _bodies(block: BlockGraph) -> dict[str, set[str]]:
    """Loop -> operators in it or in a loop inside it, loops in tree order."""
    placed = placement(block)
    shown = [op.name for op in block.ops if op.kind not in (Kind.LOAD, Kind.STORE, Kind.CONST)]
    return {axis: {name for name in shown if axis in placed[name]} for axis in block.loop_axes}


def _columns(
    block: BlockGraph, ops: list[str], edges: list[tuple[str, str]], bodies: Mapping[str, set[str]]
) -> dict[str, int]:
    """Longest paths under: data flows right; each loop has its own run of columns (nodes "start h" and "end h")."""
    after: defaultdict[str, dict[str, int]] = defaultdict(dict)  # node -> {earlier node: least distance}
    for source, target in edges:
        if source in ops and target in ops:
            after[target][source] = 1
    ancestors = _ancestors(ops, edges)

    def apart(loops: Sequence[Loop], around: Collection[str]) -> None:
        """Keeps the loops of one body apart. To the left of a loop are the operators that feed it, and an earlier
        loop with all that feeds that one; all others are to its right."""
        earlier: set[str] = set()
        for loop in _by_data(loops, bodies, ancestors):
            body = bodies[loop.axis]
            earlier |= {name for member in body for name in ancestors[member]} - body
            start, end = f"start {loop.axis}", f"end {loop.axis}"
            for name in around:
                if name in body:
                    after[name][start] = 0
                    after[end][name] = 0
                elif name in earlier:
                    after[start][name] = 1
                else:
                    after[name][end] = 1
            earlier |= body
            apart(loop.body, body)

    apart(block.loops, ops)
    columns: dict[str, int] = {}

    def column(node: str) -> int:
        if node not in columns:
            columns[node] = 1
            columns[node] = max((column(other) + gap for other, gap in after[node].items()), default=1)
        return columns[node]

    for name in (*ops, *(f"end {axis}" for axis in bodies)):
        column(name)
    for op in block.ops:
        if op.kind is Kind.ACCUM and op.over[0] in bodies:
            columns[op.name] = columns[f"end {op.over[0]}"]
    return {name: columns[name] for name in ops}


def _by_data(
    loops: Sequence[Loop], bodies: Mapping[str, set[str]], ancestors: Mapping[str, set[str]]
) -> Iterator[Loop]:
    """The loops of one body in the order of the data: a loop comes after those that compute what it reads. Loops
    without operators are left out."""
    waiting = [loop for loop in loops if bodies[loop.axis]]
    while waiting:
        reads = {loop.axis: {name for member in bodies[loop.axis] for name in ancestors[member]} for loop in waiting}
        ready = (
            loop
            for loop in waiting
            if not any(reads[loop.axis] & bodies[other.axis] for other in waiting if other is not loop)
        )
        loop = next(ready, waiting[0])
        waiting.remove(loop)
        yield loop


def _ancestors(ops: list[str], edges: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Operators each operator depends on; `ops` is in dependency order."""
    ancestors: dict[str, set[str]] = {name: set() for name in ops}
    for name in ops:
        for source, target in edges:
            if target == name and source in ancestors:
                ancestors[name] |= {source, *ancestors[source]}
    return ancestors


def _sugiyama(
    nodes: list[str], edges: list[tuple[str, str]], columns: Mapping[str, int]
) -> tuple[dict[str, float], list[Edge]]:
    """Rows of the nodes, and of each edge in every column it passes.

    Every edge gets a vertex of its own in each column it passes: igraph makes such vertices too, but keeps them to
    itself.
    """
    import igraph  # takes long, and the words that reports share with drawings need none of it

    index = {node: number for number, node in enumerate(nodes)}
    layers = [columns[node] for node in nodes]
    joined: list[tuple[int, int]] = []
    passed: list[range] = []
    for source, target in edges:
        between = range(columns[source] + 1, columns[target])
        passed.append(range(len(layers), len(layers) + len(between)))
        layers.extend(between)
        path = [index[source], *passed[-1], index[target]]
        joined.extend(pairwise(path))
    graph = igraph.Graph(n=len(layers), edges=joined, directed=True)
    # igraph has no stubs for layouts.
    placed = graph.layout_sugiyama(layers=layers, hgap=1, vgap=1, maxiter=500)  # pyright: ignore[reportUnknownMemberType]
    rows = [float(row) for row, _ in cast("list[list[float]]", placed.coords)]  # pyright: ignore[reportUnknownMemberType]
    _spread(rows, layers)
    drawn = [
        Edge(source, target, tuple(rows[vertex] for vertex in between))
        for (source, target), between in zip(edges, passed, strict=True)
    ]
    return {node: rows[index[node]] for node in nodes}, drawn


def _spread(rows: list[float], layers: Sequence[int]) -> None:
    """At least 1 between two vertices of a column: igraph comes closer where the graph has several components."""
    for layer in set(layers):
        column = sorted((vertex for vertex, at in enumerate(layers) if at == layer), key=lambda vertex: rows[vertex])
        for above, below in pairwise(column):
            rows[below] = max(rows[below], rows[above] + 1)


def _boxes(
    columns: Mapping[str, int], rows: Mapping[str, float], edges: Sequence[Edge], bodies: Mapping[str, set[str]]
) -> dict[str, Box]:
    """Around each loop's operators and the edges that lead to them or between them."""
    boxes: dict[str, Box] = {}
    for axis, body in bodies.items():
        if body:
            first, last = min(columns[name] for name in body), max(columns[name] for name in body)
            spanned = [rows[name] + side for name in body for side in (-NODE, NODE)]
            for edge in edges:
                if edge.target in body:
                    passing = enumerate(edge.rows, columns[edge.source] + 1)
                    lines = [row for column, row in passing if first <= column <= last]
                    spanned += [row + side for row in lines for side in (-LINE, LINE)]
            boxes[axis] = (first, last, min(spanned) + NODE, max(spanned) - NODE)
    return boxes


def _with_bypasses(
    columns: Mapping[str, int], rows: dict[str, float], edges: list[Edge], bodies: Mapping[str, set[str]], last: int
) -> Layout:
    """Leads edges that pass a loop without touching it below the loop's box, each source in a lane of its own."""
    boxes = _boxes(columns, rows, edges, bodies)
    lanes: dict[str, float] = {}
    moved: list[Edge] = []
    for edge in edges:
        passed = [box for box in boxes.values() if columns[edge.source] < box[0] and columns[edge.target] > box[1]]
        if passed and edge.source not in lanes:
            lanes[edge.source] = max(box[3] for box in passed) + 0.8 + 0.35 * len(lanes)
        around = {column for box in passed for column in range(box[0], box[1] + 1)}
        through = tuple(
            lanes[edge.source] if column in around else row
            for column, row in enumerate(edge.rows, columns[edge.source] + 1)
        )
        moved.append(Edge(edge.source, edge.target, through))
    for node in lanes:
        # A tensor that is only read behind the loop stands beside its lane.
        if columns[node] == 0 and all(edge.rows and lanes[node] in edge.rows for edge in moved if edge.source == node):
            others = [row for other, row in rows.items() if other != node and columns[other] == 0]
            rows[node] = max([lanes[node], *(row + 1 for row in others)])
    return Layout(columns, rows, tuple(moved), _boxes(columns, rows, moved, bodies), last)
