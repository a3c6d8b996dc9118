"""`tensor.set_(other)`: PyTorch does not tell its modes of it, as it does of other calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

_SET = torch.Tensor.set_
Called = Callable[[Callable[..., object], tuple[object, ...], Mapping[str, object]], object]


@contextmanager
def told_of_memory(called: Called) -> Generator[None]:
    """Within it, the method is a call like any other. called: what makes a call in PyTorch's place"""

    def set_(self: torch.Tensor, *args: Any, **kwargs: Any) -> object:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))  # pyright: ignore[reportPrivateUsage]
        if caller.partition(".")[0] == "torch":  # what it does inside other calls
            return _SET(self, *args, **kwargs)
        return called(_SET, (self, *args), kwargs)

    tensor: Any = torch.Tensor  # it has the method from its base
    tensor.set_ = set_
    try:
        yield
    finally:
        del tensor.set_
