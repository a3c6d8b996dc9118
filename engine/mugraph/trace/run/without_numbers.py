"""The mode in which the traced program's tensors have shapes, types and strides, and no numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


class WithoutNumbers(FakeTensorMode):
    """PyTorch's own mode, whose work is not taken for the program's.

    Most calls reach it from within a `TorchMode`, which is not entered twice. `torch.Tensor([1.0])` and the other
    constructors that are classes are no calls to those modes: what PyTorch then calls to make a tensor without numbers
    would go to them, which put it on another device and record it.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] = {},
    ) -> object:
        with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            return super().__torch_dispatch__(func, types, args, kwargs)
