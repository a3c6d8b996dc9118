"""Numbers that tensors of the types hold that are read and never computed with, made of normal ones."""

from __future__ import annotations

import torch
from torch import Tensor

from mugraph.ir.dtypes import READ, STORED, DType


def held(data: Tensor, dtype: DType) -> Tensor:
    """The numbers, in their own type, as a tensor of the stored type has them; as they are where it is no such type.

    Of whole numbers a third of the range is one. Conditions are 1 where the number is positive, else 0; the first row
    holds nowhere, the last one everywhere.
    """
    kind = READ[dtype]
    if dtype not in STORED:
        return data
    if dtype == "bool":
        holds = (data > 0.0).to(data.dtype)
        if holds.dim() > 1 and holds.shape[0] > 2:
            holds[0], holds[-1] = 0.0, 1.0
        return holds
    least = -kind.largest if kind.least is None else kind.least
    if not kind.is_whole:
        return data.clamp(least, kind.largest).to(getattr(torch, kind.torch)).to(data.dtype)
    middle = (kind.largest + least + 1.0) / 2
    return (data * ((kind.largest - least) / 6) + middle).round().clamp(least, kind.largest)
