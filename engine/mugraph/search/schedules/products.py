"""The products of a topology: what their sides are, and what reaches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mugraph.ir.block import TF32, BlockGraph, Precision, Schedule
from mugraph.ir.dtypes import COMPUTED, ITEMSIZE
from mugraph.ir.ops import Kind, Op

Ops = Mapping[str, Op]


@dataclass(frozen=True, slots=True)
class Product:
    """A DOT: its operator, the axes of its left rows, right columns, reduction and batch, and whether its operands are
    loads as they are (computed ones pass through registers or shared memory first). is_exact: in float32.
    along_depth: whether the left operand, and the right one, lies in memory along the depth, or has no place there.
    takes_tf32: the program lets its operands be rounded to tf32"""

    op: Op
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    depth: tuple[str, ...]
    batch: tuple[str, ...]
    left_is_load: bool
    right_is_load: bool
    is_exact: bool
    along_depth: tuple[bool, bool]
    takes_tf32: bool = False

    def precision(self, schedule: Schedule) -> Precision:
        """Of this one, where it is of float32."""
        return "ieee" if schedule.precision == TF32 and not self.takes_tf32 else schedule.precision

    @property
    def is_matrix(self) -> bool:
        """It has rows and columns."""
        return bool(self.rows and self.columns)

    @property
    def sides(self) -> tuple[tuple[str, ...], ...]:
        return self.rows, self.columns, self.depth


def product_of(block: BlockGraph, ops: Ops, op: Op) -> Product:
    left, right = (ops[i] for i in op.inputs)
    a, b, over = set(left.axes), set(right.axes), set(op.over)
    return Product(
        op,
        tuple(sorted(a - b)),
        tuple(sorted(b - a)),
        tuple(sorted(over)),
        tuple(sorted((a & b) - over)),
        left.kind is Kind.LOAD,
        right.kind is Kind.LOAD,
        _is_exact(block, ops, left, right, op) or _is_exact(block, ops, right, left, op),
        (_is_along(block, left, over), _is_along(block, right, over)),
        bool(op.tf32),
    )


def _is_along(block: BlockGraph, operand: Op, over: set[str]) -> bool:
    if operand.kind is not Kind.LOAD:
        return True
    tensor = block.tensor(operand.tensor)
    return any(stride == 1 and over.intersection(dim) for dim, stride in zip(tensor.dims, tensor.strides, strict=True))


def _is_exact(block: BlockGraph, ops: Ops, operand: Op, other: Op, product: Op) -> bool:
    """Is the operand of a product float32 in PyTorch? What is computed of 16-bit tensors, or multiplied with what
    is, is 16-bit, unless the program multiplies in float32."""
    if operand.kind is Kind.LOAD:
        return ITEMSIZE[block.tensor(operand.tensor).dtype] == 4
    if product.f32:
        return True
    return 2 not in _sizes_below(block, ops, operand) | _sizes_below(block, ops, other)


def _sizes_below(block: BlockGraph, ops: Ops, operand: Op) -> set[int]:
    """Bytes of the elements it is computed of, but for those that are of any type."""
    found: set[int] = set()
    seen: set[str] = set()
    stack = [operand]
    while stack:
        op = stack.pop()
        if op.kind is Kind.LOAD and (dtype := block.tensor(op.tensor).dtype) in COMPUTED:
            found.add(ITEMSIZE[dtype])
        if op.name not in seen:
            seen.add(op.name)
            stack.extend(ops[name] for name in op.inputs)
    return found


def is_chained(product: Product, ops: Ops, varies: Mapping[str, frozenset[str]]) -> bool:
    """Is an operand of it computed from another product, both of them outside of every loop?"""
    if varies[product.op.name]:
        return False
    stack, seen = list(product.op.inputs), set[str]()
    while stack:
        op = ops[stack.pop()]
        if op.kind.contracts and not varies[op.name]:
            return True
        if op.name not in seen:
            seen.add(op.name)
            stack.extend(op.inputs)
    return False


def feeding(ops: Ops, matrices: Sequence[Product]) -> frozenset[str]:
    """Loads that reach a product of matrices, at once or through element-wise operators: a loop prefetches them."""
    reached: set[str] = set()
    stack = [i for p in matrices for i in p.op.inputs]
    while stack:
        op = ops[stack.pop()]
        if op.name not in reached:
            reached.add(op.name)
            if not op.kind.reduces and op.kind is not Kind.ACCUM:
                stack.extend(op.inputs)
    return frozenset(name for name in reached if ops[name].kind is Kind.LOAD)
