"""Rows of a tensor at a number that varies from call to call: `self.sigmas[self.step]`.

Such a row is a view. What computes with it is given the view, as it is given any tensor that was there before, so that
it takes whichever row the number says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch

from mugraph.ir.dtypes import WORD_BYTES
from mugraph.ir.region import TensorInfo
from mugraph.trace.run.tape import Picked, Record
from mugraph.trace.run.tape_writer import TapeWriter
from mugraph.trace.run.varying import Varying, varying_in

PICKS = "Tensor.__getitem__"
_UNVARYING = (int, type(None), type(Ellipsis), slice)


@dataclass(frozen=True)
class Pick:
    """index: what a tensor is asked for, with a number in it that varies"""

    base: torch.Tensor
    index: object

    def note(self, writer: TapeWriter, view: torch.Tensor, problem: str | None) -> None:
        """The view is a tensor that no call has made. problem: why the call may be in no region"""
        base = writer.values.number(self.base)
        record = Record(writer.site(), PICKS, (), {}, (), (), (), problem)
        number = writer.values.number(view)
        info = writer.values.infos[number]
        writer.values.infos[number] = replace(info, skew=_skew(self, info))
        writer.tape.picked[number] = Picked(base, self.index, record)
        writer.add(record)


def pick_of(target: str, args: Sequence[object]) -> Pick | None:
    """None of a call that asks for something else than places, of which a number says one."""
    if target != PICKS or len(args) != 2:
        return None
    base, index = args
    if not isinstance(base, torch.Tensor):
        return None
    parts = _parts(index)
    if not any(isinstance(part, Varying) for part in parts):
        return None
    for part in parts:
        if isinstance(part, Varying):
            if not isinstance(part, int):
                return None
        elif type(part) not in _UNVARYING or next(varying_in(part), None) is not None:
            return None
    return Pick(base, index)


def _parts(index: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", index) if isinstance(index, tuple) else (index,)


def _skew(pick: Pick, info: TensorInfo) -> int:
    """Of another row, which may begin at another place of a word."""
    with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        size, strides = pick.base.element_size(), pick.base.stride()
    asked = [part for part in _parts(pick.index) if part is not None]
    at = next((at for at, part in enumerate(asked) if part is Ellipsis), len(asked))
    asked[at : at + 1] = [slice(None)] * (len(strides) - len(asked) + 1)
    moved = [step for step, part in zip(strides, asked, strict=False) if isinstance(part, Varying)]
    return info.skew or int(size < WORD_BYTES and any(step * size % WORD_BYTES for step in moved))
