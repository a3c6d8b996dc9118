"""Compile a module's Triton kernels without launching them, into the cache every process here shares.

LLVM and ptxas take most of the time of measuring a candidate, and need no GPU to themselves. Child process only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from mugraph.tune.messages import InputSpec
from mugraph.tune.timing import DTYPES

Launch = Callable[..., object]


@contextmanager
def _launches_compile(kernel: Any) -> Generator[None]:
    """A launch of the kernel compiles it for the same arguments, so the cache's key is the same. The kernel itself
    stays in its module: others may call it, and what they call is a part of their key."""
    run: Launch = kernel.run

    def compiled(*args: object, grid: object, warmup: bool, **keywords: object) -> object:
        del warmup
        return run(*args, grid=grid, warmup=True, **keywords)

    kernel.run = compiled
    try:
        yield
    finally:
        del kernel.run


def warm_up(module: ModuleType, function: str, specs: Sequence[InputSpec]) -> None:
    """Run the launcher on tensors without memory, with every kernel of the module compiled in place of its launch.

    A meta tensor's address is 0, so Triton takes it as aligned to 16 bytes, as the tensors that are measured are, but
    for those that begin elsewhere: kernels of these are compiled where they are measured.
    """
    inputs = [torch.empty_strided(s.shape, s.strides, dtype=DTYPES[s.dtype], device="meta") for s in specs]
    with ExitStack() as stack:
        for value in vars(module).values():
            if isinstance(value, JITFunction):
                stack.enter_context(_launches_compile(value))
        getattr(module, function)(*inputs)
