"""Exponentials of which a program's results do not depend on a common factor, kept within float64's range.

A softmax stays what it is if a number is subtracted from the logits of its row, and PyTorch's subtracts the row's
largest. A tensor program has no maximum: of logits that code has made -10000 to hide them (BERT, GPT-2), or of a row of
which all are, its exponentials would be infinite or all zero.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import Tensor

from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.degrees import NoDegree, PositiveDegrees

_NEAR = 200.0
"""Exponents that are left as they are: three exponentials of them may be multiplied, and those of a row added up."""

_DEGREES = PositiveDegrees()


def shifted_along(program: TensorProgram) -> dict[str, frozenset[str]]:
    """Exponential -> the axes along which one number may be subtracted from its arguments: those that are reduced
    before the factor is divided out. Exponentials that a result has the factor of are left out."""
    found: dict[str, frozenset[str]] = {}
    for source in program.ops:
        if source.kind.is_exponential and (along := _reduced_with(source, program)):
            found[source.name] = along
    return found


def _reduced_with(source: Op, program: TensorProgram) -> frozenset[str] | None:
    """None where a result changes with a factor of `source`, or nothing says how."""
    degrees: dict[str, float] = {source.name: 1.0}
    along: set[str] = set()
    for op in program.ops:
        if op is source:
            continue
        operands = [degrees.get(name, 0.0) for name in op.inputs]
        if not any(operands):
            continue
        try:
            degrees[op.name] = op.kind.meaning(_DEGREES, operands, op.fn, op.over)
        except NoDegree:
            return None
        along.update(op.over)
    if any(degrees.get(name, 0.0) for name in program.outputs):
        return None
    return frozenset(along)


def shifted(data: Tensor, axes: tuple[str, ...], along: Collection[str]) -> Tensor:
    """Arguments of an exponential, those of a row less what takes its largest out of `_NEAR`."""
    dims = [number for number, axis in enumerate(axes) if axis in along]
    if not dims:
        return data
    largest = data.amax(dims, keepdim=True)
    shift = (largest - largest.clamp(-_NEAR, _NEAR)).nan_to_num(0.0, 0.0, 0.0)
    return data - shift if bool(shift.any()) else data
