"""Numbers that tensors of the types hold that are read and never computed with, made of normal ones."""

from __future__ import annotations

import torch
from torch import Tensor

from mugraph.ir.dtypes import COMPUTED, READ, DType
from mugraph.verification.compared import Meant


def held(data: Tensor, dtype: DType, numbers: Meant | None = None, *, mixed: bool = False) -> Tensor:
    """The numbers, in their own type, as a tensor of the stored type has them; as they are where it is no such type.

    Of whole numbers a third of the range is one; of those that are compared, `numbers` says what they are. Conditions
    are 1 where the number is positive, else 0; the first row holds nowhere, the last one everywhere.

    mixed: instead, each row holds in its first place and not in its last one
    """
    kind = READ[dtype]
    if dtype in COMPUTED:
        return data
    if numbers is not None:
        return torch.as_tensor(numbers.drawn(data.to("cpu", torch.float64).numpy())).to(data.device)
    if dtype == "bool":
        holds = (data > 0.0).to(data.dtype)
        if mixed and holds.dim() and holds.shape[-1] > 1:
            holds[..., 0], holds[..., -1] = 1.0, 0.0
        elif holds.dim() > 1 and holds.shape[0] > 2:
            holds[0], holds[-1] = 0.0, 1.0
        return holds
    least = -kind.largest if kind.least is None else kind.least
    if not kind.is_whole:
        return data.clamp(least, kind.largest).to(getattr(torch, kind.torch)).to(data.dtype)
    middle = (kind.largest + least + 1.0) / 2
    return (data * ((kind.largest - least) / 6) + middle).round().clamp(least, kind.largest)
