"""Kinds of rows of random numbers. Some faults are hidden by ordinary numbers; each kind shows some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

Kind = Callable[[Tensor], Tensor]


def _offset(offset: float) -> Kind:
    """Numbers with an offset, of which centring leaves little: a kernel that centres late loses digits."""
    return lambda row: row + offset


def _scaled(factor: float) -> Kind:
    return lambda row: row * factor


def _negative(row: Tensor) -> Tensor:
    return -row.abs()


def _constant(row: Tensor) -> Tensor:
    """A power of two. Sums of it are exact in any order; sums of another number are wrong to one side."""
    return torch.full_like(row, 2.0)


def centred(reach: float, degenerate: bool) -> tuple[Kind, ...]:
    """Kinds for what is summed, or whose maximum is taken.

    reach:      about how large the numbers may be
    degenerate: also rows of one number and of zeros, for which a program may have no result
    """
    kinds = (
        _offset(-reach),  # the first, where there is one row: negative everywhere as well
        _scaled(2.0**-8),  # constants that are added to squares count
        _offset(min(10.0, reach)),
        _scaled(min(64.0, reach)),
        _negative,  # a maximum that begins with zero
        torch.abs,
        _constant,
        torch.zeros_like,
        _offset(reach),
    )
    return tuple(kind for kind in kinds if degenerate or kind not in (_constant, torch.zeros_like))


def others(reach: float) -> tuple[Kind, ...]:
    """Kinds for all else. They are milder, because they are multiplied with one another."""
    return (_scaled(1.0), _negative, _scaled(2.0**-6), torch.abs, _offset(min(10.0, reach)), _scaled(min(8.0, reach)))


def far(single: float) -> tuple[Kind, ...]:
    """Rows for logits, to be multiplied with rows of `FAR`: the logits of some are around zero, of some all far
    below zero, and of some all far above. A running maximum that wrongly begins with zero shows where all are
    below.

    single: how much smaller logits of numbers around zero are than those
    """
    return (_scaled(single), lambda row: -8.0 - row.abs(), lambda row: 8.0 + row.abs())


FAR: tuple[Kind, ...] = (_offset(8.0),)


def with_kinds(data: Tensor, reduced: Sequence[int], kinds: Sequence[Kind]) -> Tensor:
    """The rows, along the dimensions in `reduced`, one kind after the other. A single number is no row."""
    if not data.dim():
        return data
    across = [dim for dim in range(data.dim()) if dim not in reduced]
    rows = data.permute(*across, *reduced).reshape(-1, *(data.shape[dim] for dim in reduced)).clone()
    for number, kind in enumerate(kinds):
        rows[number :: len(kinds)] = kind(rows[number :: len(kinds)])
    order = [*across, *reduced]
    back = [order.index(dim) for dim in range(data.dim())]
    return rows.reshape([data.shape[dim] for dim in order]).permute(back)


def with_spikes(data: Tensor, reduced: Sequence[int], generator: torch.Generator) -> Tensor:
    """In each row, along each of the dimensions in `reduced`, one place holds about as much as all others together: the
    last one, the first, the last but one, the middle, then places anywhere; every other in the last sixteenth. In the
    first rows it is the largest."""
    for dim in reduced:
        size = data.shape[dim]
        if size == 1:
            continue
        across = [1 if d in reduced else n for d, n in enumerate(data.shape)]
        rows = prod(across)
        places = torch.randint(0, size, (rows,), generator=generator, device=data.device)
        late = size - 1 - torch.randint(0, max(1, size // 16), (rows,), generator=generator, device=data.device)
        places[::2] = late[::2]
        named = torch.tensor([size - 1, 0, max(0, size - 2), size // 2], device=data.device)[:rows]
        places[: len(named)] = named
        one_each = [1 if d == dim else n for d, n in enumerate(data.shape)]
        at = places.reshape(across).expand(one_each)
        spiked = (1.0 + data.gather(dim, at).abs()) * size**0.5
        if rows > 8:  # the others of either sign
            signs = torch.randint(0, 2, (rows,), generator=generator, device=data.device) * 2.0 - 1.0
            signs[:8] = 1.0
            spiked = spiked * signs.reshape(across)
        data.scatter_(dim, at, spiked)
    return data
