"""Named axes for dimensions that a checkpoint knows by position and size.

Each dimension begins with axes of its own. What is multiplied or added element by element has the same axes, so these
become one; where one side is cut finer than the other, the other is cut as well.
"""

from __future__ import annotations

from math import prod

Dim = tuple[str, ...]
"""Axes of a dimension, outermost first; () for a dimension of one element."""


class Unlike(ValueError):
    """Two dimensions that are to be one have different sizes, or are cut at different places."""


class Axes:
    """Axes of one block graph. Those that were made one, or were cut, stay known by their first names."""

    def __init__(self, prefix: str) -> None:
        """prefix: of all names"""
        self._prefix = prefix
        self._sizes: dict[str, int] = {}
        self._now: dict[str, Dim] = {}

    def new(self, size: int) -> Dim:
        """An axis of `size` elements; none for one element."""
        if size == 1:
            return ()
        name = f"{self._prefix}{len(self._sizes)}"
        self._sizes[name] = size
        return (name,)

    def named(self, name: str, size: int) -> Dim:
        """One that keeps its name."""
        if size > 1:
            self._sizes[name] = size
        return (name,) if size > 1 else ()

    def now(self, dim: Dim) -> Dim:
        """The axes that stand for these by now."""
        return tuple(axis for one in dim for axis in (self.now(self._now[one]) if one in self._now else (one,)))

    def size(self, dim: Dim) -> int:
        return prod(self._sizes[axis] for axis in dim)

    def sizes(self) -> dict[str, int]:
        """Of the axes there are by now."""
        return {axis: size for axis, size in self._sizes.items() if axis not in self._now}

    def unify(self, one: Dim, other: Dim) -> None:
        """Makes two dimensions one. Raises Unlike."""
        if self.size(one) != self.size(other):
            raise Unlike(f"dimensions of {self.size(one)} and {self.size(other)} elements meet")
        a, b = list(self.now(one)), list(self.now(other))
        while a and b:
            left, right = a.pop(0), b.pop(0)
            if left == right:
                continue
            if left in b or right in a:
                raise Unlike("one tile is read along two of its dimensions as if they were one")
            small, large = self._sizes[left], self._sizes[right]
            if small == large:
                self._now[right] = (left,)
            elif max(small, large) % min(small, large):
                raise Unlike(f"parts of {small} and of {large} elements meet")
            elif small < large:
                (inner,) = self.new(large // small)
                self._now[right] = (left, inner)
                b.insert(0, inner)
            else:
                (inner,) = self.new(small // large)
                self._now[left] = (right, inner)
                a.insert(0, inner)

    def cut(self, dim: Dim, inner: int) -> tuple[Dim, Dim]:
        """The dimension as an outer and an inner one, which has `inner` elements. Raises Unlike."""
        size = self.size(dim)
        if size % inner:
            raise Unlike(f"{size} elements are no multiple of {inner}")
        parts = self.new(size // inner), self.new(inner)
        self.unify((*parts[0], *parts[1]), dim)
        return self.now(parts[0]), self.now(parts[1])
