"""Rules of block graphs: the loop nest, accumulators, and stores (Mirage §2.1 and Definition 2.1, MCFuser §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from mugraph.ir.block import BlockGraph
from mugraph.ir.dtypes import WRITTEN
from mugraph.ir.ops import Kind, Op
from mugraph.ir.placement import loop_paths, varying
from mugraph.ir.tensors import Sizes, Tensor


def loop_violations(block: BlockGraph, passes: int) -> Iterator[str]:
    """The nest itself, what varies in it, and accumulators."""
    paths = loop_paths(block.loops)
    for axis in paths:
        if block.loop_axes.count(axis) > 1:
            yield f"loop {axis} occurs more than once"
        if axis not in block.sizes:
            yield f"loop axis {axis} has no size"
    vary = varying(block)
    levels = _levels(block, vary)
    inside: dict[str, frozenset[str]] = {}
    for op in block.ops:
        inputs = frozenset[str]().union(*(vary.get(name, frozenset()) for name in op.inputs))
        for one, other in combinations(sorted(inputs & paths.keys()), 2):
            if one not in paths[other] and other not in paths[one]:
                yield f"{op.name} varies in loops {one} and {other}, neither of which is inside the other"
        if op.kind.scans:
            for axis in (axis for axis in op.over if axis in inputs):
                for inner in sorted(inputs - {axis}):
                    if axis in paths.get(inner, ()):
                        yield f"{op.name} runs along loop {axis} while its input varies in {inner}, a loop inside it"
        if op.kind is Kind.ACCUM:
            yield from _accum_violations(op, inputs, paths)
        # The operator runs inside the outer loops as well: what an outer loop adds up is complete only after that
        # loop.
        around = {outer for axis in inputs & paths.keys() for outer in paths[axis]}
        for axis in sorted(around):
            ran = max((levels.get((name, axis), 0) for name in op.inputs), default=0)
            # One sentence for the operator that begins the further pass, none for those that follow in it.
            begun = any(axis in inside.get(name, ()) and levels.get((name, axis), 0) >= passes for name in op.inputs)
            if ran >= passes and not begun:
                stands = "varies" if axis in inputs else f"varies in {_list(inputs & paths.keys())} and so stands"
                yield (
                    f"{op.name} {stands} in loop {axis} and uses a value accumulated over it, "
                    f"which needs {ran + 1} passes over the loop"
                )
        after = vary[op.name] & paths.keys()
        inside[op.name] = frozenset(outer for axis in after for outer in paths[axis])


def _accum_violations(op: Op, inputs: frozenset[str], paths: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    if len(op.over) != 1:
        yield f"{op.name}: an accumulator closes exactly one loop, not {len(op.over)}"
        return
    (axis,) = op.over
    if axis not in paths:
        yield f"{op.name} accumulates over {axis}, which is no loop"
    elif axis not in inputs:
        yield f"{op.name} accumulates over loop {axis}, in which its input does not vary (a second accumulator?)"
    else:
        for inner in sorted(inputs - {axis}):
            if axis in paths[inner]:
                yield f"{op.name} closes loop {axis} while its input still varies in {inner}, a loop inside it"


def _list(axes: frozenset[str]) -> str:
    return " and ".join(sorted(axes))


def _levels(block: BlockGraph, vary: Mapping[str, frozenset[str]]) -> dict[tuple[str, str], int]:
    """(value, loop) -> most accumulators of that loop on a path to the value."""
    levels: dict[tuple[str, str], int] = {}
    for op in block.ops:
        for axis in block.loop_axes:
            below = max((levels.get((name, axis), 0) for name in op.inputs), default=0)
            levels[op.name, axis] = below + (op.kind is Kind.ACCUM and axis in op.over)
    return levels


def store_violations(block: BlockGraph) -> Iterator[str]:
    """Every input is loaded, every output written once and completely."""
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    loaded = {op.tensor for op in block.ops if op.kind is Kind.LOAD}
    stored = [op.tensor for op in stores]
    if not stores:
        yield "there is no output"
    for tensor in block.tensors:
        if stored.count(tensor.name) > 1:
            yield f"tensor {tensor.name} is stored more than once"
        if tensor.name in loaded and tensor.name in stored:
            yield f"tensor {tensor.name} is both loaded and stored"
        if tensor.name not in loaded and tensor.name not in stored:
            yield f"tensor {tensor.name} is neither loaded nor stored"
    tensors = {tensor.name: tensor for tensor in block.tensors}
    vary = varying(block)
    for op in stores:
        if op.tensor not in tensors:
            continue
        tensor = tensors[op.tensor]
        if tensor.dtype not in WRITTEN:
            yield f"{op.name}: tensor {tensor.name} is of type {tensor.dtype}, which kernels read and never write"
        if tensor.windows:
            yield f"{op.name}: tensor {tensor.name} is written through a window"
        if op.axes != tuple(sorted(tensor.axes)):
            yield f"{op.name}: the value has axes {list(op.axes)}, tensor {tensor.name} {sorted(tensor.axes)}"
        for axis in block.loop_axes:
            if axis in vary[op.name] and axis not in tensor.axes:
                yield f"{op.name}: the stored value varies in loop {axis}; an accumulator is missing on the way"
            if axis not in vary[op.name] and axis in tensor.axes:
                yield f"{op.name}: the stored value has one tile of axis {axis}, tensor {tensor.name} all of it"
        if _overlaps(tensor, block.sizes):
            yield f"{op.name}: elements of tensor {tensor.name} overlap in memory (strides {list(tensor.strides)})"


def _overlaps(tensor: Tensor, sizes: Sizes) -> bool:
    """Whether two elements may share memory: each stride must reach past all that the smaller ones span."""
    if not set(tensor.axes) <= set(sizes) or len(tensor.strides) != len(tensor.dims):
        return False
    span = 1
    for stride, size in sorted(zip(tensor.strides, tensor.shape(sizes), strict=True)):
        if size == 1:
            continue
        if stride < span:
            return True
        span = stride * (size - 1) + span
    return False
