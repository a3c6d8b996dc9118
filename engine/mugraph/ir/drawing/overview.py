"""A μGraph small enough for a hover: its kernels, their loops and, where there is room, what they compute, in letters
that stay readable at two thirds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from mugraph.ir.drawing.parts import BOLD_EM, COLOURS, EM, FONT, Theme, n
from mugraph.ir.drawing.words import beside_words, constants, expression, grid_words, loop_words
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.placement import loop_paths, placement

WIDTH, HEIGHT = 680.0, 270.0
MARGIN = 12.0
SIZE = 16.0  # px; 11 px where the picture is shown 472 px wide
LINE = SIZE * 1.2
COLUMN = 200.0
"""px that an operator takes at least."""
MOST = 3
"""Kernels with a row of their own; of more, the last row says how many there are."""


def draw_overview(mugraph: MuGraph, theme: Theme = "light") -> str:
    """A complete SVG document, `WIDTH` wide and at most `HEIGHT` high."""
    kernels = mugraph.kernels if len(mugraph.kernels) <= MOST else mugraph.kernels[: MOST - 1]
    left = len(mugraph.kernels) - len(kernels)
    rows = len(kernels) + (1 if left else 0)
    top = MARGIN + SIZE * 1.6
    most = (HEIGHT - top - MARGIN * rows) / rows
    flow = f"{', '.join(mugraph.inputs)} → {', '.join(mugraph.outputs)}"
    parts = [_text("flow", MARGIN, MARGIN + SIZE, flow, WIDTH - 2 * MARGIN)]
    y = top
    for kernel in kernels:
        height = min(most, _library_height() if isinstance(kernel, LibraryKernel) else _kernel_height(kernel))
        parts.append(
            _library(kernel, y, height) if isinstance(kernel, LibraryKernel) else _kernel(kernel, y, height, mugraph)
        )
        y += height + MARGIN
    if left:
        parts.append(_text("muted", MARGIN, y + SIZE, f"and {left} more kernels and calls", WIDTH - 2 * MARGIN))
        y += SIZE + MARGIN
    total = min(HEIGHT, y)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {n(WIDTH)} {n(total)}" width="{n(WIDTH)}" '
        f'height="{n(total)}" role="img" aria-label="{escape(f"μGraph {mugraph.name}: {flow}")}">\n'
        f"<style>{_style(theme)}</style>\n"
        f'<rect class="page" width="{n(WIDTH)}" height="{n(total)}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _places(kernel: GraphKernel) -> list[tuple[str, list[Op]]]:
    """Each loop's words and the operators in it, and last those outside of loops."""
    block = kernel.block
    around = placement(block)
    places: list[tuple[str, list[Op]]] = []
    for path in loop_paths(block.loops).values():
        words = ", ".join(loop_words(axis, block, kernel.schedule) for axis in path)
        places.append((words, [op for op in block.block_ops if around[op.name] == path]))
    outside = [op for op in block.block_ops if not around[op.name]]
    if outside or not places:
        places.append(("", outside))
    return places


def _kernel_height(kernel: GraphKernel) -> float:
    """What shows all operators in one column."""
    rows = max(bool(words) + len(_shown(operators)) for words, operators in _places(kernel))
    return SIZE * 2.0 + LINE * rows + MARGIN * 1.5


def _library_height() -> float:
    return SIZE * 3.6


def _kernel(kernel: GraphKernel, y: float, height: float, mugraph: MuGraph) -> str:
    """The box, its name and grid, and in it the loops from left to right, nested ones inside."""
    block = kernel.block
    room = WIDTH - 4 * MARGIN
    title = _text("name", 2 * MARGIN, y + SIZE * 1.4, kernel.name, room)
    used = len(_cut(kernel.name, room, BOLD_EM)) * SIZE * BOLD_EM + 2 * MARGIN
    words = f"{grid_words(kernel)}{beside_words(mugraph, kernel.name)}"
    grid = _text("muted", 2 * MARGIN + used, y + SIZE * 1.4, words, room - used)
    numbers = constants(block)
    places = _places(kernel)
    boxes: list[str] = []
    width = (room - MARGIN * (len(places) - 1)) / len(places)
    first = y + SIZE * 2.0
    for number, (words, operators) in enumerate(places):
        x = 2 * MARGIN + number * (width + MARGIN)
        tall = max(0.0, y + height - MARGIN / 2 - first)
        if words:
            boxes.append(_box("loop", x, first, width, tall))
        if words:
            boxes.append(_text("loop-title", x + 8, first + LINE, words, width - 16))
        boxes += _inside(operators, numbers, x + 8, first + LINE * bool(words), width - 16, tall - LINE * bool(words))
    return "".join([_box("kernel", MARGIN, y, WIDTH - 2 * MARGIN, height), title, grid, *boxes])


def _library(kernel: LibraryKernel, y: float, height: float) -> str:
    room = WIDTH - 4 * MARGIN
    return "".join(
        [
            _box("kernel", MARGIN, y, WIDTH - 2 * MARGIN, height),
            _text("name", 2 * MARGIN, y + SIZE * 1.4, kernel.name, room),
            _text("muted", 2 * MARGIN, y + SIZE * 2.8, kernel.call, room) if height >= SIZE * 3.2 else "",
        ]
    )


def _inside(
    operators: list[Op], numbers: Mapping[str, str], x: float, y: float, width: float, height: float
) -> list[str]:
    """What is computed, operator by operator, in as many columns as it takes; where that is too much, how many
    operators there are."""
    lines = [f"{op.name} = {expression(op, numbers)}" for op in _shown(operators)]
    rows, most = int(height / LINE), max(1, int(width / COLUMN))
    if len(lines) > rows * most:
        lines = [_operators(op.kind for op in operators)]
    if rows < 1:
        return []
    columns = -(-len(lines) // rows)
    return [
        _text("operator", x + (at // rows) * width / columns, y + LINE * (at % rows + 1), line, width / columns - 8)
        for at, line in enumerate(lines)
    ]


def _shown(operators: list[Op]) -> list[Op]:
    """Without those that say where values go, not what they are."""
    return [op for op in operators if op.kind not in (Kind.LOAD, Kind.STORE, Kind.ACCUM, Kind.CONST)]


def _operators(kinds: Iterable[Kind]) -> str:
    found = list(kinds)
    matmuls = sum(kind.contracts for kind in found)
    others = len(found) - matmuls
    words = [f"{matmuls} matmul{'' if matmuls == 1 else 's'}"] * bool(matmuls)
    words += [f"{others} {'other ' if matmuls else ''}operator{'' if others == 1 else 's'}"] * bool(others)
    return ", ".join(words)


def _box(look: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{look}" x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" rx="8"/>'


def _text(look: str, x: float, y: float, text: str, room: float) -> str:
    """room: px; what is longer ends in `…`."""
    em = BOLD_EM if look in ("name", "loop-title") else EM
    return f'<text class="{look}" x="{n(x)}" y="{n(y)}">{escape(_cut(text, room, em))}</text>'


def _cut(text: str, room: float, em: float) -> str:
    most = max(0, int(room / (SIZE * em)))
    return text if len(text) <= most else text[: max(0, most - 1)] + "…"


def _style(theme: Theme) -> str:
    colours = COLOURS[theme]
    return (
        f"text{{font-family:{FONT};font-size:{n(SIZE)}px;fill:{colours['text']}}}.page{{fill:{colours['page']}}}"
        f".kernel{{fill:{colours['kernel']};stroke:{colours['kernel-line']}}}"
        f".loop{{fill:{colours['loop']};stroke:{colours['loop-line']};stroke-dasharray:5 3}}"
        f".name{{font-weight:600}}.loop-title{{font-weight:600;fill:{colours['loop-text']}}}"
        f".operator{{fill:{colours['text']}}}.muted{{fill:{colours['muted']}}}"
    )
