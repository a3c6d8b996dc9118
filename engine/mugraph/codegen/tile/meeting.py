"""What the text of a kernel must know where it and the kernel that finishes its sums are one launch (last_block.py)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meeting:
    """
    copied: axes of the grid along which every block stores what does not vary along them, each in a copy of its own;
            elsewhere the first block along such an axis does
    fresh:  tensors that other blocks of the launch write: they are read from the second-level cache, past the first
            one, which is not kept coherent
    """

    copied: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()


ALONE = Meeting()
