"""Masks at small sizes. A mask that becomes uniform is not tested, and two masks that become equal are not told apart.

A sliding window's mask, for example, is zeros in one corner. If its axes are cut down to a few elements the corner may
be gone; then a graph without the mask computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mugraph.ir.block import BlockGraph
from mugraph.ir.masks import by_sides, complement, diagonal, extents, is_uniform, keep_filled, resized
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.verification.evaluate import Malformed


@dataclass(frozen=True)
class MaskGroup:
    """Masks over the same rows and columns (or columns and rows) of one graph, none of them uniform there.

    sizes: of that graph
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    masks: tuple[Op, ...]
    sizes: Mapping[str, int]

    def uniform(self, sizes: Mapping[str, int]) -> str | None:
        """The name of a mask that is uniform at other sizes, if one is."""
        small = (resized(op, self.sizes, sizes) for op in self.masks)
        return next((op.name for op in small if is_uniform(op, sizes)), None)

    def is_cut(self, sizes: Mapping[str, int]) -> bool:
        """Whether no mask is uniform at other sizes."""
        return self.uniform(sizes) is None

    def is_apart(self, sizes: Mapping[str, int]) -> bool:
        """Whether no mask is uniform at other sizes, and masks that differ still differ there, in the same order."""
        if self.uniform(sizes) is not None:
            return False
        places = sorted({(self._number(op, self.sizes), self._number(resized(op, self.sizes, sizes), sizes))
                         for op in self.masks})  # fmt: skip
        return all(one[1] < other[1] for one, other in pairwise(places))

    def keeps_rows(self, sizes: Mapping[str, int]) -> bool:
        """Whether `is_apart` holds, and all masks together still leave a one in each row (or each column) if they do
        here: a softmax divides by what is left of a row."""
        return self.is_apart(sizes) and keep_filled(self.masks, (self.rows, self.columns), self.sizes, sizes)

    def _number(self, op: Op, sizes: Mapping[str, int]) -> int:
        """The mask's diagonal; if its rows and columns are exchanged, that of its complement."""
        return diagonal(op) if op.rows == self.rows else complement(extents(op, sizes), diagonal(op))[1]


def mask_groups(program: TensorProgram, blocks: Sequence[BlockGraph]) -> list[MaskGroup]:
    """The groups of the program, and of each block graph."""
    found: list[MaskGroup] = []
    for ops, sizes in ((program.ops, program.sizes), *((block.ops, block.sizes) for block in blocks)):
        masks = [op for op in ops if op.kind is Kind.MASK and sizes.keys() >= {*op.rows, *op.columns}]
        groups = by_sides([op for op in masks if not is_uniform(op, sizes)])
        found += (MaskGroup(*sides, tuple(alike), sizes) for sides, alike in groups.items())
    return found


def check_masks(program: TensorProgram, blocks: Sequence[BlockGraph]) -> None:
    """The graphs' masks must be the program's, or complements of them: at other sizes two diagonals may have become
    one. Raises Malformed."""
    known = {(extents(op, program.sizes), diagonal(op)) for op in program.ops if op.kind is Kind.MASK}
    known |= {complement(shape, number) for shape, number in known}
    for block in blocks:
        for op in block.ops:
            if op.kind is Kind.MASK and (extents(op, block.sizes), diagonal(op)) not in known:
                raise Malformed(f"{op.name} starts at diagonal {diagonal(op)}, where no mask of the program does")
