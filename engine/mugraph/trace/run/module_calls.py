"""Calls of modules, which PyTorch's own code makes too: `nn.Sequential` of its children."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch


@contextmanager
def module_calls(noticed: Callable[[torch.nn.Module], None]) -> Generator[None]:
    """Within it, `noticed` is told of each module that is about to be called."""
    original = torch.nn.Module.__call__

    def call(module: torch.nn.Module, /, *args: object, **kwargs: object) -> object:
        noticed(module)
        return original(module, *args, **kwargs)

    torch.nn.Module.__call__ = call
    try:
        yield
    finally:
        torch.nn.Module.__call__ = original
