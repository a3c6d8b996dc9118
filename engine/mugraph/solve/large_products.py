"""Products of a search unit that PyTorch's own kernels may as well compute: they are bound by arithmetic.

A library's kernel is at its best there, and what a generated one saves, a norm or a rotation that is not written to
memory, is little beside the product. Where several of them share what is computed before them, or a rotation divides
one into halves, a unit that holds them has no kernel graph with the library's kernels: those take products as they are
written.
"""

from __future__ import annotations

from math import prod

from mugraph.ir.dtypes import ITEMSIZE
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit

INTENSITY = 256
"""Operations for each byte that a product reads and writes. (Of float16, an A100 has 156 and an H100 295.)"""
LEAST_FLOPS = 4e9
"""Operations of a product; they take 5 µs on an H100. What is less is bound by its launch."""


def large_products(unit: SearchUnit) -> frozenset[int]:
    """Positions of the unit's calls that are such products of 16-bit numbers, where it has several, or computes what
    one multiplies."""
    program = unit.program
    large: set[int] = set()
    reads_computed = False
    for op in program.ops:
        if op.kind.contracts and _is_large(program, op):
            large.update(unit.origins.get(op.name, ()))
            reads_computed |= any(program.op(name).kind is not Kind.LOAD for name in op.inputs)
    return frozenset(large) if len(large) > 1 or reads_computed else frozenset()


def _is_large(program: TensorProgram, op: Op) -> bool:
    operands = [program.op(name) for name in op.inputs]
    loaded = [program.tensor(one.tensor).dtype for one in operands if one.kind is Kind.LOAD]
    if not loaded or any(dtype not in ("f16", "bf16") for dtype in loaded):
        return False
    flops = 2.0 * _places(program, (*op.axes, *op.over))
    moved = ITEMSIZE[loaded[0]] * sum(_places(program, axes) for axes in (*(one.axes for one in operands), op.axes))
    return flops >= LEAST_FLOPS and flops > INTENSITY * moved


def _places(program: TensorProgram, axes: tuple[str, ...]) -> int:
    return prod(program.sizes[axis] for axis in axes)
