"""Tensors in device memory, their dimensions made of named axes.

A *dimension* is what PyTorch sees (`shape[i]`); an *axis* is what the algebra sees. One dimension may hold several
axes, outermost first: a query weight of shape [heads * head_dim, hidden] has dims
`(("heads", "head_dim"), ("hidden",))`.
A dimension of size 1 that no axis runs over is the empty tuple. Names of axes are unique in one tensor. A dimension
that is read through a window (windows.py) holds the axes of its positions, then those of its taps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod

from mugraph.ir.dtypes import DType
from mugraph.ir.lookups import Lookup
from mugraph.ir.windows import Window

Dims = tuple[tuple[str, ...], ...]
Sizes = Mapping[str, int]
"""Axis name -> number of elements."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in device memory.

    name:    unique in its program, a Python identifier
    dims:    axes of each dimension, outermost first
    strides: of each dimension, in elements (0 for an expanded one)
    dtype:   of the storage
    source:  what the user's code calls it ("x", "self.up.weight"). Two tensors with one source are one piece of memory
             under two sets of axis names: `x @ x.T` is `x[i, k]` and `x[j, k]`.
    windows: dimensions that are read through a window, in order; of inputs only
    skew:    elements from the last multiple of 16 bytes to its first one, as a view may have them
    """

    name: str
    dims: Dims
    strides: tuple[int, ...]
    dtype: DType
    source: str = ""
    windows: tuple[Window, ...] = ()
    skew: int = 0

    @property
    def axes(self) -> tuple[str, ...]:
        """All axes in memory order, outermost dimension first."""
        return tuple(chain.from_iterable(self.dims))

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        shape = [prod(sizes[axis] for axis in dim) for dim in self.dims]
        for window in self.windows:
            shape[window.dim] = window.extent(self.dims[window.dim], sizes)
        return tuple(shape)

    @property
    def looked_up(self) -> Mapping[int, Lookup]:
        """Dimensions of which those rows are read that an index says."""
        return {window.dim: window.lookup for window in self.windows if window.lookup is not None}

    @property
    def indices(self) -> tuple[Tensor, ...]:
        """The tensors that say which of its rows are read."""
        return tuple(
            Tensor(one.name, (self.dims[dim],), (1,), one.dtype, one.source) for dim, one in self.looked_up.items()
        )

    def memory_shape(self, sizes: Sizes) -> tuple[int, ...]:
        """The shape of the tensor in memory: `shape` counts the rows that are looked up."""
        found = self.looked_up
        return tuple(found[at].rows if at in found else size for at, size in enumerate(self.shape(sizes)))

    def in_words(self, sizes: Sizes) -> str:
        """Type, shape and strides, as a person reads them; equal for two views of one memory. The stride of a dimension
        of one element says nothing, and is shown as 1."""
        shape = self.memory_shape(sizes)
        strides = [1 if size == 1 else stride for stride, size in zip(self.strides, shape, strict=True)]
        return f"{self.dtype}{list(shape)} with strides {strides}"

    def axis_strides(self, sizes: Sizes) -> dict[str, int]:
        """Distance in elements between neighbours along each axis: towards the end of the tensor or, of `reversed`
        ones, towards its beginning. (Where a window has a pad, the place that all first elements meet in lies before
        the tensor: `origin`.)"""
        strides: dict[str, int] = {}
        windows = {window.dim: window for window in self.windows}
        for number, (dim, stride) in enumerate(zip(self.dims, self.strides, strict=True)):
            parts = [(dim, 1)]
            if number in windows:
                positions, taps = windows[number].split(dim)
                parts = [(positions, windows[number].stride), (taps, windows[number].dilation)]
            for axes, step in parts:
                step *= stride
                for axis in reversed(axes):
                    strides[axis] = step
                    step *= sizes[axis]
        return strides

    def runs(self, sizes: Sizes) -> tuple[Run, ...]:
        """How it lies in memory: each axis, and each dimension that is read through a window as one, whose places are
        not those of its axes."""
        windows = {window.dim: window for window in self.windows}
        strides, found = self.axis_strides(sizes), list[Run]()
        for number, dim in enumerate(self.dims):
            if number in windows:
                found.append(Run(dim, windows[number].extent(dim, sizes), self.strides[number], windows[number]))
            else:
                found += (Run((axis,), sizes[axis], strides[axis]) for axis in dim)
        return tuple(found)

    @property
    def origin(self) -> int:
        """Distance in elements from the tensor's first element to where all of its axes begin: 0 without windows. Of
        windows whose places are no sums of indices the tensor's first element is where they begin; so it is of those
        whose pad depends on a size."""
        begun = (window for window in self.windows if window.is_sum and not window.begins_by_size)
        return -sum(window.pad * self.strides[window.dim] for window in begun)

    def is_within(self, other: Tensor) -> bool:
        """Is it known to be of the other's memory: has it the same source, or is that a view of the other's, as
        `x[:, 64:]` is of `x`?"""
        views = f"{other.source}.", f"{other.source}["
        return bool(other.source) and (self.source == other.source or self.source.startswith(views))

    @property
    def windowed(self) -> frozenset[str]:
        """Axes of its windows."""
        return frozenset(axis for window in self.windows for axis in self.dims[window.dim])

    @property
    def slid(self) -> frozenset[str]:
        """Axes that run over a dimension by themselves, each place of which is one of the dimension's, some places
        further: the dimension has as many elements as the axis, and a number more or less."""
        return frozenset(
            axis
            for window in self.windows
            if window.slides
            for axis in self.dims[window.dim]
            if len(self.dims[window.dim]) == 1
        )

    @property
    def measures(self) -> tuple[str, ...]:
        """Axes by whose sizes it is known where its windows begin and end; it need not have them."""
        return tuple(window.by for window in self.windows if window.by)

    @property
    def uncut(self) -> frozenset[str]:
        """Axes of its windows whose parts, outer and inner, would not be the dimension's places in this order: taps,
        and positions that are counted from their last one."""
        return self.taps | self.reversed

    @property
    def reversed(self) -> frozenset[str]:
        """Axes whose places are counted from their last one."""
        turned = (window for window in self.windows if window.reverse)
        return frozenset(axis for window in turned for axis in window.split(self.dims[window.dim])[0])

    @property
    def taps(self) -> frozenset[str]:
        """Axes that are taps of its windows."""
        return frozenset(axis for window in self.windows for axis in window.split(self.dims[window.dim])[1])


@dataclass(frozen=True, slots=True)
class Run:
    """An axis of a tensor, or a dimension of several that a window reads. extent: elements. stride: between neighbours,
    in elements"""

    axes: tuple[str, ...]
    extent: int
    stride: int
    window: Window | None = None


def contiguous_strides(dims: Dims, sizes: Sizes) -> tuple[int, ...]:
    """Row-major strides in elements, one per dimension."""
    strides: list[int] = []
    step = 1
    for dim in reversed(dims):
        strides.append(step)
        step *= prod(sizes[axis] for axis in dim)
    return tuple(reversed(strides))
