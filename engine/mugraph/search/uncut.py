"""Axes that no schedule cuts: a search of loops over them would find block graphs without a kernel."""

from __future__ import annotations

from mugraph.ir.program import TensorProgram
from mugraph.search.topologies.limits import Limits


def uncut(program: TensorProgram, limits: Limits) -> frozenset[str]:
    """Axes as short as `limits.uncut`, but for taps of windows. None where there may be a product: an axis of its depth
    is looped over beside another one, as short as it may be (schedules/tile_choices.py)."""
    if _has_products(program):
        return frozenset()
    taps = {axis for tensor in program.tensors for axis in tensor.taps}
    return frozenset(axis for axis, size in program.sizes.items() if size <= limits.uncut and axis not in taps)


def _has_products(program: TensorProgram) -> bool:
    """Is something multiplied that is no constant?"""
    axes = {op.name: op.axes for op in program.ops}
    multiplies = (op for op in program.ops if len(op.kind.scaled_by) > 1)
    return any(op.kind.contracts for op in program.ops) or any(
        all(axes[name] for name in op.inputs) for op in multiplies
    )
