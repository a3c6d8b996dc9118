"""Kernels for a range of sizes of which others are launched while a size is small, as one source.

One text of a kernel serves sizes with other tiles, not with other loops or another grid, and a reduction that is split
over the grid has a second kernel that joins its parts. Where a size is small, other kernels may be faster: the launcher
asks for the size, and launches these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.codegen.launcher import launcher_text
from mugraph.ir.kernel import KernelSource, Rejected, UpTo


def by_size(source: KernelSource, smaller: Sequence[UpTo]) -> KernelSource:
    """The source, with others up to some sizes, the smallest first. Raises Rejected where they cannot be in one module,
    or are not of the same tensors."""
    if not smaller:
        return source
    sizes = [one.largest for one in smaller]
    if sizes != sorted(set(sizes)) or len({one.axis for one in smaller}) > 1:
        raise Rejected("kernels for smaller sizes are not in the order of their sizes.")
    every = [source, *(one.source for one in smaller)]
    names = [kernel.name for one in every for kernel in one.kernels]
    if len(set(names)) < len(names):
        raise Rejected("kernels for several sizes have one name.")
    _check_parts(every)
    source = _launched_above(source, smaller[-1])
    jit = "\n\n\n".join(one.jit for one in every if one.jit)
    launcher = launcher_text(source.name, source.kernels, {tensor.name for tensor in source.outputs}, smaller)
    takes_tf32 = any(one.takes_tf32 for one in every)
    return replace(source, jit=jit, launcher=launcher, smaller=tuple(smaller), takes_tf32=takes_tf32)


def _launched_above(source: KernelSource, last: UpTo) -> KernelSource:
    """The source without schedules that no size takes any more."""

    def left(one: KernelSource) -> KernelSource:
        own = tuple(row for row in one.launches if row.largest > last.largest) if one.by == last.axis else one.launches
        return replace(one, launches=own)

    return replace(left(source), parts=tuple(map(left, source.parts)))


def _check_parts(every: Sequence[KernelSource]) -> None:
    """An axis that does not vary has one size: what is proved of the text takes it so. Raises Rejected."""
    found: dict[str, int] = {}
    kernels = [kernel for one in every for kernel in one.kernels]
    varying = {axis for one in kernels for axis in (*one.least, *one.divided, *one.divided.values())}
    for kernel in kernels:
        for axis, size in kernel.sizes.items():
            if axis not in varying and found.setdefault(axis, size) != size:
                raise Rejected(f"kernels for several sizes cut {axis} into parts of several lengths.")
