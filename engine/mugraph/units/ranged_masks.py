"""Masks of a unit whose sizes vary: are they one mask at all sizes, and does each leave something of every row?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from mugraph.ir.calls import Corner
from mugraph.ir.masks import at_sizes, corner, empties, is_causal
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.ranges import DynamicSize, Point, Product, largest_point
from mugraph.trace.regions.dynamic import Varies

_CORNERS: tuple[Corner, Corner] = ("first", "last")


def alike(full: TensorProgram, other: TensorProgram) -> bool:
    """Do they have the same operators? A mask may have another diagonal."""
    if len(full.ops) != len(other.ops):
        return False
    return all(
        at_sizes(op, full.sizes, other.sizes) == seen or (not corner(op) and _unplaced(op) == _unplaced(seen))
        for op, seen in zip(full.ops, other.ops, strict=True)
    )


def _unplaced(op: Op) -> Op:
    return replace(op, value=0.0) if op.kind is Kind.MASK else op


def cornered(program: TensorProgram, others: Sequence[TensorProgram]) -> TensorProgram:
    """The program, with the corner of each mask along axes that vary. others: the programs at other sizes. Raises
    Varies where a mask keeps its distance from none."""
    ops = [_with_corner(program, op, [(one.sizes, one.ops[at]) for one in others]) for at, op in enumerate(program.ops)]
    return replace(program, ops=tuple(ops))


def _with_corner(program: TensorProgram, op: Op, others: Sequence[tuple[Mapping[str, int], Op]]) -> Op:
    """others: the operator at other sizes"""
    along = program.least.keys() & {*op.rows, *op.columns} if op.kind is Kind.MASK else set[str]()
    if not along or corner(op):
        return op
    for one in _CORNERS:
        made = replace(op, fn=one)
        if all(at_sizes(made, program.sizes, sizes) == replace(seen, fn=one) for sizes, seen in others):
            causal = any(is_causal(op, program.sizes, axes) for axes in program.varying_together)
            return op if causal and one == "first" else made
    raise Varies("a mask along it is another one at each size")


def emptied_at(program: TensorProgram, varying: Mapping[str, Product], made: DynamicSize) -> Point | None:
    """Sizes at which masks hide all of a row; None where there are none. A row is empty where a sum of sizes is too
    small, so that the ends of all ranges tell."""
    masked = any(op.kind is Kind.MASK for op in program.ops)
    for point in _ends(made) if masked else ():
        sizes = {axis: varying[axis].at(point) if axis in varying else n for axis, n in program.sizes.items()}
        if empties(program.ops, program.sizes, sizes, program.least.keys()):
            return point
    return None


def _ends(made: DynamicSize) -> Iterator[Point]:
    for sizes in product(*((one.least, one.largest) for one in made.ranges)):
        point = dict(zip((one.name for one in made.ranges), sizes, strict=True))
        if point != largest_point(made.ranges):
            yield point
