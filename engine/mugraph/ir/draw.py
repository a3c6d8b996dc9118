"""Drawings of μGraphs: a text tree for terminals, and SVG."""

from mugraph.ir.draw_parts import Theme
from mugraph.ir.draw_svg import draw_svg
from mugraph.ir.draw_tree import draw_tree

__all__ = ["Theme", "draw_svg", "draw_tree"]
