"""Sizes for a topology: tiles, loops, splits, warps and stages, and what they are expected to cost."""
