"""Windows of a unit whose sizes vary: from which place of a dimension does each begin at all sizes?

A window that slides reads the places of a dimension some places further. What is joined to a cache of any length
begins that length later; what a cache is joined to begins at the first place, and is as long at all sizes. Where the
lengths of both vary, an axis says where the seam is: one of the program, as that of the queries of the same tokens, or
one more that no tensor has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from mugraph.ir.calls import Corner
from mugraph.ir.names import numbered, unused
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window, at_sizes
from mugraph.trace.regions.dynamic import Varies

_PLACES: tuple[tuple[Corner, bool], ...] = (("", False), ("", True), ("first", False), ("last", False))
"""What a window may keep, and whether what an axis counts is behind it."""
Seen = tuple[Mapping[str, int], Tensor]
"""A tensor at other sizes: the sizes, and how it is there."""


def unplaced(window: Window) -> Window:
    """Without what may be another number at other sizes."""
    return replace(window, pad=0, rest=0) if window.slides else window


def windowed(program: TensorProgram, others: Sequence[TensorProgram]) -> TensorProgram:
    """The program, with what each window keeps at all sizes. others: the programs at other sizes. Raises Varies where a
    window keeps no place."""
    tensors = [
        _kept(tensor, program.sizes, [(one.sizes, one.tensors[at]) for one in others])
        for at, tensor in enumerate(program.tensors)
    ]
    return replace(program, tensors=tuple(tensors))


def with_measures(programs: Sequence[TensorProgram]) -> tuple[TensorProgram, ...]:
    """One program at several sizes, the largest first, with an axis for each length that a window needs and none has:
    that of what is joined to what the window reads."""
    found = tuple(programs)
    for at, tensor in enumerate(programs[0].tensors):
        for number, window in enumerate(tensor.windows):
            if not _may_slide(tensor, window) or _fits(found, at, number):
                continue
            (along,) = tensor.dims[window.dim]
            name = unused(numbered(f"{along}_joined"), found[0].sizes)
            for lengths in _joined(found, at, window.dim):
                sizes = ({**one.sizes, name: size} for one, size in zip(found, lengths, strict=True))
                made = tuple(replace(one, sizes=own) for one, own in zip(found, sizes, strict=True))
                if _fits(made, at, number):
                    found = made
                    break
    return found


def _joined(programs: Sequence[TensorProgram], at: int, dim: int) -> Iterator[list[int]]:
    """Lengths that may say where tensor `at` begins and ends in what is joined, at all sizes: that of the only other
    tensor, else its own, with which any others are of fixed lengths."""
    (along,) = programs[0].tensors[at].dims[dim]
    own = [one.tensors[at].shape(one.sizes)[dim] for one in programs]
    more = [one.sizes[along] - length for one, length in zip(programs, own, strict=True)]
    sides = [
        [one.tensors[other].shape(one.sizes)[window.dim] for one in programs]
        for other, tensor in enumerate(programs[0].tensors)
        for window in tensor.windows
        if tensor.dims[window.dim] == (along,)
    ]
    yield from (more, own) if more in sides else (own, more) if min(more) > 0 else (own,)


def _fits(programs: Sequence[TensorProgram], at: int, number: int) -> bool:
    """Does a window of tensor `at` keep something at all sizes, the largest first?"""
    first, *others = programs
    seen = [(one.sizes, one.tensors[at]) for one in others]
    return next(_fitting(first.tensors[at], number, first.sizes, seen), None) is not None


def _kept(tensor: Tensor, sizes: Mapping[str, int], others: Sequence[Seen]) -> Tensor:
    windows: list[Window] = []
    for number in range(len(tensor.windows)):
        found = next(_fitting(tensor, number, sizes, others), None)
        if found is None:
            raise Varies(f"where {tensor.source or tensor.name} is read from depends on more than one size")
        windows.append(found)
    return replace(tensor, windows=tuple(windows))


def _fitting(tensor: Tensor, number: int, sizes: Mapping[str, int], others: Sequence[Seen]) -> Iterator[Window]:
    """What one of its windows may keep, so that it is what was seen at all sizes."""
    window, every = tensor.windows[number], [(sizes, tensor), *others]
    axes = tensor.dims[window.dim]
    measures = (axis for axis in sizes if axis not in axes and any(at[axis] != sizes[axis] for at, _ in others))
    slides = _may_slide(tensor, window)
    for by, (keeps, behind) in product(("", *measures) if slides else ("",), _PLACES if slides else _PLACES[:1]):
        if behind and not by:
            continue
        made = replace(window, keeps=keeps, by=by, behind=behind)
        if by and not keeps and min(made.fixed(sizes[by])) < 0:
            continue
        if all(
            replace(seen.windows[number], keeps=keeps, by=by, behind=behind) == at_sizes(made, axes, sizes, there)
            for there, seen in every
        ):
            yield made


def _may_slide(tensor: Tensor, window: Window) -> bool:
    axes = tensor.dims[window.dim]
    return len(axes) == 1 and tensor.slid.issuperset(axes)
