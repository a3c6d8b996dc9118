"""Which sizes a program can have, where several vary by themselves and it is known that one is larger than another."""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.ir.masks import empties
from mugraph.ir.program import TensorProgram
from mugraph.ir.windows import Window


def can_be(program: TensorProgram, sizes: Mapping[str, int]) -> bool:
    """Does each row have something that no mask hides, and has each of what is joined an element?"""
    if empties(program.ops, program.sizes, sizes, program.least.keys()):
        return False
    return all(
        sizes[axis] > sizes[window.by] + _more(window, program.sizes[window.by])
        for tensor in program.tensors
        for window in tensor.windows
        if window.by
        for axis in tensor.dims[window.dim]
    )


def _more(window: Window, size: int) -> int:
    """What is joined along its axis besides the two lengths that vary. size: of `window.by`"""
    match window.keeps:
        case "first":
            return window.pad
        case "last":
            return -window.rest
        case _:
            return sum(window.fixed(size))
