"""`module.half()` and `module.to(...)` on parameters without numbers.

`Module._apply` gives ordinary parameters other data in place, so that whoever else holds them sees it too. Fake ones it
swaps with the converted ones, which PyTorch refuses where a tensor has weak references: a fake tensor's mode holds
some, so a constructor that converts itself or a part of itself could not be run.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor


@contextmanager
def conversions_in_place() -> Generator[None]:
    """Within it, fake parameters are converted in place, as ordinary ones are."""
    utils: Any = torch.utils  # without types
    swap = utils.swap_tensors

    def take(tensor: torch.Tensor, other: torch.Tensor) -> None:
        if isinstance(tensor, FakeTensor) and isinstance(other, FakeTensor):
            tensor.data = other.detach()
        else:
            swap(tensor, other)

    utils.swap_tensors = take
    try:
        yield
    finally:
        utils.swap_tensors = swap
