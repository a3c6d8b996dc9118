"""A μGraph as SVG: kernels as boxes, loops as boxes in them, operators with the shapes of their tiles.

Tensors in device memory stand outside the kernels, with their shape and the tile a block takes of them. Operators that
run in registers as one thread graph have round ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal

from mugraph.ir.block import Schedule
from mugraph.ir.draw_layout import INPUT, OUTPUT, Layout, layout
from mugraph.ir.draw_words import constants, grid_words, launch_words, loop_words, symbol, tile_shape
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind
from mugraph.ir.placement import loop_paths
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.text_printer import format_op

Theme = Literal["light", "dark"]

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
EM = 0.62
"""Width of a character by its size: an upper bound over the fonts above, so that nothing is cut."""

NODE_HEIGHT = 38.0
ROW = 52.0
GAP = 30.0  # between columns
PAD = 12.0
TITLE = 24.0
LOOP_TITLE = 18.0
MARGIN = 16.0
LEAST_WIDTH, LEAST_HEIGHT = 680.0, 270.0

COLOURS: Mapping[Theme, Mapping[str, str]] = {
    "light": {
        "page": "#ffffff", "text": "#1c2733", "muted": "#5a6978", "edge": "#8794a3",
        "kernel": "#f5f7fa", "kernel-line": "#c3ccd7", "loop": "#e6effc", "loop-line": "#5b8fdb",
        "loop-text": "#2a61b0",        "op": "#ffffff", "op-line": "#9aa7b5", "matmul": "#fdebdb", "matmul-line": "#d88233",
        "reduce": "#e2f4e7", "reduce-line": "#4c9a62", "tensor": "#eceff3", "tensor-line": "#8391a1",
        "output": "#ede6fa", "output-line": "#8661cf",
    },
    "dark": {
        "page": "#12171d", "text": "#e6ebf0", "muted": "#9babbb", "edge": "#6e7d8d",
        "kernel": "#1a2129", "kernel-line": "#3c4855", "loop": "#1a2a42", "loop-line": "#4f82cc",
        "loop-text": "#8fb8f2",        "op": "#242d37", "op-line": "#5c6a79", "matmul": "#43301d", "matmul-line": "#d88a42",
        "reduce": "#1d3a28", "reduce-line": "#58a871", "tensor": "#29323c", "tensor-line": "#6f7e8f",
        "output": "#33284d", "output-line": "#9a7ae0",
    },
}  # fmt: skip
KIND_CLASS: Mapping[Kind, str] = {Kind.DOT: "matmul", Kind.SUM: "reduce", Kind.ACCUM: "reduce"}


def draw_svg(mugraph: MuGraph, theme: Theme = "light") -> str:
    """A complete SVG document. Kernels run from top to bottom; the data in each flows from left to right."""
    pictures = [_picture(kernel, mugraph) for kernel in mugraph.kernels]
    width = max([LEAST_WIDTH, *(picture.width + 2 * MARGIN for picture in pictures)])
    content = sum(picture.height for picture in pictures) + MARGIN * (len(pictures) + 1)
    height = max(LEAST_HEIGHT, content)
    parts: list[str] = []
    y = MARGIN + (height - content) / 2
    for picture in pictures:
        parts.append(f'<g transform="translate({_n((width - picture.width) / 2)} {_n(y)})">{picture.body}</g>')
        y += picture.height + MARGIN
    title = f"μGraph {mugraph.name}: {', '.join(mugraph.inputs)} to {', '.join(mugraph.outputs)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" '
        f'width="{_n(width)}" height="{_n(height)}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{_style(COLOURS[theme])}</style>\n"
        f'<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        f'<path d="M0 0.5 L8 4 L0 7.5 z" fill="{COLOURS[theme]["edge"]}"/></marker></defs>\n'
        f'<rect class="page" width="{_n(width)}" height="{_n(height)}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


@dataclass(frozen=True)
class _Picture:
    width: float
    height: float
    body: str


@dataclass(frozen=True)
class _Node:
    """lines: text and its class; the first is the name, 13 px, the others 11 px."""

    lines: tuple[str, ...]
    look: str
    hint: str = ""
    round: bool = False

    @property
    def width(self) -> float:
        sizes = (13.0, *(11.0 for _ in self.lines[1:]))
        return max(44.0, 16 + max(len(line) * EM * size for line, size in zip(self.lines, sizes, strict=True)))

    @property
    def height(self) -> float:
        return NODE_HEIGHT + 14 * (len(self.lines) - 2) if len(self.lines) > 2 else NODE_HEIGHT


def _picture(kernel: GraphKernel | LibraryKernel, mugraph: MuGraph) -> _Picture:
    return _library(kernel, mugraph) if isinstance(kernel, LibraryKernel) else _kernel(kernel)


def _kernel(kernel: GraphKernel) -> _Picture:
    placed = layout(kernel.block)
    nodes = _nodes(kernel)
    title, subtitle = kernel.name, f"{grid_words(kernel)}; {launch_words(kernel.schedule)}"
    return _Painter(kernel, placed, nodes).paint(title, subtitle)


def _nodes(kernel: GraphKernel) -> dict[str, _Node]:
    block, schedule = kernel.block, kernel.schedule
    numbers = constants(block)
    fused = {op.name for thread in kernel.threads for op in thread.ops}
    nodes: dict[str, _Node] = {}
    for tensor in block.inputs:
        nodes[INPUT + tensor.name] = _tensor(tensor, block.sizes, schedule, "tensor")
    for tensor in block.outputs:
        nodes[OUTPUT + tensor.name] = _tensor(tensor, block.sizes, schedule, "output")
    for op in block.ops:
        if op.kind not in (Kind.LOAD, Kind.STORE, Kind.CONST):
            shape = _product(list(tile_shape(op, block, schedule).values()))
            look = KIND_CLASS.get(op.kind, "op")
            nodes[op.name] = _Node((symbol(op, numbers), shape), look, format_op(op), op.name in fused)
    return nodes


def _tensor(tensor: Tensor, sizes: Sizes, schedule: Schedule | None, look: str) -> _Node:
    shape = f"{tensor.dtype} [{', '.join(str(size) for size in tensor.shape(sizes))}]"
    hint = tensor.source or tensor.name
    if schedule is None:
        return _Node((tensor.name, shape), look, hint)
    tile = [min(schedule.tile(axis, sizes[axis]), sizes[axis]) for axis in tensor.axes]
    return _Node((tensor.name, shape, f"tile {_product(tile)}"), look, hint)


def _product(sizes: list[int]) -> str:
    """`16 × 256`, without the ones."""
    return " × ".join(str(size) for size in sizes if size > 1) or "1"


@dataclass
class _Painter:
    kernel: GraphKernel
    placed: Layout
    nodes: Mapping[str, _Node]

    def paint(self, title: str, subtitle: str) -> _Picture:
        placed, depth = self.placed, self._depth()
        widths = [
            max((node.width for name, node in self.nodes.items() if placed.columns[name] == column), default=20.0)
            for column in range(placed.last + 1)
        ]
        inner = sum(widths[1:-1]) + GAP * max(0, placed.last - 2) + 2 * (PAD + PAD * depth)
        wanted = 20 + EM * (13 * len(title) * 1.08 + 11.5 * len(subtitle)) + 14
        spare = max(0.0, wanted - inner)
        self.x: list[float] = []
        edge = widths[0] + GAP
        x = edge + PAD + PAD * depth + spare / 2
        for width in widths[1:-1]:
            self.x.append(x + width / 2)
            x += width + GAP
        right = edge + inner + spare
        self.x = [widths[0] / 2, *self.x, right + GAP + widths[-1] / 2]
        self.widths = widths
        above = TITLE + (LOOP_TITLE + 4) * depth + 6
        rows = [*placed.rows.values(), *(row for drawn in placed.edges for row in drawn.rows)]
        low, high = min(rows), max(rows)
        inside = [
            *(row for name, row in placed.rows.items() if not name.startswith((INPUT, OUTPUT))),
            *(row for drawn in placed.edges for row in drawn.rows),
        ] or [low, high]
        tallest = max(node.height for node in self.nodes.values())
        self.zero = above + NODE_HEIGHT / 2 + PAD - min(inside) * ROW
        self.zero = max(self.zero, tallest / 2 + 2 - low * ROW)
        bottom = self._y(max(inside)) + NODE_HEIGHT / 2 + PAD + 6 * depth
        height = max(bottom, self._y(high) + tallest / 2 + 2)
        top = self._y(min(inside)) - NODE_HEIGHT / 2 - PAD - above
        frame = (
            f'<rect class="kernel" x="{_n(edge)}" y="{_n(top)}" width="{_n(right - edge)}" '
            f'height="{_n(bottom - top)}" rx="10"/>'
            f'<text class="title" x="{_n(edge + 12)}" y="{_n(top + 18)}">{escape(title)}'
            f'<tspan class="muted" dx="10">{escape(subtitle)}</tspan></text>'
        )
        body = [frame, *self._loops(), *self._edges(), *(self._node(name) for name in self.nodes)]
        return _Picture(right + GAP + widths[-1], height, "\n".join(body))

    def _y(self, row: float) -> float:
        return self.zero + row * ROW

    def _depth(self) -> int:
        return max((len(path) for path in loop_paths(self.kernel.block.loops).values()), default=0)

    def _loops(self) -> list[str]:
        """Outer loops first, so that inner boxes lie on them."""
        paths = loop_paths(self.kernel.block.loops)
        boxes: list[str] = []
        for axis, (first, last, top, bottom) in sorted(self.placed.loops.items(), key=lambda item: len(paths[item[0]])):
            inner = self._depth() - len(paths[axis])  # loops that may lie inside
            words = loop_words(axis, self.kernel.block, self.kernel.schedule)
            left = self.x[first] - self.widths[first] / 2 - PAD - PAD * inner * 0.7
            right = self.x[last] + self.widths[last] / 2 + PAD + PAD * inner * 0.7
            right = max(right, left + 18 + len(words) * EM * 11.5)
            y = self._y(top) - NODE_HEIGHT / 2 - LOOP_TITLE - 4 - (LOOP_TITLE + 4) * inner
            height = self._y(bottom) + NODE_HEIGHT / 2 + 9 + 6 * inner - y
            boxes.append(
                f'<rect class="loop" x="{_n(left)}" y="{_n(y)}" width="{_n(right - left)}" height="{_n(height)}" '
                'rx="8"/>'
                f'<text class="loop-title" x="{_n(left + 9)}" y="{_n(y + 15)}">{escape(words)}</text>'
            )
        return boxes

    def _edges(self) -> list[str]:
        return [self._edge(edge.source, edge.target, edge.rows) for edge in self.placed.edges]

    def _edge(self, source: str, target: str, rows: tuple[float, ...]) -> str:
        """Straight through the columns it passes, bent in the gaps between them."""
        columns = self.placed.columns
        x, y = self.x[columns[source]] + self.nodes[source].width / 2, self._y(self.placed.rows[source])
        path = [f"M{_n(x)} {_n(y)}"]
        for column, row in enumerate(rows, columns[source] + 1):
            left, right = (self.x[column] + side * self.widths[column] / 2 for side in (-1, 1))
            path.append(_bend(x, y, left, self._y(row)))
            path.append(f"H{_n(right)}")
            x, y = right, self._y(row)
        end = self.x[columns[target]] - self.nodes[target].width / 2
        path.append(_bend(x, y, end, self._y(self.placed.rows[target])))
        return f'<path class="edge" d="{" ".join(path)}"/>'

    def _node(self, name: str) -> str:
        return _box(self.nodes[name], self.x[self.placed.columns[name]], self._y(self.placed.rows[name]))


def _box(node: _Node, x: float, y: float) -> str:
    """Centred at (x, y)."""
    first = y - 7 * (len(node.lines) - 1) + 4
    text = "".join(
        f'<text class="{"name" if index == 0 else "muted"} middle" x="{_n(x)}" y="{_n(first + 15 * index)}">'
        f"{escape(line)}</text>"
        for index, line in enumerate(node.lines)
    )
    radius = node.height / 2 if node.round else 6
    return (
        f'<g><title>{escape(node.hint)}</title><rect class="{node.look}" x="{_n(x - node.width / 2)}" '
        f'y="{_n(y - node.height / 2)}" width="{_n(node.width)}" height="{_n(node.height)}" rx="{_n(radius)}"/>'
        f"{text}</g>"
    )


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{_n(middle)} {_n(y)} {_n(middle)} {_n(to_y)} {_n(to_x)} {_n(to_y)}"


def _library(kernel: LibraryKernel, mugraph: MuGraph) -> _Picture:
    """Input tensors, the call, output tensors."""
    tensors = {tensor.name: tensor for tensor in mugraph.tensors}
    sides = [
        [_tensor(tensors[name], mugraph.sizes, None, look) for name in names if name in tensors]
        for names, look in ((kernel.inputs, "tensor"), (kernel.outputs, "output"))
    ]
    call = kernel.call if len(kernel.call) <= 64 else kernel.call[:63] + "…"
    box = _Node((kernel.name, call), "kernel", kernel.call)
    left, right = (max((node.width for node in side), default=0.0) for side in sides)
    height = max(len(sides[0]), len(sides[1]), 1) * (NODE_HEIGHT + 8) - 8 + 4
    x = left + GAP + box.width / 2
    parts: list[str] = []
    for side, nodes in enumerate(sides):
        for index, node in enumerate(nodes):
            y = height / 2 + (index - (len(nodes) - 1) / 2) * (NODE_HEIGHT + 8)
            at = left / 2 if side == 0 else left + box.width + 2 * GAP + right / 2
            start, end = (
                (at + node.width / 2, x - box.width / 2) if side == 0 else (x + box.width / 2, at - node.width / 2)
            )
            ys = (y, height / 2) if side == 0 else (height / 2, y)
            parts.append(f'<path class="edge" d="M{_n(start)} {_n(ys[0])} {_bend(start, ys[0], end, ys[1])}"/>')
            parts.append(_box(node, at, y))
    parts.append(_box(box, x, height / 2))
    return _Picture(left + box.width + right + 2 * GAP, height, "\n".join(parts))


def _style(colours: Mapping[str, str]) -> str:
    boxes = "".join(
        f".{look}{{fill:{colours[look]};stroke:{colours[f'{look}-line']}}}"
        for look in ("kernel", "loop", "op", "matmul", "reduce", "tensor", "output")
    )
    return (
        f"text{{font-family:{FONT};font-size:11px;fill:{colours['text']}}}.page{{fill:{colours['page']}}}{boxes}"
        f".loop{{stroke-dasharray:5 3}}.loop-title{{font-weight:600;font-size:11.5px;fill:{colours['loop-text']}}}"
        f".title,.name{{font-weight:600;font-size:13px}}.muted{{font-weight:400;font-size:11px;fill:{colours['muted']}}}"
        f".middle{{text-anchor:middle}}"
        f".edge{{fill:none;stroke:{colours['edge']};stroke-width:1.4;marker-end:url(#arrow)}}"
    )


def _n(value: float) -> str:
    """One decimal at most: golden files stay the same over platforms."""
    return f"{value:.1f}".removesuffix(".0")
