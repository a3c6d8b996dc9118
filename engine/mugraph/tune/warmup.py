"""Compile a module's Triton kernels without launching them, into the cache every process here shares.

LLVM and ptxas take most of the time of measuring a candidate, and need no GPU to themselves. Child process only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from mugraph.tune.messages import InputSpec
from mugraph.tune.timing import DTYPES

Launch = Callable[..., object]


class _Compiles:
    """Stands in for a @triton.jit function: a launch compiles for the same arguments, so the cache key is the same."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: object) -> Launch:
        def launch(*args: object, **keywords: object) -> object:
            return self._kernel.warmup(*args, grid=grid, **keywords)

        return launch


def warm_up(module: ModuleType, function: str, specs: Sequence[InputSpec]) -> None:
    """Run the launcher on tensors without memory, with every kernel of the module replaced by its compilation.

    A meta tensor's address is 0, so Triton takes it as aligned to 16 bytes, as the tensors that are measured are, but
    for those that begin elsewhere: kernels of these are compiled where they are measured.
    """
    kernels: dict[str, Any] = {name: value for name, value in vars(module).items() if isinstance(value, JITFunction)}
    inputs = [torch.empty_strided(s.shape, s.strides, dtype=DTYPES[s.dtype], device="meta") for s in specs]
    try:
        for name, kernel in kernels.items():
            setattr(module, name, _Compiles(kernel))
        getattr(module, function)(*inputs)
    finally:
        for name, kernel in kernels.items():
            setattr(module, name, kernel)
