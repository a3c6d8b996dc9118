"""Notices autocast contexts. Without a GPU, PyTorch turns those for GPUs off; they count all the same."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch

_WANTED = "_mugraph_wanted"


@functools.cache
def remember_what_is_wanted() -> None:
    """From now on every autocast object knows whether it was asked to be on (also those that decorate functions)."""
    original = torch.autocast.__init__

    @functools.wraps(original)
    def init(
        self: torch.autocast,
        device_type: str,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        original(self, device_type, dtype, enabled, cache_enabled)
        setattr(self, _WANTED, bool(enabled))

    torch.autocast.__init__ = init


@contextmanager
def noticed(entered: Callable[[], None]) -> Generator[None]:
    """Within it, `entered` is called whenever the program enters an autocast context that is meant to be on."""
    original = torch.autocast.__enter__

    @functools.wraps(original)
    def enter(self: torch.autocast) -> torch.autocast:
        if getattr(self, _WANTED, True):
            entered()
        return original(self)

    torch.autocast.__enter__ = enter
    try:
        yield
    finally:
        torch.autocast.__enter__ = original
