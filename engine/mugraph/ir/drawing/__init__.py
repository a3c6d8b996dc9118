"""Drawings of μGraphs: a text tree for terminals, SVG, and an overview of it for hovers."""

from mugraph.ir.drawing.overview import draw_overview
from mugraph.ir.drawing.parts import Theme
from mugraph.ir.drawing.svg import draw_svg
from mugraph.ir.drawing.tree import draw_tree

__all__ = ["Theme", "draw_overview", "draw_svg", "draw_tree"]
