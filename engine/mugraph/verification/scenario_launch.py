"""How a kernel under test is launched: with memory that shows what is not written, and is looked at afterwards."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor


def bits(tensor: Tensor) -> Tensor:
    """All of the memory the tensor lies in, as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def as_tuple(result: Any) -> tuple[Tensor, ...]:
    return tuple(cast("Sequence[Tensor]", result)) if isinstance(result, tuple | list) else (cast(Tensor, result),)


@contextmanager
def poisoned() -> Generator[None]:
    """torch.empty and its kin give memory full of NaN, or of the least whole number: an element that is not written
    shows."""
    names = ("empty", "empty_like", "empty_strided")
    originals: dict[str, Callable[..., Tensor]] = {name: getattr(torch, name) for name in names}

    def poison(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def filled(*args: Any, **kwargs: Any) -> Tensor:
            made = make(*args, **kwargs)
            if made.is_floating_point():
                return made.fill_(float("nan"))
            return made if made.dtype == torch.bool else made.fill_(torch.iinfo(made.dtype).min)

        return filled

    for name, original in originals.items():
        setattr(torch, name, poison(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(torch, name, original)
