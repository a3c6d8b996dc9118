"""Notices autocast contexts. Without a GPU, PyTorch turns those for GPUs off; they count all the same."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

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


@dataclass
class AutocastMode:
    """Whether the program means autocast to be on where it is, for whichever device."""

    _on: bool = False

    @property
    def on(self) -> bool:
        return self._on or _is_set()

    @contextmanager
    def noticed(self, told: Callable[[str], None]) -> Generator[None]:
        """The program runs within it.

        told: is called with the problem where it enters a context that changes the mode. A kernel is for code with
              autocast off, and asks that before its region: around a context that turns it off, none would run.
        """
        enter, leave = torch.autocast.__enter__, torch.autocast.__exit__
        mode, before = self, list[bool]()
        mode._on = _is_set()

        @functools.wraps(enter)
        def entered(self: torch.autocast) -> torch.autocast:
            wanted = bool(getattr(self, _WANTED, True))
            if wanted or mode.on:
                told("runs under autocast" if wanted else "turns autocast off")
            found = enter(self)
            before.append(mode._on)
            mode._on = wanted
            return found

        @functools.wraps(leave)
        def left(self: torch.autocast, exc_type: Any, exc_val: Any, exc_tb: Any) -> Literal[False] | None:
            if before:
                mode._on = before.pop()
            return leave(self, exc_type, exc_val, exc_tb)

        torch.autocast.__enter__, torch.autocast.__exit__ = entered, left
        try:
            yield
        finally:
            torch.autocast.__enter__, torch.autocast.__exit__ = enter, leave


def _is_set() -> bool:
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")
