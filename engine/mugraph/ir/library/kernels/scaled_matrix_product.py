"""A product of two float8 matrices with a scale of each: `torch._scaled_mm`, which is cuBLASLt or CUTLASS on a GPU.

Scales are one number of a matrix, or one of each row of the first and of each column of the second. PyTorch's kernels
take the depth and the columns in sixteens, and both matrices along the depth; with scales of rows, all of them answer
in bfloat16 and some in nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.dtypes import COMPUTED, ELEMENTS
from mugraph.ir.library.call import LibraryCall, Product, View, held_bytes, vector_of, view_of
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes, Tensor

_FLOAT8 = ("f8e4m3", "f8e5m2")
_MULTIPLE = 16


@dataclass(frozen=True, slots=True)
class _Scaled:
    """scales: of either matrix"""

    left: Tensor
    right: Tensor
    over: frozenset[str]
    scales: tuple[Tensor, Tensor]
    bias: Tensor | None
    out: Tensor


def _scaled(block: BlockGraph) -> _Scaled | None:
    """What the block graph computes, if it is two loads, their product, two scales and maybe a bias."""
    ops = {op.name: op for op in block.ops}
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    if block.loops or len(stores) != 1:
        return None
    (store,) = stores
    met = {store.name}
    root, bias = ops[store.inputs[0]], None
    if root.kind.shifted_by:
        met.add(root.name)
        loads = [ops[name] for name in root.inputs if ops[name].kind is Kind.LOAD]
        rest = [ops[name] for name in root.inputs if ops[name].kind is not Kind.LOAD]
        if len(loads) != 1 or len(rest) != 1:
            return None
        met.add(loads[0].name)
        root, bias = rest[0], block.tensor(loads[0].tensor)
    factors = _factors(root, ops, met)
    dots = [op for op in factors if op.kind.contracts]
    scales = [block.tensor(op.tensor) for op in factors if op.kind is Kind.LOAD]
    if len(dots) != 1 or len(scales) != 2 or len(factors) != 3:
        return None
    (dot,) = dots
    sides = [ops[name] for name in dot.inputs]
    met.update(op.name for op in (*factors, *sides))
    if any(op.kind is not Kind.LOAD for op in sides) or len(met) != len(block.ops):
        return None
    left, right = (block.tensor(op.tensor) for op in sides)
    out, one, other = block.tensor(store.tensor), *scales
    return _Scaled(left, right, frozenset(dot.over), (one, other), bias, out)


def _factors(op: Op, ops: dict[str, Op], met: set[str]) -> tuple[Op, ...]:
    """What is multiplied. (0 times anything is 0 in products alone.)"""
    if op.kind.absorbing != 0.0:
        return (op,)
    met.add(op.name)
    return tuple(factor for name in op.inputs for factor in _factors(ops[name], ops, met))


def match(block: BlockGraph) -> LibraryCall | None:
    found = _scaled(block)
    if found is None or not _fits(found):
        return None
    sizes, left, right, out = block.sizes, found.left, found.right, found.out
    if out.axes and out.axes[-1] in left.axes:  # a product's operands have no order
        left, right = right, left
    rows = [axis for axis in out.axes if axis in left.axes]
    columns = [axis for axis in out.axes if axis in right.axes]
    depth = [axis for axis in left.axes if axis in found.over]
    m, n, k = (prod(sizes[axis] for axis in axes) for axes in (rows, columns, depth))
    if {*left.axes} != {*rows, *depth} or {*right.axes} != {*columns, *depth} or out.axes != (*rows, *columns):
        return None
    if {*rows} & {*columns} or n % _MULTIPLE or k % _MULTIPLE:
        return None
    first, second, third = (
        _matrix(tensor, groups, steps, sizes)
        for tensor, groups, steps in (
            (left, (rows, depth), (k, 1)),
            (right, (depth, columns), (1, k)),
            (out, (rows, columns), (n, 1)),
        )
    )
    scales = _scales(found, rows, columns, sizes)
    if first is None or second is None or third is None or scales is None:
        return None
    biases = () if found.bias is None else (vector_of(found.bias, columns, sizes),)
    if None in biases:
        return None
    operands = (first, second, *scales, *(one for one in biases if one is not None))
    return LibraryCall(
        "torch._scaled_mm",
        operands,
        third,
        (Product(1, m, n, k),),
        held_bytes((*operands, third)),
        arguments=(f"out_dtype={ELEMENTS[out.dtype].torch_text}",),
        allocates=True,  # PyTorch knows no shapes of the form that writes to a tensor
        dtype=left.dtype,
        is_particular=True,
    )


def _fits(found: _Scaled) -> bool:
    """Does PyTorch have a kernel for these types?"""
    matrices, out = {found.left.dtype, found.right.dtype}, found.out.dtype
    if not matrices <= {*_FLOAT8} or matrices == {"f8e5m2"} or out not in COMPUTED:
        return False
    if any(scale.dtype != "f32" for scale in found.scales):
        return False
    if any(tensor.windows for tensor in (found.left, found.right, *found.scales, found.out)):
        return False
    if any(scale.axes for scale in found.scales) and (out != "bf16" or matrices != {"f8e4m3"}):
        return False
    return found.bias is None or (found.bias.dtype == out != "f32" and not found.bias.windows)


def _matrix(tensor: Tensor, groups: tuple[list[str], list[str]], steps: tuple[int, int], sizes: Sizes) -> View | None:
    """None where it does not lie so."""
    view = view_of(tensor, groups, sizes)
    if view is None or any(n > 1 and at != step for n, at, step in zip(view.shape, view.strides, steps, strict=True)):
        return None
    return view


def _scales(found: _Scaled, rows: list[str], columns: list[str], sizes: Sizes) -> tuple[View, View] | None:
    """Of the first matrix, and of the second."""
    one, other = found.scales
    if not one.axes and not other.axes:
        return View.whole(one, sizes), View.whole(other, sizes)
    if {*one.axes} != {*rows}:  # nor have its factors one
        one, other = other, one
    if {*one.axes} != {*rows} or {*other.axes} != {*columns}:
        return None
    first = _matrix(one, (rows, []), (1, 1), sizes)
    second = _matrix(other, ([], columns), (1, 1), sizes)
    return (first, second) if first is not None and second is not None else None


KERNEL = PredefinedKernel(match)
