"""Drawings of μGraphs: a text tree for terminals, SVG, and an overview of it for hovers."""

from mugraph.ir.draw_overview import draw_overview
from mugraph.ir.draw_parts import Theme
from mugraph.ir.draw_svg import draw_svg
from mugraph.ir.draw_tree import draw_tree

__all__ = ["Theme", "draw_overview", "draw_svg", "draw_tree"]
