"""Sections: the part of a dimension that a slice keeps, as an atom of its own.

`x[..., 64:]` of 128 columns asked at an axis d is x asked at a section of 128 elements that starts at 64 and runs over
d; `x[:, 0]` is a section over nothing, one index. What is between a slice and its tensor (products, sums over other
axes, element-wise operators) never notices: it passes sections on as it passes axes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """Of the `size` elements of a dimension, those at start + step * i, with i counted over `inner`, atoms outermost
    first. No atoms: the one at `start`."""

    size: int
    start: int
    step: int
    inner: tuple[int, ...]

    def last(self, length: int) -> int:
        """Place of the last element, of `length` ones."""
        return self.start + (length - 1) * self.step


@dataclass(frozen=True, slots=True)
class Cut:
    """A section of a dimension that is made of equal pieces, as a section of the pieces (outer) and one of the elements
    of a piece (inner). Each is (start, step, number of elements)."""

    outer: tuple[int, int, int]
    inner: tuple[int, int, int]


def cut(section: Section, length: int, n: int) -> Cut | None:
    """The section of `length` elements, when its dimension is made of pieces of n. None where it does not keep the same
    elements of each piece."""
    start, step = section.start, section.step
    first, within = divmod(start, n)
    if first == section.last(length) // n:
        return Cut((first, 1, 1), (within, step, length))
    if step % n == 0:
        return Cut((first, step // n, length), (within, 1, 1))
    count = n // step
    if n % step == 0 and within < step and length % count == 0:
        return Cut((first, 1, length // count), (within, step, count))
    return None


def spelled(index: Sequence[slice | int]) -> str:
    """`..., 64:128`: an index of every dimension, as people write it."""
    words = [_one(part) for part in index]
    while len(words) > 1 and words[-1] == ":":
        words.pop()
    lead = next((i for i, word in enumerate(words) if word != ":"), 0)
    return ", ".join(["...", *words[lead:]] if lead > 1 and len(words) == len(index) else words)


def _one(part: slice | int) -> str:
    if isinstance(part, int):
        return str(part)
    start, stop, step = ("" if bound is None else str(bound) for bound in (part.start, part.stop, part.step))
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
