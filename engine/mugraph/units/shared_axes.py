"""Axes of a program's several outputs that one kernel may run over together.

Queries, keys and values of equal width are three products over one depth; their columns are unrelated. If the columns
are given one name they become one axis of the grid: a thread block computes a tile of each product, and reads what they
share once.
"""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Dims, Tensor


def with_shared_axes(program: TensorProgram) -> TensorProgram:
    """The program with axes of one output renamed to those of an earlier output: same place, same size, and no value
    has both. It is the same function of the same tensors."""
    values = tuple(program.outputs)
    for number, value in enumerate(values):
        for earlier in values[:number]:
            # As they are by now: what is renamed in one output may be in several.
            new = _alike(program, program.outputs[earlier], program.outputs[value])
            if new:
                program = _renamed(program, new)
    return program


def _alike(program: TensorProgram, one: Tensor, other: Tensor) -> dict[str, str]:
    """Axes of `other` -> what they may be called."""
    if len(one.dims) != len(other.dims):
        return {}
    new: dict[str, str] = {}
    for dim, own in zip(one.dims, other.dims, strict=True):
        if len(dim) != len(own):
            continue
        for axis, wanted in zip(own, dim, strict=True):
            if axis in one.axes or wanted in other.axes or program.sizes[axis] != program.sizes[wanted]:
                continue
            if not any({axis, wanted} <= axes for axes in _together(program)):
                new[axis] = wanted
    return new


def _together(program: TensorProgram) -> list[set[str]]:
    """Axes that one value, one reduction or one tensor has."""
    tensors = (*program.tensors, *program.outputs.values())
    values = {op.name: set(op.axes) for op in program.ops}
    return [
        *({*op.axes, *op.over, *(axis for i in op.inputs for axis in values[i])} for op in program.ops),
        *(set(tensor.axes) for tensor in tensors),
    ]


def _renamed(program: TensorProgram, new: dict[str, str]) -> TensorProgram:
    def names(axes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new.get(axis, axis) for axis in axes)

    return replace(
        program,
        sizes={axis: size for axis, size in program.sizes.items() if axis not in new},
        tensors=tuple(_tensor(tensor, new) for tensor in program.tensors),
        ops=tuple(
            replace(
                op,
                axes=tuple(sorted(names(op.axes))),
                over=tuple(sorted(names(op.over))),
                rows=names(op.rows),
                columns=names(op.columns),
            )
            for op in program.ops
        ),
        outputs={value: _tensor(tensor, new) for value, tensor in program.outputs.items()},
    )


def _tensor(tensor: Tensor, new: dict[str, str]) -> Tensor:
    dims: Dims = tuple(tuple(new.get(axis, axis) for axis in dim) for dim in tensor.dims)
    return replace(tensor, dims=dims)
