"""A μGraph as SVG: kernels as boxes, loops as boxes in them, operators with the shapes of their tiles.

Tensors in device memory stand outside the kernels, with their shape and the tile a block takes of them. Operators that
run in registers as one thread graph have round ends, and its name in `data-thread`.
"""

from __future__ import annotations

from html import escape

from mugraph.ir.drawing.kernel import kernel_picture
from mugraph.ir.drawing.parts import (
    COLOURS,
    GAP,
    NODE_HEIGHT,
    Node,
    Picture,
    Sources,
    Theme,
    bend,
    box,
    n,
    style_sheet,
    tensor_node,
)
from mugraph.ir.drawing.words import beside_words
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph

MARGIN = 16.0
LEAST_WIDTH, LEAST_HEIGHT = 680.0, 270.0


def draw_svg(mugraph: MuGraph, theme: Theme = "light", sources: Sources | None = None) -> str:
    """A complete SVG document. Kernels run from top to bottom; the data in each flows from left to right.

    sources: where in the user's code nodes come from, written beside them as `data-source`
    """
    pictures = [_picture(kernel, mugraph, sources or {}) for kernel in mugraph.kernels]
    width = max([LEAST_WIDTH, *(picture.width + 2 * MARGIN for picture in pictures)])
    content = sum(picture.height for picture in pictures) + MARGIN * (len(pictures) + 1)
    height = max(LEAST_HEIGHT, content)
    parts: list[str] = []
    y = MARGIN + (height - content) / 2
    for picture in pictures:
        parts.append(f'<g transform="translate({n((width - picture.width) / 2)} {n(y)})">{picture.body}</g>')
        y += picture.height + MARGIN
    title = f"μGraph {mugraph.name}: {', '.join(mugraph.inputs)} to {', '.join(mugraph.outputs)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {n(width)} {n(height)}" '
        f'width="{n(width)}" height="{n(height)}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{style_sheet(COLOURS[theme])}</style>\n"
        f'<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        f'<path d="M0 0.5 L8 4 L0 7.5 z" fill="{COLOURS[theme]["edge"]}"/></marker></defs>\n'
        f'<rect class="page" width="{n(width)}" height="{n(height)}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _picture(kernel: GraphKernel | LibraryKernel, mugraph: MuGraph, sources: Sources) -> Picture:
    if isinstance(kernel, LibraryKernel):
        return library_picture(kernel, mugraph, sources.get((kernel.name, ""), ""))
    return kernel_picture(kernel, sources, beside_words(mugraph, kernel.name))


def library_picture(kernel: LibraryKernel, mugraph: MuGraph, source: str = "") -> Picture:
    """Input tensors, the call, output tensors."""
    tensors = {tensor.name: tensor for tensor in mugraph.tensors}
    sides = [
        [tensor_node(tensors[name], mugraph.sizes, None, look) for name in names if name in tensors]
        for names, look in ((kernel.inputs, "tensor"), (kernel.outputs, "output"))
    ]
    call = kernel.call if len(kernel.call) <= 64 else kernel.call[:63] + "…"
    call_box = Node((kernel.name, call), "kernel", kernel.call, source=source)
    left, right = (max((node.width for node in side), default=0.0) for side in sides)
    height = max(len(sides[0]), len(sides[1]), 1) * (NODE_HEIGHT + 8) - 8 + 4
    x = left + GAP + call_box.width / 2
    parts: list[str] = []
    for side, nodes in enumerate(sides):
        for index, node in enumerate(nodes):
            y = height / 2 + (index - (len(nodes) - 1) / 2) * (NODE_HEIGHT + 8)
            at = left / 2 if side == 0 else left + call_box.width + 2 * GAP + right / 2
            start, end = (
                (at + node.width / 2, x - call_box.width / 2)
                if side == 0
                else (x + call_box.width / 2, at - node.width / 2)
            )
            ys = (y, height / 2) if side == 0 else (height / 2, y)
            parts.append(f'<path class="edge" d="M{n(start)} {n(ys[0])} {bend(start, ys[0], end, ys[1])}"/>')
            parts.append(box(node, at, y))
    parts.append(box(call_box, x, height / 2))
    return Picture(left + call_box.width + right + 2 * GAP, height, "\n".join(parts))
