"""The program over the fields, at the elements that some blocks write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.triton_text.inputs import Inputs
from mugraph.triton_text.reals import Real, Reals
from mugraph.triton_text.tensors import extent_of
from mugraph.verification.evaluate import ancestors, evaluate_program
from mugraph.verification.field import FieldValue
from mugraph.verification.index_numbers import rows_of
from mugraph.verification.relations import Relations
from mugraph.verification.restrict import Slices, count_of, free_axes, places_of, restricted
from mugraph.verification.work import work

Flat = NDArray[np.int64]


@dataclass(frozen=True)
class Reference:
    """indices: what those hold by which rows are looked up"""

    program: TensorProgram
    indices: Mapping[str, Flat] = field(default_factory=dict[str, Flat])

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Tensor -> the number of its first element among all inputs. Tensors of one source are one memory."""
        found: dict[str, int] = {}
        homes: dict[str, int] = {}
        for tensor in self.program.tensors:
            home = tensor.source or f"\0{tensor.name}"
            if home not in homes:
                alike = [t for t in self.program.tensors if (t.source or f"\0{t.name}") == home]
                homes[home] = self._end(homes, found, alike)
            found[tensor.name] = homes[home]
        return found

    def _end(self, homes: Mapping[str, int], found: Mapping[str, int], alike: list[Tensor]) -> int:
        ends = [start + self.extent(self.program.tensor(name)) for name, start in found.items()]
        return max(ends, default=0)

    @cached_property
    def count(self) -> int:
        return max((start + self.extent(self.program.tensor(name)) for name, start in self.numbers.items()), default=1)

    def extent(self, tensor: Tensor) -> int:
        return extent_of(tensor.memory_shape(self.program.sizes), tensor.strides)

    @cached_property
    def _classes(self) -> list[frozenset[str]]:
        return free_axes(self.program, [], Relations(self.program, [], sources=False))

    @cached_property
    def work(self) -> float:
        return work(self.program, [], self.program.sizes)

    def values(self, output: str, at: Flat, inputs: Inputs, reals: Reals) -> Real:
        """What the program computes for elements of an output, counted as they lie in memory."""
        value, tensor = next((v, t) for v, t in self.program.outputs.items() if t.name == output)
        alone = replace(self.program, outputs={value: tensor})
        axes = tensor.axes
        sizes = [self.program.sizes[axis] for axis in axes]
        coordinates = dict(zip(axes, np.unravel_index(at, sizes) if sizes else (), strict=True))
        slices = self._slices(coordinates)
        small = restricted(alone, slices)
        loaded = {op.tensor for op in alone.ops if op.name in ancestors(alone.ops, [value]) and op.tensor}
        taken = {t.name: self._taken(t, slices, inputs) for t in self.program.tensors if t.name in loaded}
        found = evaluate_program(small, taken, reals.field)[output]
        places = np.zeros(at.shape, np.int64)
        for axis in axes:
            first, size = slices.get(axis, (0, self.program.sizes[axis]))
            places = places * size + (coordinates[axis] - first)
        return Real(found.p.reshape(-1)[places], None if found.q is None else found.q.reshape(-1)[places])

    def _slices(self, coordinates: Mapping[str, NDArray[np.intp]]) -> Slices:
        """The part of the program that has these elements."""
        found: dict[str, tuple[int, int]] = {}
        for axes in self._classes:
            ends = [
                (int(coordinates[axis].min()), int(coordinates[axis].max()) + 1) for axis in axes & coordinates.keys()
            ]
            if ends:
                first, last = min(start for start, _ in ends), max(end for _, end in ends)
                found |= dict.fromkeys(axes, (first, last - first))
        return {axis: part for axis, part in found.items() if part != (0, self.program.sizes[axis])}

    def _taken(self, tensor: Tensor, slices: Slices, inputs: Inputs) -> FieldValue:
        rank = len(tensor.dims)
        every = [places_of(tensor, dim, self.program.sizes, slices) for dim in range(rank)]
        for dim, rows in rows_of(tensor, self.indices).items():
            every[dim] = rows[every[dim]]
        run = next((d for d in range(rank) if tensor.strides[d] == 1 and _is_run(every[d])), None)
        places = np.full((1,) * rank, self.numbers[tensor.name], np.int64)
        for dim, stride in enumerate(tensor.strides):
            along = every[dim][:1] * stride if dim == run else every[dim] * stride
            places = places + along.reshape([-1 if d == dim else 1 for d in range(rank)])
        if run is None:
            p, q = inputs.at(places)
        else:
            p, q = inputs.block(places.squeeze(run), len(every[run]))
            p, q = np.moveaxis(p, -1, run), None if q is None else np.moveaxis(q, -1, run)
        return FieldValue(p[None], None if q is None else q[None])

    def taken(self, output: str, at: Flat) -> int:
        """Elements of inputs that these elements are computed from."""
        value, tensor = next((v, t) for v, t in self.program.outputs.items() if t.name == output)
        axes = tensor.axes
        sizes = [self.program.sizes[axis] for axis in axes]
        slices = self._slices(dict(zip(axes, np.unravel_index(at, sizes) if sizes else (), strict=True)))
        ops = self.program.ops
        loaded = {op.tensor for op in ops if op.name in ancestors(ops, [value]) and op.tensor}
        every = [
            [count_of(t, dim, self.program.sizes, slices) for dim in range(len(t.dims))]
            for t in self.program.tensors
            if t.name in loaded
        ]
        return sum(prod(one) for one in every)

    def elements(self, output: str) -> int:
        return prod(self.program.tensor(output).shape(self.program.sizes))


def _is_run(places: Flat) -> bool:
    return places.size > 1 and bool((np.diff(places) == 1).all())
