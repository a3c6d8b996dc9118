"""Windows of a unit whose sizes vary: from which place of a dimension does each begin at all sizes?

A window that slides reads the places of a dimension some places further. What is joined to a cache of any length
begins that length later; what a cache is joined to begins at the first place, and is as long at all sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Corner
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window, at_sizes
from mugraph.trace.regions.dynamic import Varies

_KEPT: tuple[Corner, ...] = ("", "first", "last")


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


def _kept(tensor: Tensor, sizes: Mapping[str, int], others: Sequence[tuple[Mapping[str, int], Tensor]]) -> Tensor:
    """others: sizes, and the tensor there"""
    windows: list[Window] = []
    for at, window in enumerate(tensor.windows):
        axes = tensor.dims[window.dim]
        ways = _KEPT if tensor.slid.issuperset(axes) else _KEPT[:1]
        made = (replace(window, keeps=keeps) for keeps in ways)
        fitting = (
            one
            for one in made
            if all(
                replace(seen.windows[at], keeps=one.keeps) == at_sizes(one, axes, sizes, there)
                for there, seen in others
            )
        )
        found = next(fitting, None)
        if found is None:
            raise Varies(f"where {tensor.source or tensor.name} is read from depends on more than one size")
        windows.append(found)
    return replace(tensor, windows=tuple(windows))
