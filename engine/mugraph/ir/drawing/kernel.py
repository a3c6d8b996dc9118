"""The drawing of one graph-defined kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate

from mugraph.ir.drawing.layout import INPUT, LINE, NODE, OUTPUT, Edge, Layout, layout
from mugraph.ir.drawing.parts import (
    BOLD_EM,
    EM,
    GAP,
    NODE_HEIGHT,
    Node,
    Picture,
    Sources,
    bend,
    box,
    n,
    product,
    tensor_node,
)
from mugraph.ir.drawing.words import constants, grid_words, launch_words, loop_words, symbol, tile_shape
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.ops import Kind
from mugraph.ir.packing import packed
from mugraph.ir.placement import loop_paths
from mugraph.ir.text.printer import format_op

ROW = 58.0
PAD = 12.0
NEST = 8.0  # more on each side for every loop inside
TITLE = 24.0
LOOP_TITLE = 18.0


def kernel_picture(kernel: GraphKernel, sources: Sources | None = None, beside: str = "") -> Picture:
    """beside: what is said of other kernels of its launch"""
    placed = layout(kernel.block)
    nodes = {
        name: replace(node, source=(sources or {}).get((kernel.name, name), ""))
        for name, node in _nodes(kernel).items()
    }
    title, subtitle = kernel.name, f"{grid_words(kernel)}; {launch_words(kernel.schedule)}{beside}"
    loop_titles = _loop_titles(kernel, placed)
    titles = 34 + 13 * BOLD_EM * len(title) + 11 * EM * len(subtitle)
    at = _geometry(placed, nodes, loop_titles, titles)
    frame = (
        f'<rect class="kernel" x="{n(at.left)}" y="{n(at.top)}" width="{n(at.right - at.left)}" '
        f'height="{n(at.bottom - at.top)}" rx="10"/>'
        f'<text class="title" x="{n(at.left + 12)}" y="{n(at.top + 18)}">{escape(title)}'
        f'<tspan class="muted" dx="10">{escape(subtitle)}</tspan></text>'
    )
    loops = _loops(placed, loop_titles, at)
    edges = [_edge(edge, placed, nodes, at) for edge in placed.edges]
    boxes = [box(node, at.x[placed.columns[name]], at.y(placed.rows[name])) for name, node in nodes.items()]
    return Picture(at.width, at.height, "\n".join([frame, *loops, *edges, *boxes]))


@dataclass(frozen=True)
class _Geometry:
    """x, widths: centre and width of each column; left .. bottom: the kernel's box; zero: where row 0 is."""

    x: tuple[float, ...]
    widths: tuple[float, ...]
    zero: float
    left: float
    right: float
    top: float
    bottom: float
    width: float
    height: float

    def y(self, row: float) -> float:
        return self.zero + row * ROW


def _geometry(placed: Layout, nodes: Mapping[str, Node], loops: Mapping[str, _LoopTitle], titles: float) -> _Geometry:
    """titles: the least width of the kernel's box."""
    depth = max((title.inner + 1 for title in loops.values()), default=0)
    gap = GAP + 2 * NEST * max(0, depth - 1)
    widths = _widths(placed, nodes, loops, gap)
    inner = sum(widths[1:-1]) + gap * max(0, placed.last - 2) + 2 * PAD * (1 + depth)
    spare = max(0.0, titles - inner)
    left = widths[0] + GAP
    right = left + inner + spare
    starts = accumulate((width + gap for width in widths[1:-1]), initial=left + PAD * (1 + depth) + spare / 2)
    centres = (start + width / 2 for start, width in zip(starts, widths[1:-1], strict=False))
    x = (widths[0] / 2, *centres, right + GAP + widths[-1] / 2)
    above = TITLE + (LOOP_TITLE + 4) * depth - (PAD if depth else 0) + 4
    lines = [row for edge in placed.edges for row in edge.rows]
    rows = [*placed.rows.values(), *lines]
    inside = [row for name, row in placed.rows.items() if not name.startswith((INPUT, OUTPUT))] or rows
    # An edge needs less room than a node.
    first = min([*inside, *(row + NODE - LINE for row in lines)])
    last = max([*inside, *(row - NODE + LINE for row in lines)])
    half = max(node.height for node in nodes.values()) / 2 + 2
    zero = max(above + NODE_HEIGHT / 2 + PAD - first * ROW, half - min(rows) * ROW)
    top = zero + first * ROW - NODE_HEIGHT / 2 - PAD - above
    bottom = zero + last * ROW + NODE_HEIGHT / 2 + PAD + 6 * depth
    height = max(bottom, zero + max(rows) * ROW + half)
    return _Geometry(x, widths, zero, left, right, top, bottom, right + GAP + widths[-1], height)


def _widths(
    placed: Layout, nodes: Mapping[str, Node], loops: Mapping[str, _LoopTitle], gap: float
) -> tuple[float, ...]:
    """Of the columns: what stands in them fits, and so does the title over a loop's columns."""
    widths = [
        max((node.width for name, node in nodes.items() if placed.columns[name] == column), default=20.0)
        for column in range(placed.last + 1)
    ]
    for axis, title in loops.items():
        first, last, _, _ = placed.loops[axis]
        there = sum(widths[first : last + 1]) + gap * (last - first) + 2 * title.side
        widths[last] += max(0.0, title.width - there)
    return tuple(widths)


@dataclass(frozen=True)
class _LoopTitle:
    """inner: loops that may lie inside; side: px between the columns and the box's sides; width: px the words need."""

    words: str
    inner: int

    @property
    def side(self) -> float:
        return PAD + NEST * self.inner

    @property
    def width(self) -> float:
        return 18 + len(self.words) * BOLD_EM * 11.5


def _loop_titles(kernel: GraphKernel, placed: Layout) -> dict[str, _LoopTitle]:
    """Outer loops first, so that inner boxes are drawn on them."""
    paths = loop_paths(kernel.block.loops)
    depth = max((len(paths[axis]) for axis in placed.loops), default=0)
    return {
        axis: _LoopTitle(loop_words(axis, kernel.block, kernel.schedule), depth - len(paths[axis]))
        for axis in sorted(placed.loops, key=lambda axis: len(paths[axis]))
    }


def _loops(placed: Layout, titles: Mapping[str, _LoopTitle], at: _Geometry) -> list[str]:
    boxes: list[str] = []
    for axis, title in titles.items():
        first, last, top, bottom = placed.loops[axis]
        left = at.x[first] - at.widths[first] / 2 - title.side
        right = at.x[last] + at.widths[last] / 2 + title.side
        y = at.y(top) - NODE_HEIGHT / 2 - LOOP_TITLE - 4 - (LOOP_TITLE + 4) * title.inner
        height = at.y(bottom) + NODE_HEIGHT / 2 + 9 + 6 * title.inner - y
        boxes.append(
            f'<rect class="loop" x="{n(left)}" y="{n(y)}" width="{n(right - left)}" height="{n(height)}" rx="8"/>'
            f'<text class="loop-title" x="{n(left + 9)}" y="{n(y + 15)}">{escape(title.words)}</text>'
        )
    return boxes


def _edge(edge: Edge, placed: Layout, nodes: Mapping[str, Node], at: _Geometry) -> str:
    """Straight through the columns it passes, bent in the gaps between them."""
    source, target = placed.columns[edge.source], placed.columns[edge.target]
    x, y = at.x[source] + nodes[edge.source].width / 2, at.y(placed.rows[edge.source])
    path = [f"M{n(x)} {n(y)}"]
    for column, row in enumerate(edge.rows, source + 1):
        left, right = (at.x[column] + side * at.widths[column] / 2 for side in (-1, 1))
        path.append(bend(x, y, left, at.y(row)))
        path.append(f"H{n(right)}")
        x, y = right, at.y(row)
    end = at.x[target] - nodes[edge.target].width / 2
    path.append(bend(x, y, end, at.y(placed.rows[edge.target])))
    return f'<path class="edge" d="{" ".join(path)}"/>'


def _nodes(kernel: GraphKernel) -> dict[str, Node]:
    block, schedule = kernel.block, kernel.schedule
    numbers = constants(block)
    found = packed(block, schedule)
    fused = {op.name: thread.name for thread in kernel.threads for op in thread.ops}
    nodes: dict[str, Node] = {}
    for tensor in block.inputs:
        nodes[INPUT + tensor.name] = tensor_node(tensor, block.sizes, schedule, "tensor", found)
    for tensor in block.outputs:
        nodes[OUTPUT + tensor.name] = tensor_node(tensor, block.sizes, schedule, "output", found)
    for op in block.ops:
        if op.kind not in (Kind.LOAD, Kind.STORE, Kind.CONST):
            shape = product(list(tile_shape(op, block, schedule).values()))
            nodes[op.name] = Node((symbol(op, numbers), shape), op.kind.look, format_op(op), fused.get(op.name, ""))
    # Tensors of one side are equally wide: they read as a column.
    for side in (INPUT, OUTPUT):
        names = [name for name in nodes if name.startswith(side)]
        least = max((nodes[name].width for name in names), default=0.0)
        nodes.update({name: replace(nodes[name], least=least) for name in names})
    return nodes
