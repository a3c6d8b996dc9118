"""The program's names for the axes of block graphs that have names of their own.

Axes are matched by position, not by name. A tensor may have two sets of axis names: the program's and a kernel's,
or those of the kernel that writes it and of the kernel that reads it. The two sets are compared in each dimension,
and where both divide it into the same parts, those parts get one name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.names import numbered, unused
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.transforms.renaming import Names, Renaming

Kernels = Sequence[tuple[BlockGraph, Schedule]]


def with_program_axes(program: TensorProgram, kernels: Kernels) -> list[tuple[BlockGraph, Schedule]]:
    """The kernels with axes renamed: a name means one size in all kernels and in the program, and axes of tensors
    that the program has too get the program's names. Parts of an axis keep their names if they can."""
    sizes = dict(program.sizes)
    known = {tensor.name: tensor for tensor in (*program.tensors, *program.outputs.values())}
    renamed: list[tuple[BlockGraph, Schedule]] = []
    for block, schedule in kernels:
        new = _new_names(block, known, sizes)
        sizes.update((name, block.sizes[axis]) for axis, name in new.items())
        names = Renaming(Names(axes=tuple(new)), Names(axes=tuple(new.values())), made=False)
        moved = names.block(block)
        known.update((tensor.name, tensor) for tensor in moved.tensors if tensor.name not in known)
        renamed.append((moved, names.schedule(schedule)))
    return renamed


def _new_names(block: BlockGraph, known: Mapping[str, Tensor], sizes: Sizes) -> dict[str, str]:
    """Axis of the block graph -> its new name; no two get one. sizes: of the names that are taken"""
    wanted: dict[str, list[str]] = {axis: [] for axis in block.sizes}
    for tensor in block.tensors:
        if tensor.name in known:
            for own, theirs in side_by_side(tensor, block.sizes, known[tensor.name], sizes):
                if len(own) == len(theirs) == 1:
                    wanted[own[0]].append(theirs[0])
    new = {axis: axis for axis in block.sizes if axis in wanted[axis]}
    for axis in (axis for axis in block.sizes if axis not in new):
        new[axis] = next((name for name in wanted[axis] if name not in new.values()), "")
    for axis in (axis for axis in block.sizes if not new[axis]):
        kept = {axis} if sizes.get(axis) == block.sizes[axis] else set[str]()
        new[axis] = unused(numbered(axis), {*new.values(), *(sizes.keys() - kept)})
    return {axis: new[axis] for axis in block.sizes}


def side_by_side(
    one: Tensor, sizes: Sizes, other: Tensor, other_sizes: Sizes
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Axes of two views of one tensor that run over the same places: the shortest groups, outermost first, with
    equally many elements in both views. Axes of one element are left out, and so is what does not fit."""
    if len(one.dims) != len(other.dims):
        return []
    found: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for left, right in zip(_parts(one), _parts(other), strict=True):
        for axes, theirs in zip(left, right, strict=False):
            found += groups(axes, sizes, theirs, other_sizes)
    return found


def _parts(tensor: Tensor) -> list[tuple[tuple[str, ...], ...]]:
    """Each dimension's axes; if it is read through a window, those of its positions and those of its taps apart."""
    windows = {window.dim: window for window in tensor.windows}
    return [windows[i].split(dim) if i in windows else (dim,) for i, dim in enumerate(tensor.dims)]


def groups(
    left: Sequence[str], sizes: Sizes, right: Sequence[str], other_sizes: Sizes
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """As side_by_side, of one dimension."""
    a = [axis for axis in left if sizes.get(axis, 0) != 1]
    b = [axis for axis in right if other_sizes.get(axis, 0) != 1]
    found: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    while a and b:
        m = n = 1
        while (elements := prod(sizes.get(x, 0) for x in a[:m])) != (
            others := prod(other_sizes.get(x, 0) for x in b[:n])
        ):
            if elements < others:
                m += 1
            else:
                n += 1
            if m > len(a) or n > len(b):
                return found
        found.append((tuple(a[:m]), tuple(b[:n])))
        a, b = a[m:], b[n:]
    return found
