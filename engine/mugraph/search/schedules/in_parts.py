"""Products of float32 on tensor cores: each operand is cut into parts that the cores take, and the parts that count are
multiplied with one another (three products of two tf32 parts each, or six of three bfloat16 parts). Or one part is
taken, each operand rounded to tf32, where the program lets that be.

Measured on an H200 (24 November 2026, 4096 x 4096 x 4096, 21 tilings, weights along the depth and across it): 1,823 us
in parts of bfloat16 whatever the layout; in parts of tf32 1,472 us where the right operand lies along the depth, and
twice as much where it does not, as the cores take it along the depth alone; cuBLAS 2,667 to 2,776; a product without
tensor cores 2,844 to 7,007. One product in tf32 takes 1,617 us where the right operand does not lie along the depth;
what it takes where it does is an estimate.

Each block cuts the operands that it multiplies, so that large tiles cut less (H200, 28 November 2026, the fastest of
each program of KernelBench, of as many operations as 4096 x 4096 x 4096): 1,455 us in tiles of 128 x 128, 1,651 to
1,690 in 128 x 64, 1,953 in 32 x 256 and 1,958 to 1,973 in 32 x 128, which is 1,055 and 25,600 times the sum of the
sides' inverses (1 / 128 and 1 / 128, and so on).
"""

from __future__ import annotations

from math import prod

from mugraph.ir.block import TF32, Precision, Schedule
from mugraph.search.schedules.products import Product
from mugraph.search.schedules.tiles import Shape, Tiles

PARTS: dict[Precision, tuple[float, float, float, int]] = {
    "tf32x3": (6.0, 0.88, 0.32, 8), "bf16x6": (6.0, 0.69, 0.265, 6), TF32: (2.0, 0.4, 0.2, 4),
}  # fmt: skip
"""Products of bfloat16 that take as long; share of the cores' peak that they reach, once the operands are cut; the same
on the path for few rows, with the cutting; bytes of an operand's parts."""
_CUT = 330.0
"""Floating-point operations at the cores' peak that take as long as to cut an element of an operand into parts."""
_ACROSS, _TALL = 2.2, 1.4
"""How much longer parts of tf32 take that change places first; where many rows take each of them."""
ROUNDING = 4
"""Operations of a thread on each element that is rounded to tf32."""
HELD = 64
"""Elements of the result that a thread can hold beside the parts; with more it is slower by this power of how many."""
_SPILLS = 0.45


def flops_in_parts(product: Product, schedule: Schedule, rows: int, columns: int, flops: float, *, wide: bool) -> float:
    """Floating-point operations of 16-bit products, at a processor's peak, that take as long: the products' own, and
    those of cutting each operand in every block.

    rows, columns: of a block, as the cores take them
    """
    precision = product.precision(schedule)
    times, share, narrow, parts = PARTS[precision]
    warps = schedule.num_warps
    slower = max(1.0, rows * columns / (32 * warps) / (HELD * PARTS["tf32x3"][-1] / parts)) ** _SPILLS
    if not wide:
        return flops * times / narrow * slower
    across = max(1, warps // 4 // max(1, rows // 64))  # groups of warps that need the same rows cut them each
    right = 0 if schedule.swap else 1
    turning = 1.0
    if precision in ("tf32x3", TF32) and not product.along_depth[right]:
        turning = _TALL if rows >= 2 * columns else _ACROSS
    cut = 0.0 if precision == TF32 else _cut(rows, columns)  # rounding is counted apart
    return flops * (times / share * slower + cut) * turning * across


def least_flops(product: Product, flops: float, rows: int, columns: int) -> float:
    """The same at least, of any schedule with these tiles."""
    ways = {precision: way for precision, way in PARTS.items() if precision != TF32 or product.takes_tf32}
    return min(
        flops * min(times / share + (precision != TF32) * _cut(rows, columns), times / narrow)
        for precision, (times, share, narrow, _) in ways.items()
    )


def _cut(rows: int, columns: int) -> float:
    """Of each floating-point operation, what cutting the operands takes beside it."""
    return _CUT / 2 * (1 / rows + 1 / columns)


def shared_bytes(shape: Shape, tiles: Tiles, schedule: Schedule) -> int:
    """Of shared memory, for the parts of operands: the right ones, as the left ones stay in registers."""
    most = 0
    for product in shape.products:
        precision = product.precision(schedule)
        if product.is_exact and product.is_matrix and precision != "ieee":
            side = product.rows if schedule.swap else product.columns
            most = max(most, PARTS[precision][-1] * prod(tiles[axis] for axis in (*side, *product.depth)))
    return most
