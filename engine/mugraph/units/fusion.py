"""Whether one kernel may hold a program, and whether it would be a good one.

Estimates, for cutting only: what is offered is decided by the search's cost model and by measuring.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from mugraph.ir.calls import TensorInfo
from mugraph.ir.dtypes import ITEMSIZE, itemsize
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram

_TILE = 256
"""Elements of an output axis that one thread block can hold beside the axes of an earlier product."""
_CROWDED_TILE = 128
"""The same for a join that has to pay: what a block usually holds."""
_OUTPUT_TILE = 16 * 64
"""Elements of the smallest output tile that is worth a block. With the number of processors it tells how many of them
work."""
_PROCESSORS = 132
_MOST_PARTS, _PART = 64, 64
"""Parts of a reduction that is split across the grid, at most, and elements of a part, at least."""
_FLOPS = 4e8
"""Tensor-core operations per microsecond: about half of what a device of this size is good for."""
BANDWIDTH = 3e6
"""Device memory, bytes per microsecond."""
_CACHE = 6e6
"""Second-level cache, bytes per microsecond."""
LAUNCH_US = 2.4
"""The least time of a kernel, which is saved when there is one kernel fewer."""


def fits(program: TensorProgram) -> bool:
    """At most one exp on any path (Mirage's Lax fragment; other unary functions are opaque and may stand anywhere)."""
    depth: dict[str, int] = {}
    for op in program.ops:
        depth[op.name] = max((depth[i] for i in op.inputs), default=0) + ("exp" in op.kind.primitives)
        if depth[op.name] > 1:
            return False
    return True


def bytes_of(info: TensorInfo) -> int:
    """Bytes of memory that a value takes."""
    return prod(info.shape) * itemsize(info.dtype)


def kernel_us(values: Sequence[TensorInfo], program: TensorProgram | None = None) -> float:
    """Estimated microseconds of one kernel that moves these values and computes the program's products: the time of its
    traffic or of its arithmetic, whichever is longer."""
    moved = sum(bytes_of(info) for info in values)
    moved -= bytes_unread(program) if program is not None else 0
    flops = _flops(program) if program is not None else 0
    return LAUNCH_US + max(moved / BANDWIDTH, flops / _FLOPS)


def is_bound_by_memory(program: TensorProgram) -> bool:
    """Do its tensors take longer to be moved than its products to be computed?"""
    every = (*program.tensors, *program.outputs.values())
    moved = sum(prod(tensor.shape(program.sizes)) * ITEMSIZE[tensor.dtype] for tensor in every)
    return _flops(program) / _FLOPS <= moved / BANDWIDTH


def _flops(program: TensorProgram) -> int:
    products = [op for op in program.ops if op.kind.contracts]
    return sum(2 * prod(program.sizes[axis] for axis in (*op.axes, *op.over)) for op in products)


def bytes_unread(program: TensorProgram) -> int:
    """Of tensors of which rows are looked up: bytes of the other rows."""
    found = 0
    for tensor in (tensor for tensor in program.tensors if tensor.looked_up):
        whole, read = prod(tensor.memory_shape(program.sizes)), prod(tensor.shape(program.sizes))
        found += ITEMSIZE[tensor.dtype] * max(0, whole - read)
    return found


def joins_well(program: TensorProgram, *, crowded: bool) -> bool:
    """Whether computing every product inside the joined kernel is cheaper than storing it.

    A block that computes a product for a later one computes it again for every tile of the axes that only the later one
    has. Examples are LoRA's x @ a, for every tile of b's columns, and a projection of the keys, for every tile of
    queries.

    crowded: the program is part of a larger region, so the join has to pay. A region that is one unit as a whole (a
             chain of two products) gets the benefit of the doubt.
    """
    if _goes_beyond_windows(program):
        return False
    tile = _CROWDED_TILE if crowded else _TILE
    return all(_pays(program, op, tile, crowded) for op in program.ops if op.kind.contracts)


def _goes_beyond_windows(program: TensorProgram) -> bool:
    """Whether a product of a windowed tensor (a convolution) is reduced again, or is part of a root. Then its whole map
    would have to be in one block; and verification draws the arguments of roots row by row, which fails where rows
    overlap."""
    windowed = {
        tensor.name
        for tensor in program.tensors
        if not all(window.slides or window.lookup for window in tensor.windows)
    }
    below: set[str] = set()
    for op in program.ops:
        if any(name in below for name in op.inputs):
            if op.over or "sqrt" in op.kind.primitives:
                return True
            below.add(op.name)
        elif op.over and any(program.op(name).tensor in windowed for name in op.inputs):
            below.add(op.name)
    return False


def _pays(program: TensorProgram, product: Op, tile: int, crowded: bool) -> bool:
    others = _foreign_axes(program, product)
    if not others:
        return True
    repeats = max(ceil(program.sizes[axis] / tile) for axis in others)
    repeats = max(repeats, ceil(prod(program.sizes[axis] for axis in _tiled(program, others)) / tile))
    elements = prod(program.sizes[axis] for axis in product.axes)
    flops = 2 * elements * prod(program.sizes[axis] for axis in product.over)
    written = sum(prod(tensor.shape(program.sizes)) for tensor in program.outputs.values())
    blocks = written / _OUTPUT_TILE * _parts(program, product)
    busy = min(1.0, blocks / _PROCESSORS) if crowded else 1.0
    extra = flops / _FLOPS * (repeats / busy - 1) + (repeats - 1) * _loaded_bytes(program, product) / _CACHE
    return extra <= LAUNCH_US + 2 * 2 * elements / BANDWIDTH


def _parts(program: TensorProgram, product: Op) -> int:
    """Into how many parts the grid may split what reduces the product later, as the keys of an attention: each of them
    computes its own part of the product."""
    below, reduced = {product.name}, set[str]()
    for op in program.ops:
        if below.intersection(op.inputs):
            below.add(op.name)
            reduced.update(op.over)
    sizes = [program.sizes[axis] for axis in reduced.intersection(product.axes)]
    return max(1, min(_MOST_PARTS, max(sizes, default=1) // _PART))


def _tiled(program: TensorProgram, axes: frozenset[str]) -> frozenset[str]:
    """Foreign axes of the program's outputs: what a grid runs over."""
    written = {axis for tensor in program.outputs.values() for axis in tensor.axes}
    return axes & written


def _foreign_axes(program: TensorProgram, product: Op) -> frozenset[str]:
    """Axes that later values on the way to an output have and this one lacks."""
    below = {product.name}
    foreign: set[str] = set()
    for op in program.ops:
        if any(i in below for i in op.inputs):
            below.add(op.name)
            foreign.update(axis for axis in op.axes if axis not in product.axes)
    return frozenset(foreign - set(product.over))


def _loaded_bytes(program: TensorProgram, product: Op) -> int:
    """Bytes of the tensors the product is computed from."""
    above = {product.name}
    for op in reversed(program.ops):
        if op.name in above:
            above.update(op.inputs)
    total = 0
    for tensor in program.tensors:
        if any(op.kind is Kind.LOAD and op.tensor == tensor.name and op.name in above for op in program.ops):
            total += prod(tensor.shape(program.sizes)) * ITEMSIZE[tensor.dtype]
    return total
