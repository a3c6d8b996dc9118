"""One total order of the tile dimensions per kernel: all values follow it, so broadcasting is always `[:, None]`.

The inner dimension of every product should lie between its two outer ones; then no tile is ever transposed. Among such
orders the one nearest the tensors' memory order is taken. The reversed order computes every product transposed (operand
swap): the weight's columns then fill the tensor core's 64-row side when the activations have few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.dims import Product
from mugraph.ir.kernel import Rejected

MAX_DIMS = 7


def total_order(
    dims: Sequence[Dim], products: Sequence[Product], memory: Sequence[tuple[int, Sequence[Dim]]], swap: bool
) -> tuple[Dim, ...]:
    """memory: per tensor a weight and its dimensions in memory order."""
    if len(dims) > MAX_DIMS:
        raise Rejected(f"the kernel's tiles have {len(dims)} dimensions; {MAX_DIMS} are the most that are ordered.")
    pairs: dict[tuple[Dim, Dim], int] = {}
    for weight, order in memory:
        for outer, inner in combinations(order, 2):
            pairs[outer, inner] = pairs.get((outer, inner), 0) + weight

    def cost(order: tuple[Dim, ...]) -> tuple[int, int]:
        at = {dim: position for position, dim in enumerate(order)}
        violations = sum(
            not (at[p.left] < at[p.inner] < at[p.right] or at[p.right] < at[p.inner] < at[p.left]) for p in products
        )
        return violations, sum(weight for (outer, inner), weight in pairs.items() if at[outer] > at[inner])

    best = min(permutations(dims), key=cost)
    return tuple(reversed(best)) if swap else best
