"""Candidates of parts put one after the other: one candidate of a whole kernel graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mugraph.ir.block import Candidate
from mugraph.ir.names import numbered, take
from mugraph.ir.transforms.renaming import Names, Renaming
from mugraph.search.schedules.split_schedules import alone, with_then


def chained(parts: Sequence[Candidate]) -> Candidate:
    """The candidates as one, which runs them one after the other. Tensors and axes that a split introduces get new
    names."""
    result: Candidate | None = None
    for part in reversed(parts):
        result = _before(part, result)
    assert result is not None
    return result


def _before(part: Candidate, rest: Candidate | None) -> Candidate:
    if rest is None:
        return part
    if part.then is not None:
        rest = _before(part.then, rest)
        part = alone(part)
    return with_then(part, rest)


class Apart:
    """Gives the kernels of one part names that no other part of the graph uses.

    tensors, axes: of the program and of what its kernels hand over, which mean the same in all parts
    """

    def __init__(self, tensors: set[str], axes: set[str]) -> None:
        self._shared = (tensors, axes)
        self._taken = (set(tensors), set(axes))

    def part(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates of one part, one of which is chosen. Call once for each part."""
        blocks = {id(kernel.block): kernel.block for one in candidates for kernel in one.kernels}
        tensors = dict.fromkeys(tensor.name for block in blocks.values() for tensor in block.tensors)
        axes = dict.fromkeys(axis for block in blocks.values() for axis in block.sizes)
        new_tensors, new_axes = (
            _fresh(names, shared, taken)
            for names, shared, taken in zip((tensors, axes), self._shared, self._taken, strict=True)
        )
        if not new_tensors and not new_axes:
            return list(candidates)
        old = Names(axes=tuple(new_axes), tensors=tuple(new_tensors))
        new = Names(axes=tuple(new_axes.values()), tensors=tuple(new_tensors.values()))
        renaming = Renaming(old, new, made=False)
        return [renaming.candidate(candidate) for candidate in candidates]


def _fresh(names: Iterable[str], shared: Collection[str], taken: set[str]) -> dict[str, str]:
    """New names for those that are taken already, which all of them are from now on."""
    new: dict[str, str] = {}
    for name in names:
        if name in shared:
            continue
        fresh = take(numbered(name), taken)
        if fresh != name:
            new[name] = fresh
    return new
