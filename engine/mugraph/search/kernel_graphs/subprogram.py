"""What one kernel of a kernel graph computes, as a tensor program of its own: (values, inputs).

Values between kernels lie in device memory, contiguous, in the order PyTorch's own operators would leave their axes in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from mugraph.ir.dtypes import COMPUTED, ITEMSIZE, DType, is_read
from mugraph.ir.library import fast_call, memory_orders
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.statistics import statistics
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.search.direct import as_block


def in_memory(program: TensorProgram, choice: int = 0) -> dict[str, Tensor]:
    """The tensor each computed value is stored in where a kernel hands it to another: the program's own for outputs.

    choice: among the orders that a library's kernel may leave a product in, the preferred one first
    """
    taken = {tensor.name for tensor in (*program.tensors, *program.outputs.values())}
    orders = _orders(program, choice)
    inner, stored = statistics(program), dict[str, Tensor]()
    for op in program.compute_ops:
        if op.name in program.outputs:
            stored[op.name] = program.outputs[op.name]
            continue
        dims = tuple((axis,) for axis in orders[op.name])
        name = take(numbered(op.name), taken)
        stored[op.name] = Tensor(name, dims, contiguous_strides(dims, program.sizes), _dtype(program, op, inner))
    return stored


def worth_storing(program: TensorProgram, stored: Mapping[str, Tensor]) -> frozenset[str]:
    """Values that kernels may hand to one another. stored: value -> the tensor it is in (`in_memory`)

    Left out is a value with one user, if that is element-wise, has the same axes, and otherwise needs only what each
    kernel can load or compute element by element: the user's result is as large, and one step further. A product stays
    in all the same, because a pre-defined kernel may compute it; or its sum with a bias does in its place, where that
    kernel adds it for nothing.
    """
    biased = _biased(program, stored)
    at_hand: set[str] = set()
    for op in program.ops:
        if op.kind.is_leaf or (op.kind.is_elementwise and at_hand.issuperset(op.inputs)):
            at_hand.add(op.name)
    found: set[str] = set()
    for op in program.compute_ops:
        users = [user for user in program.ops if op.name in user.inputs]
        if not users or op.name in program.outputs or (not op.axes and op.name in at_hand):
            continue
        steps = [user for user in users if user.kind.is_elementwise and user.axes == op.axes]
        is_call = op.name in biased or (op.kind.contracts and (len(users) > 1 or users[0].name not in biased))
        further = not is_call and len(users) == len(steps) == 1
        if not further or not at_hand.issuperset(name for name in steps[0].inputs if name != op.name):
            found.add(op.name)
    return frozenset(found)


def _biased(program: TensorProgram, stored: Mapping[str, Tensor]) -> frozenset[str]:
    """Sums that a library's kernel computes with their products, and as fast."""
    found: set[str] = set()
    ops = {op.name: op for op in program.ops}
    for op in program.ops:
        if op.kind.shifted_by and any(ops[name].kind.contracts for name in op.inputs):
            call = fast_call(as_block(subprogram(program, [op.name], [], stored)))
            if call is not None and not call.copied:
                found.add(op.name)
    return frozenset(found)


def subprogram(
    program: TensorProgram, values: Sequence[str], leaves: Collection[str], stored: Mapping[str, Tensor]
) -> TensorProgram:
    """The program that computes `values` from the program's inputs and the values in `leaves`.

    stored: value -> the tensor it is in (`in_memory`)
    """
    needed = set(values)
    for op in reversed(program.ops):
        if op.name in needed and op.name not in leaves:
            needed.update(op.inputs)
    ops = [
        Op(op.name, Kind.LOAD, (), op.axes, tensor=stored[op.name].name, f32=op.f32) if op.name in leaves else op
        for op in program.ops
        if op.name in needed
    ]
    loaded = {op.tensor for op in ops if op.kind is Kind.LOAD}
    tensors = [t for t in (*program.tensors, *(stored[v] for v in sorted(leaves))) if t.name in loaded]
    outputs = {value: stored[value] for value in values}
    used = {axis for op in ops for axis in (*op.axes, *op.over)}.union(*(tensor.measures for tensor in tensors))
    sizes = {axis: size for axis, size in program.sizes.items() if axis in used}
    return TensorProgram(f"{program.name}_{values[0]}", sizes, tuple(tensors), tuple(ops), outputs)


def only(program: TensorProgram, value: str) -> TensorProgram:
    """What computes one of the outputs."""
    needed = {value}
    for op in reversed(program.ops):
        if op.name in needed:
            needed.update(op.inputs)
    ops = tuple(op for op in program.ops if op.name in needed)
    loaded = {op.tensor for op in ops if op.kind is Kind.LOAD}
    tensors = tuple(tensor for tensor in program.tensors if tensor.name in loaded)
    axes = {axis for op in ops for axis in (*op.axes, *op.over)}.union(*(tensor.measures for tensor in tensors))
    return TensorProgram(
        program.name,
        {axis: size for axis, size in program.sizes.items() if axis in axes},
        tensors,
        ops,
        {value: program.outputs[value]},
    )


def bytes_of(tensors: Iterable[Tensor], sizes: Mapping[str, int]) -> int:
    """Of tensors in memory; what is expanded lies there once."""
    total = 0
    for tensor in tensors:
        elements = ITEMSIZE[tensor.dtype]
        for size, stride in zip(tensor.shape(sizes), tensor.strides, strict=True):
            elements *= size if stride else 1
        total += elements
    return total


def flops_of(program: TensorProgram) -> float:
    """Of the program's products: what tensor cores take for a large one, whatever is fused with it."""
    return sum(
        2.0 * prod(program.sizes[axis] for axis in (*op.axes, *op.over)) for op in program.ops if op.kind.contracts
    )


def without_store(program: TensorProgram, ops: Iterable[Op]) -> TensorProgram:
    """The program of a block graph without loops that computes the program's output."""
    kept = [op for op in ops if op.kind is not Kind.STORE]
    stored = {op.tensor: op.inputs[0] for op in ops if op.kind is Kind.STORE}
    loaded = {op.tensor for op in kept if op.kind is Kind.LOAD}
    outputs = {stored[tensor.name]: tensor for tensor in program.outputs.values()}
    return replace(
        program, tensors=tuple(t for t in program.tensors if t.name in loaded), ops=tuple(kept), outputs=outputs
    )


def _dtype(program: TensorProgram, op: Op, inner: Collection[str]) -> DType:
    """What the user's code rounds the value to. inner: values that PyTorch keeps in float32; the norm of a long row of
    float16 may be beyond that type"""
    if is_read(op.kind.stored):
        return op.kind.stored
    types: set[DType] = {tensor.dtype for tensor in program.tensors if tensor.dtype in COMPUTED}
    return types.pop() if len(types) == 1 and not op.f32 and op.name not in inner else "f32"


def _orders(program: TensorProgram, choice: int) -> dict[str, tuple[str, ...]]:
    """Axes of each value as PyTorch leaves them in memory: those of the first operand, then of the others; a product's
    batches, rows and columns."""
    orders: dict[str, tuple[str, ...]] = {}
    for op in program.ops:
        if op.kind is Kind.LOAD:
            tensor = program.tensor(op.tensor)
            steps = tensor.axis_strides(program.sizes)
            found = sorted(tensor.axes, key=lambda axis: (-abs(steps[axis]), tensor.axes.index(axis)))
        elif op.kind.of_places:
            found = [*op.rows, *op.columns]
        elif known := memory_orders(program, op):
            found = list(known[min(choice, len(known) - 1)])
        elif op.kind.contracts:
            left, right = (orders[name] for name in op.inputs)
            found = [*(axis for axis in left if axis in right), *left, *right]
        else:
            widest = sorted((orders[name] for name in op.inputs), key=len, reverse=True)
            found = [axis for operand in widest for axis in operand]
        orders[op.name] = tuple(axis for axis in dict.fromkeys(found) if axis in op.axes)
    return orders
