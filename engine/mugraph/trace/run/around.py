"""What was set around a recorded call, set again while it is traced."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import torch

from mugraph.trace.picture import Around
from mugraph.trace.run.tf32 import as_set


@contextmanager
def as_recorded(around: Around | None) -> Generator[None]:
    """The default type, TF32, and autocast: on the CPU, where programs are traced, whichever device it was for."""
    if around is None:
        yield
        return
    usual = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(as_set(around.tf32))
        stack.callback(torch.set_default_dtype, usual)
        torch.set_default_dtype(getattr(torch, around.default_dtype, usual))
        for dtype in list(around.autocast.values())[-1:]:
            stack.enter_context(torch.autocast("cpu", getattr(torch, dtype, torch.bfloat16)))
        yield


def autocast_words(around: Around) -> str:
    """ "bfloat16 on cuda"."""
    return ", ".join(f"{dtype} on {device}" for device, dtype in around.autocast.items())
