"""Loads at sections that no slice of PyTorch is: of places that begin before a dimension's first one, or go backwards.

A window of one tap reads them, zero where there is none (ir/windows.py). Of other dimensions a part may be read.
Where a dimension's size varies, a slice's strides say nothing of what it is outside of that dimension: a part of one is
read through a window as well, so that the whole tensor's own strides hold.
"""

from __future__ import annotations

from collections.abc import Collection

from mugraph.ir.windows import Window
from mugraph.ops.algebra.axes import AtomDim, AtomDims, Atoms
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.sections import Section

Windows = tuple[tuple[Window, AtomDim], ...]


def shifted(atoms: Atoms, dims: AtomDims, varying: Collection[int] = ()) -> tuple[AtomDims, Windows]:
    """The dimensions that a tensor is loaded at, and the windows it is read through, without taps. Raises
    NotLowerable where besides only a part of such a dimension is read.

    varying: dimensions whose sizes vary"""
    found: list[AtomDim] = []
    windows: list[tuple[Window, AtomDim]] = []
    for number, dim in enumerate(atoms.resolve_dims(dims)):
        sections = [atoms.sections[atom] for atom in dim if atom in atoms.sections]
        last = [section.last(atoms.elements(section.inner)) for section in sections]
        ends = list(zip(sections, last, strict=True))
        if number in varying and (run := _run(atoms, dim)) is not None:
            found.append(run.inner)
            rest = run.size - 1 - run.last(atoms.elements(run.inner))
            windows.append((Window(number, 0, pad=-run.start, rest=rest), ()))
            continue
        if all(section.step > 0 and section.start >= 0 and end < section.size for section, end in ends):
            found.append(dim)
            continue
        section, end = ends[0]
        low, high = sorted((section.start, end))
        if len(dim) > 1 or low > 0 or any(atom in atoms.sections for atom in section.inner):
            raise NotLowerable("a part of what is read backwards, or some places further, is outside the fragment")
        found.append(section.inner)
        step, rest = abs(section.step), section.size - 1 - high
        windows.append((Window(number, 0, step, 1, -low, rest, reverse=section.step < 0), ()))
    return tuple(found), tuple(windows)


def _run(atoms: Atoms, dim: AtomDim) -> Section | None:
    """Of a dimension, the part that is read, if that is a run of neighbours at axes that are whole, of which there are
    several. One of several equal pieces is one, as it is at sizes of which a part is no such piece."""
    first, *others = dim
    section = atoms.sections.get(first)
    if section is None or section.step != 1:
        return None
    if others and not section.inner:
        length = atoms.elements(others)
        section = Section(section.size * length, section.start * length, 1, tuple(others))
    elif others:
        return None
    return section if section.inner and not any(atom in atoms.sections for atom in section.inner) else None
