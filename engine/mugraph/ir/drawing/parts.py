"""What SVG drawings are made of: colours, sizes, nodes, edges' bends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal

from mugraph.ir.block import Schedule
from mugraph.ir.numbers import said
from mugraph.ir.packing import Packs, held, reshaped
from mugraph.ir.tensors import Sizes, Tensor

Theme = Literal["light", "dark"]
Sources = Mapping[tuple[str, str], str]
"""(kernel, what its node is called in `Layout`) -> the node's `source`; (kernel, "") is a library kernel's box."""

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
EM, BOLD_EM = 0.62, 0.72
"""Width of a character by its size: upper bounds over the fonts above, so that nothing is cut."""

NODE_HEIGHT = 38.0
GAP = 30.0  # between columns

COLOURS: Mapping[Theme, Mapping[str, str]] = {
    "light": {
        "page": "#ffffff", "text": "#1c2733", "muted": "#5a6978", "edge": "#8794a3",
        "kernel": "#f5f7fa", "kernel-line": "#c3ccd7", "loop": "#e6effc", "loop-line": "#5b8fdb",
        "loop-text": "#2a61b0", "op": "#ffffff", "op-line": "#9aa7b5", "matmul": "#fdebdb", "matmul-line": "#d88233",
        "reduce": "#e2f4e7", "reduce-line": "#4c9a62", "tensor": "#eceff3", "tensor-line": "#8391a1",
        "output": "#ede6fa", "output-line": "#8661cf",
    },
    "dark": {
        "page": "#12171d", "text": "#e6ebf0", "muted": "#9babbb", "edge": "#6e7d8d",
        "kernel": "#1a2129", "kernel-line": "#3c4855", "loop": "#1a2a42", "loop-line": "#4f82cc",
        "loop-text": "#8fb8f2", "op": "#242d37", "op-line": "#5c6a79", "matmul": "#43301d", "matmul-line": "#d88a42",
        "reduce": "#1d3a28", "reduce-line": "#58a871", "tensor": "#29323c", "tensor-line": "#6f7e8f",
        "output": "#33284d", "output-line": "#9a7ae0",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    width: float
    height: float
    body: str


@dataclass(frozen=True)
class Node:
    """A box with words.

    lines: the name (13 px, bold), then smaller ones (11 px)
    look:  which colours (COLOURS)
    hint:  shown when pointed at
    thread: the thread graph it is in, which gives it round ends; "" for none
    least: least width in px
    source: positions of the places in the user's code that it comes from, with spaces between them; "" for none
    """

    lines: tuple[str, ...]
    look: str
    hint: str = ""
    thread: str = ""
    least: float = 44.0
    source: str = ""

    @property
    def width(self) -> float:
        name, *others = self.lines
        return max(self.least, 14 + max([len(name) * 13 * BOLD_EM, *(len(line) * 11 * EM for line in others)]))

    @property
    def height(self) -> float:
        return NODE_HEIGHT + 12 * (len(self.lines) - 2) if len(self.lines) > 2 else NODE_HEIGHT


def tensor_node(tensor: Tensor, sizes: Sizes, schedule: Schedule | None, look: str, found: Packs = ()) -> Node:
    """found: axes packed into one dimension of the block's tiles."""
    shape = f"{tensor.dtype} [{', '.join(str(size) for size in tensor.memory_shape(sizes))}]"
    hint = said(tensor.source) or tensor.name
    if schedule is None:
        return Node((tensor.name, shape), look, hint)
    inside = held(tensor.axes, found)
    extents = {axis: min(schedule.tile(axis, sizes[axis]), sizes[axis]) for axis in (*tensor.axes, *inside)}
    tile = product([extents[axis] for axis in tensor.axes])
    if not any(axis in pack for pack in found for axis in tensor.axes):
        return Node((tensor.name, shape, f"tile {tile}"), look, hint)
    word = "reshape" if set(inside) == set(tensor.axes) else "repeat"
    together = product(reshaped({axis: extents[axis] for axis in inside}, found))
    return Node((tensor.name, shape, f"{word} {tile} → {together}"), look, hint)


def product(sizes: list[int]) -> str:
    """`16 × 256`, without the ones."""
    return " × ".join(str(size) for size in sizes if size > 1) or "1"


def box(node: Node, x: float, y: float) -> str:
    """Centred at (x, y)."""
    first = y - 6.5 * (len(node.lines) - 1) + 4
    text = "".join(
        f'<text class="{"name" if index == 0 else "muted"} middle" x="{n(x)}" y="{n(first + 14 * index)}">'
        f"{escape(line)}</text>"
        for index, line in enumerate(node.lines)
    )
    radius = node.height / 2 if node.thread else 6
    thread = f' data-thread="{escape(node.thread)}"' if node.thread else ""
    source = f' data-source="{node.source}"' if node.source else ""
    return (
        f'<g{source}{thread}><title>{escape(node.hint)}</title><rect class="{node.look}" x="{n(x - node.width / 2)}" '
        f'y="{n(y - node.height / 2)}" width="{n(node.width)}" height="{n(node.height)}" rx="{n(radius)}"/>'
        f"{text}</g>"
    )


def bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{n(middle)} {n(y)} {n(middle)} {n(to_y)} {n(to_x)} {n(to_y)}"


def style_sheet(colours: Mapping[str, str]) -> str:
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


def n(value: float) -> str:
    """One decimal at most: golden files stay the same over platforms."""
    return f"{value:.1f}".removesuffix(".0")
