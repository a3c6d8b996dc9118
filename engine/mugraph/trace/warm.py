"""What tracing imports, and what PyTorch loads when a tensor without contents is first computed with. Importing this
module does it: in a process that forks, once for all files."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import mugraph.trace.codec  # pyright: ignore[reportUnusedImport]
import mugraph.trace.session  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _first_tensors() -> None:
    with FakeTensorMode(), torch.no_grad():
        x = torch.empty(2, 4, 4)
        torch.softmax(torch.nn.functional.silu(x @ x) * 2 + x.sum(-1, keepdim=True), -1)


_first_tensors()
