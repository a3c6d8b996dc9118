"""Contexts that turn the recording of gradients off, as `with torch.no_grad():`.

Kernels run where no gradient is wanted. Inside of such a context that is wherever it stands, and outside of it only in
some calls: a region that went across its beginning would leave code to PyTorch that may have a kernel. So a region ends
there, unless the code around records no gradients either, or was called with nothing that wants any: then the context
changes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from mugraph.trace.run.frames import frame_of_caller

SETS = "torch._C._set_grad_enabled"
_ENABLED = torch.is_inference_mode_enabled
PROBLEM = "says whether gradients are recorded"


class GradMode:
    """Whether it is known, wherever the program is, that no gradients are recorded."""

    def __init__(self) -> None:
        self._off = [False]

    def begin(self, off: bool) -> None:
        """off: around the call that is traced"""
        self._off = [off]

    def sets(self, enabled: object, by: FrameType | None) -> str | None:
        """PyTorch is told. by: whose code tells it. What is wrong with a region that has it in it; None if nothing"""
        name = _outermost(by)
        if name == "__exit__":
            self.leaves()
            return None
        if name == "__enter__":
            return self.enters(off=enabled is False)
        changes = enabled is not False or not self._off[-1]
        if changes:  # until something else says more, nothing is known
            self._off[-1] = False
        return PROBLEM if changes else None

    def enters(self, off: bool) -> str | None:
        """A context begins. off: it turns recording off"""
        was = self._off[-1]
        self._off.append(off)
        return None if off and was else PROBLEM

    def leaves(self) -> None:
        if len(self._off) > 1:
            self._off.pop()

    @contextmanager
    def without_inference(self, says: Callable[[str], None] = lambda _: None) -> Generator[None]:
        """Within it, contexts of the inference mode only turn gradients off, which its tensors have nothing else of
        that regions know: they keep no count of what is written to them, by which writes are found.

        says: is called with what is wrong with a region that has the beginning of one in it"""
        modes, begun = self, list[tuple[torch.inference_mode, bool]]()
        enter, leave, enabled = torch.inference_mode.__enter__, torch.inference_mode.__exit__, _ENABLED()

        @functools.wraps(enter)
        def entered(self: torch.inference_mode) -> None:
            if _is_of_pytorch(frame_of_caller(1)):
                return enter(self)
            if (problem := modes.enters(off=self.mode is True)) is not None:
                says(problem)
            begun.append((self, torch.is_grad_enabled()))
            return _set_enabled(not self.mode)

        @functools.wraps(leave)
        def left(self: torch.inference_mode, exc_type: Any, exc_value: Any, traceback: Any) -> None:
            if not begun or self is not begun[-1][0]:
                return leave(self, exc_type, exc_value, traceback)
            modes.leaves()
            return _set_enabled(begun.pop()[1])

        @functools.wraps(_ENABLED)
        def is_enabled() -> bool:
            return begun[-1][0].mode is True if begun else enabled

        torch.inference_mode.__enter__, torch.inference_mode.__exit__ = entered, left
        torch.is_inference_mode_enabled = is_enabled
        try:
            yield
        finally:
            torch.inference_mode.__enter__, torch.inference_mode.__exit__ = enter, leave
            torch.is_inference_mode_enabled = _ENABLED


def _set_enabled(enabled: bool) -> None:
    """Past what is recorded: what it means for regions was said."""
    with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        torch.set_grad_enabled(enabled)


def _is_of_pytorch(frame: FrameType) -> bool:
    """Whether PyTorch does it for itself, as where it makes tensors without numbers. Decorators do it for others."""
    name = str(frame.f_globals.get("__name__"))
    return name.startswith("torch.") and name != "torch.utils._contextlib"


def _outermost(frame: FrameType | None) -> str:
    """The function by which PyTorch's code was entered: `no_grad` makes a `set_grad_enabled` to begin and to end."""
    name = ""
    while frame is not None and frame.f_globals.get("__name__") == torch.no_grad.__module__:
        name, frame = frame.f_code.co_name, frame.f_back
    return name
