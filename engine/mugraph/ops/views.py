"""Parts of tensors as kernels read them: views that PyTorch takes, at no cost, before a kernel is called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from mugraph.ir.calls import Argument, Symbol, TensorInfo
from mugraph.ir.ranges import dense_strides
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.complexes import PARTS, part_of
from mugraph.ops.algebra.packed import bytes_of
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.sections import Section, spelled

BYTES = "view(torch.uint8)"


@dataclass(frozen=True)
class View:
    """A part of the value with the number `value`.

    part:  of a complex value "real" or "imag", which is taken first; of packed integers their bytes; "" of any other.
           first: of that part
    whole: dimension of the value that is read through a window -> which one of the view it is
    shape: in which the value is seen first; None: its own
    index: what is kept of each dimension of that shape
    seen:  of the value in that shape. info: of the view
    copied: PyTorch copies it, so that it lies row by row: its strides are others at each size
    """

    value: int
    shape: tuple[int, ...] | None
    index: tuple[slice | int, ...]
    seen: TensorInfo
    info: TensorInfo
    part: str = ""
    first: TensorInfo | None = None
    whole: Mapping[int, int] = field(default_factory=dict[int, int], compare=False)
    copied: bool = False

    @property
    def read(self) -> TensorInfo:
        """Of what a kernel reads."""
        return replace(self.info, strides=dense_strides(self.info.shape)) if self.copied else self.info

    @property
    def is_whole(self) -> bool:
        """Is all of the value, or of its part, kept?"""
        return self.shape is None and all(index == slice(None) for index in self.index)

    @property
    def text(self) -> str:
        """What it is of its tensor, as people write it: `[..., 64:]`, `.view(2, 8, 3, 64)[:, :, 0]`."""
        first = "" if self.shape is None else f".view({', '.join(map(str, self.shape))})"
        part = f".{self.part}" if self.part else ""
        found = f"{part}{first}" if self.is_whole else f"{part}{first}[{spelled(self.index)}]"
        return f"{found}.contiguous()" if self.copied else found

    @property
    def argument(self) -> Argument:
        """The index of a recorded `__getitem__`."""
        lead = next((i for i, part in enumerate(self.index) if part != slice(None)), 0)
        items: list[Argument] = list(self.index[lead:]) if lead > 1 else list(self.index)
        while items[-1] == slice(None):
            items.pop()
        complete = len(items) + (lead if lead > 1 else 0) == len(self.index)
        if lead > 1 and complete:
            return (Symbol("..."), *items)
        items = [*([slice(None)] * lead if lead > 1 else []), *items]
        return tuple(items) if len(items) > 1 else items[0]


def part_view_of(
    value: int, info: TensorInfo, dims: AtomDims, sections: Mapping[int, Section], sizes: Mapping[int, int],
    windowed: Collection[int] = (),
) -> tuple[View, AtomDims]:  # fmt: skip
    """As view_of, of a complex value, whose last of `dims` says which part."""
    (last,) = dims[-1]
    first = part_of(info)
    view, axes = view_of(value, first, dims[:-1], sections, sizes, windowed)
    return replace(view, part=PARTS[sections[last].start], first=first), axes


def bytes_view_of(
    value: int, info: TensorInfo, dims: AtomDims, sections: Mapping[int, Section], sizes: Mapping[int, int],
    windowed: Collection[int] = (),
) -> tuple[View, AtomDims]:  # fmt: skip
    """As view_of, of packed integers, of which the bytes are read."""
    first = bytes_of(info)
    view, axes = view_of(value, first, dims, sections, sizes, windowed)
    return replace(view, part=BYTES, first=first), axes


def view_of(
    value: int, info: TensorInfo, dims: AtomDims, sections: Mapping[int, Section], sizes: Mapping[int, int],
    windowed: Collection[int] = (),
) -> tuple[View, AtomDims]:  # fmt: skip
    """The part of a value that is asked for at `dims`, and the axes of the view's dimensions.

    sections: what some of the atoms are, in terms of the others. sizes: of the others
    windowed: dimensions that are read through a window, which are whole in the view
    """
    factors: list[int] = []
    steps: list[int] = []
    index: list[slice | int] = []
    axes: list[AtomDim] = []

    def count(atoms: AtomDim) -> int:
        if any(atom in sections for atom in atoms):
            raise NotLowerable("a part of a part of a tensor that is no part of it is taken by PyTorch")
        return prod(sizes[atom] for atom in atoms)

    whole: dict[int, int] = {}
    for number, (dim, size, stride) in enumerate(zip(dims, info.shape, info.strides, strict=True)):
        left = size
        if number in windowed:
            whole[number] = len(axes)
            factors.append(size)
            index.append(slice(None))
            axes.append(dim)
            steps.append(stride)
            continue
        sliced = _slice(dim, sections, sizes)
        if sliced is not None:
            part, run = sliced
            factors.append(size)
            index.append(part)
            axes.append(run)
            steps.append(stride * (part.step or 1))
            continue
        for part in _runs(dim, sections):
            section = sections.get(part[0]) if part else None
            extent = count(part) if section is None else section.size
            left //= extent
            factors.append(extent)
            if section is None:
                index.append(slice(None))
                axes.append(part)
                steps.append(stride * left)
            elif not section.inner:
                index.append(section.start)
            else:
                last = section.last(count(section.inner))
                ends = last + 1 == section.size or last + section.step >= section.size
                stop = None if ends else last + 1
                step = None if section.step == 1 else section.step
                index.append(slice(section.start or None, stop, step))
                axes.append(section.inner)
                steps.append(stride * left * section.step)
    shape = tuple(factors)
    sizes_read = {place: info.shape[number] for number, place in whole.items()}
    full = [sizes_read[at] if at in sizes_read else count(dim) for at, dim in enumerate(axes)]
    kept = replace(info, shape=tuple(full), strides=tuple(steps), triangle=None)
    seen = replace(info, shape=shape, strides=_strides(info, shape), triangle=None)
    seen_as = None if shape == info.shape else shape
    return View(value, seen_as, tuple(index), seen, kept, whole=whole), tuple(axes)


def _slice(dim: AtomDim, sections: Mapping[int, Section], sizes: Mapping[int, int]) -> tuple[slice, AtomDim] | None:
    """A dimension of which one piece is kept, or one element of every piece, as a slice of it and what that runs
    over."""
    if len(dim) < 2 or sum(atom in sections for atom in dim) != 1:
        return None
    for section, run in ((sections.get(dim[0]), dim[1:]), (sections.get(dim[-1]), dim[:-1])):
        if section is None or section.inner:
            continue
        n = prod(sizes[atom] for atom in run)
        if run == dim[:-1]:
            return slice(section.start or None, None, section.size), run
        stop = None if section.start + 1 == section.size else (section.start + 1) * n
        return slice(section.start * n or None, stop), run
    return None


def _strides(info: TensorInfo, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of a tensor whose dimensions are cut into factors."""
    found: list[int] = []
    rest = list(shape)
    for size, stride in zip(info.shape, info.strides, strict=True):
        own: list[int] = [rest.pop(0)]
        while prod(own) < size:
            own.append(rest.pop(0))
        found += [stride * prod(own[i + 1 :]) for i in range(len(own))]
    return tuple(found)


def _runs(dim: AtomDim, sections: Mapping[int, Section]) -> list[AtomDim]:
    """The dimension cut at its sections: runs of other atoms, and sections alone."""
    runs: list[AtomDim] = []
    for atom in dim:
        if runs and atom not in sections and runs[-1][-1] not in sections:
            runs[-1] = (*runs[-1], atom)
        else:
            runs.append((atom,))
    return runs or [()]
