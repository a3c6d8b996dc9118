"""Grid and for-loop dimensions, chosen before any operator (Mirage, Algorithm 1, line 17).

imap, omap and fmap follow from the names of axes: a tensor with a grid or loop axis is partitioned along it, one
without is replicated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from mugraph.ir.program import TensorProgram


@dataclass(frozen=True, slots=True)
class Sizes:
    """One choice. grid: axis -> tile, where it is partitioned; loops: axis -> tile, at least two iterations each."""

    grid: Mapping[str, int]
    loops: Mapping[str, int]

    def elements(self, axes: tuple[str, ...], whole: Mapping[str, int]) -> int:
        """Of the tile that one block holds in one iteration."""
        return prod(self.grid.get(axis, self.loops.get(axis, whole[axis])) for axis in axes)


def loop_sets(program: TensorProgram, max_loops: int) -> list[tuple[str, ...]]:
    """Axes a for-loop may run over: those the program reduces and does not return. No loop comes first."""
    reduced = sorted(_reduced(program) - set(_returned(program)))
    return [axes for count in range(max_loops + 1) for axes in itertools.combinations(reduced, count)]


def every(program: TensorProgram, loops: tuple[str, ...]) -> Iterator[Sizes]:
    """All grid and loop dimensions in powers of two. An axis that is reduced and returned is not partitioned: blocks
    do not exchange partial sums."""
    sizes = program.sizes
    grid = [axis for axis in _returned(program) if axis not in _reduced(program)]
    for tiles in itertools.product(*([*_powers_below(sizes[axis]), sizes[axis]] for axis in grid)):
        chosen = {axis: tile for axis, tile in zip(grid, tiles, strict=True) if tile < sizes[axis]}
        for steps in itertools.product(*(_powers_below(sizes[axis]) for axis in loops)):
            yield Sizes(chosen, dict(zip(loops, steps, strict=True)))


def _powers_below(size: int) -> list[int]:
    return [1 << i for i in range((size - 1).bit_length())]


def _returned(program: TensorProgram) -> tuple[str, ...]:
    (output,) = program.outputs
    return program.op(output).axes


def _reduced(program: TensorProgram) -> set[str]:
    return {axis for op in program.ops for axis in op.over}
