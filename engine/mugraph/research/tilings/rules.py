"""The four rules that prune tiling expressions and tile sizes (MCFuser §III-C)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from mugraph.ir.placement import loop_paths
from mugraph.research.tilings.expressions import Contractions, Expression, expressions, without
from mugraph.research.tilings.statements import at_tiles, compute_places, expand
from mugraph.targets import Target

STEP = 16
"""Tiles are multiples of the tensor core's least one."""
MAX_PADDING = 0.05
"""Rule 3: share of a padded axis that is padding, where the size is no power of two."""
SLACK = 1.2
"""Rule 4: what the estimate of shared memory may be above the device's, because it is an estimate."""

Tiles = Mapping[str, int]


@dataclass(frozen=True)
class Steps:
    """What is left after each step.

    expressions: all, deep and flat
    valid:       those that compute the chain
    rule1:       sub-expressions of a thread block
    rule2:       those that keep one tile of each intermediate tensor
    tiles:       combinations of tile sizes: all; after rule 3; after rule 4
    distinct:    candidates, those that differ in loops of extent 1 counted once
    """

    expressions: tuple[Expression, ...]
    valid: tuple[Expression, ...]
    rule1: tuple[Expression, ...]
    rule2: tuple[Expression, ...]
    tiles: tuple[int, int, int]
    distinct: int

    @property
    def candidates(self) -> tuple[int, int, int, int, int]:
        """All, and after each rule: expressions times tile sizes."""
        every, padded, fitting = self.tiles
        one, two = len(self.rule1), len(self.rule2)
        return len(self.expressions) * every, one * every, two * every, two * padded, two * fitting


def prune(chain: Contractions, target: Target) -> Steps:
    """All four rules, step by step."""
    every = tuple(expressions(chain))
    valid = tuple(expression for expression in every if expand(chain, expression) is not None)
    one = rule1(chain, valid)
    two = tuple(expression for expression in one if rule2(chain, expression))
    options = prod(len(tile_sizes(chain, axis)) for axis in chain.sizes)
    unpadded = prod(len(rule3(chain, axis)) for axis in chain.sizes)
    fitting = list(rule4(chain, target))
    distinct = {(at_tiles(chain, e, tiles)[0], *tiles.values()) for e in two for tiles in fitting}
    return Steps(every, valid, one, two, (options, unpadded, len(fitting)), len(distinct))


def bound(chain: Contractions, expression: Expression) -> tuple[str, ...]:
    """Loops that become blockIdx: spatial ones of every output that have all computation inside of them.

    In `mn(k,h)` h is not around the first product, so it stays a loop of the thread block; likewise in `mnkh`. That
    gives the five sub-expressions the paper counts, and three after rule 2. Its text binds the h of `mnkh` as well; if
    all of the deep expressions' were bound, three would be left, and two after rule 2.
    """
    spatial = set[str](chain.outputs[0].axes).intersection(*(op.axes for op in chain.outputs))
    places = compute_places(chain, expression).values()
    return tuple(sorted(axis for axis in spatial if all(axis in place for place in places)))


def rule1(chain: Contractions, every: Iterable[Expression]) -> tuple[Expression, ...]:
    """Deduplication: what a thread block runs, each once."""
    return tuple(dict.fromkeys(without(expression, bound(chain, expression)) for expression in every))


def rule2(chain: Contractions, expression: Expression) -> bool:
    """No intermediate tensor has a reduced loop outside one of its spatial loops, for which several tiles of partial
    results would have to be kept."""
    paths = loop_paths(expression)
    return not any(
        reduced in paths.get(axis, ())
        for op in chain.ops
        if chain.consumers[op.name]
        for axis in op.axes
        for reduced in op.over
    )


def tile_sizes(chain: Contractions, axis: str) -> tuple[int, ...]:
    """Every multiple of 16 that covers the axis or less; one element of a batch, an axis that all tensors have."""
    if all(axis in op.axes for op in chain.ops) and all(axis in axes for axes in chain.tensors.values()):
        return (1,)
    return tuple(STEP * n for n in range(1, -(-chain.sizes[axis] // STEP) + 1))


def rule3(chain: Contractions, axis: str) -> tuple[int, ...]:
    """Tiles without extra padding: none where the size is a power of two, little elsewhere; an axis shorter than the
    least tile has that one."""
    size = chain.sizes[axis]
    if size <= STEP:
        return tile_sizes(chain, axis)
    most = 0.0 if size & (size - 1) == 0 else MAX_PADDING
    return tuple(tile for tile in tile_sizes(chain, axis) if _padding(size, tile) <= most)


def shared_bytes(chain: Contractions, tiles: Tiles, itemsize: int = 2) -> int:
    """Equation 1, over the tiles that are loaded: intermediate results and accumulators are registers in Triton. So
    rule 4 leaves out 39% of the paper's example on its A100, where it says 40%; with all tensors it would be 57%."""
    return itemsize * sum(prod(tiles[axis] for axis in axes) for axes in chain.tensors.values())


def rule4(chain: Contractions, target: Target) -> Iterator[dict[str, int]]:
    """Of the tile sizes that rule 3 leaves, those that fit."""
    for sizes in itertools.product(*(rule3(chain, axis) for axis in chain.sizes)):
        tiles = dict(zip(chain.sizes, sizes, strict=True))
        if shared_bytes(chain, tiles) <= SLACK * target.shared:
            yield tiles


def _padding(size: int, tile: int) -> float:
    padded = -(-size // tile) * tile
    return (padded - size) / padded
