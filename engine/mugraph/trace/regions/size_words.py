"""What in the source depends on sizes with declared ranges, in words that end "b cannot have a range: "."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.calls import operands
from mugraph.ir.masks import may_vary
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.ranges import FIXED, Compared, DynamicSize
from mugraph.ir.region import Call, Region, SearchUnit, TensorInfo

ANOTHER = "that is another one at each size"


def said(call: Call) -> str:
    """ "mean in line 6"."""
    name = call.target.removesuffix(".__get__").rpartition(".")[2].strip("_")
    return f"{'slicing' if name == 'getitem' else name} in line {call.range.start.line + 1}"


def listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def other_calls(calls: Sequence[Call], others: Sequence[Call], at: Compared) -> str:
    """For code that makes other calls at other sizes than at the largest. others: the calls at those sizes"""
    mine, theirs = (Counter((call.target, call.range) for call in made) for made in (calls, others))
    for made, other, here, there in (
        (calls, theirs, at.largest, at.here_briefly),
        (others, mine, at.here, at.largest_briefly),
    ):
        for call in made:
            if not other[call.target, call.range]:
                return f"{said(call)} is called with {here} and not with {there}"
    return f"with {at.here} this code makes other calls than with {at.largest_briefly}"


def other_values(region: Region, other: Region, at: Compared) -> str:
    """For code that makes the same calls but computes other values. other: the region at other sizes"""
    makers = {value: call for call in region.calls for value in call.outputs}
    for value, info in region.values.items():
        seen = other.values.get(value)
        if seen is None or value not in makers or same_kind(info, seen):
            continue
        if info.triangle != seen.triangle:
            return f"{said(makers[value])} makes a mask along it {ANOTHER}"
        what = "type" if info.dtype != seen.dtype else "number of dimensions"
        return f"{said(makers[value])} gives another {what} with {at.here}"
    return f"with {at.here} this code computes other values than with {at.largest_briefly}"


def same_kind(info: TensorInfo, other: TensorInfo) -> bool:
    """Are they alike but for the sizes of dimensions? A constant must hold the same triangle, or one that keeps its
    distance from a corner, or the same number. What is no such constant at the largest sizes is taken for none."""
    one, two = info.triangle, other.triangle if info.triangle is not None else None
    if one is not None and two is not None and one.corner:
        one, two = (replace(triangle, diagonal=0) for triangle in (one, two))
    uniform = one is not None and two is not None and one.is_uniform and two.is_uniform and one.below == two.below
    return len(info.shape) == len(other.shape) and info.dtype == other.dtype and (uniform or one == two)


def other_program(unit: SearchUnit, other: TensorProgram, made: DynamicSize, at: Compared) -> str:
    """For a search unit whose tensor program is another one at other sizes. other: that program"""
    full = unit.program
    pairs = list(zip(full.ops, other.ops, strict=False))
    for op, seen in pairs:
        if op == seen:
            continue
        calls = [said(unit.calls[at]) for at in _positions(op, unit)]
        where = calls[-1] if calls else "its code"
        if op.kind is seen.kind is Kind.CONST:
            numbers = f"{op.value:.3g} with {at.largest}, {seen.value:.3g} with {at.here_briefly}"
            return f"{where} computes with a number that depends on it ({numbers})"
        return f"{where} is computed in another way with {at.here} than with {at.largest_briefly}"
    for call in unit.calls:
        if any(cut_along(made, read, made_of) for read in operands(call) for made_of in call.outputs):
            return f"{said(call)} takes or joins parts along it"
    return f"with {at.here} this code is computed in another way than with {at.largest_briefly}"


def cut_along(made: DynamicSize, value: int, other: int) -> bool:
    """Is some dimension of two values one product of the sizes in the one and another one in the other?"""
    pair = made.shapes.get(value, ()), made.shapes.get(other, ())
    return len(pair[0]) == len(pair[1]) and any(FIXED != one != two != FIXED for one, two in zip(*pair, strict=True))


def _positions(op: Op, unit: SearchUnit) -> tuple[int, ...]:
    """Of the unit's calls that an operator is part of; of a constant, those of what reads it."""
    if op.name in unit.origins:
        return unit.origins[op.name]
    readers = (other for other in unit.program.ops if op.name in other.inputs)
    return next((unit.origins[other.name] for other in readers if other.name in unit.origins), ())


def masked_along(unit: SearchUnit, program: TensorProgram) -> str | None:
    """Which call masks along an axis that varies, if one does. program: the unit's, with the axes that vary"""
    for op in program.ops:
        along = program.least.keys() & {*op.rows, *op.columns} if op.kind is Kind.MASK else set[str]()
        if along and not may_vary(op, program.sizes, program.varying_together):
            calls = [said(unit.calls[at]) for at in _positions(op, unit)]
            return f"{calls[-1] if calls else 'its code'} makes a mask along it {ANOTHER}"
    return None
