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
    def notices_inference(self, says: Callable[[str], None]) -> Generator[None]:
        """Within it, contexts of the inference mode count, which do not tell PyTorch as others do. says: is called with
        what is wrong with a region that has the beginning of one in it"""
        modes, begun = self, list[torch.inference_mode]()
        enter, leave = torch.inference_mode.__enter__, torch.inference_mode.__exit__

        @functools.wraps(enter)
        def entered(self: torch.inference_mode) -> None:
            if not _is_of_pytorch(frame_of_caller(1)):
                begun.append(self)
                if (problem := modes.enters(off=self.mode is True)) is not None:
                    says(problem)
            enter(self)

        @functools.wraps(leave)
        def left(self: torch.inference_mode, exc_type: Any, exc_value: Any, traceback: Any) -> None:
            if any(self is one for one in begun):
                begun[:] = [one for one in begun if one is not self]
                modes.leaves()
            leave(self, exc_type, exc_value, traceback)

        torch.inference_mode.__enter__, torch.inference_mode.__exit__ = entered, left
        try:
            yield
        finally:
            torch.inference_mode.__enter__, torch.inference_mode.__exit__ = enter, leave


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
