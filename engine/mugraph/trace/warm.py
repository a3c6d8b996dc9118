"""What a process does once before it forks for files that are traced."""

from __future__ import annotations

import importlib

from mugraph.ops.algebra.registry import entries
from mugraph.trace.pytorch import owned

NEEDED = ("mugraph.trace.codec", "mugraph.trace.session")
"""What `child.main` imports, and PyTorch with it."""


def warm_up() -> None:
    """Import what tracing needs, and have PyTorch load what it loads when a tensor without contents is first computed
    with."""
    for name in NEEDED:
        importlib.import_module(name)
    entries()
    owned.names()
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.no_grad():
        x = torch.empty(2, 4, 4)
        torch.softmax(torch.nn.functional.silu(x @ x) * 2 + x.sum(-1, keepdim=True), -1)
