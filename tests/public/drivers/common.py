"""What the drivers share: where kernels run without a GPU, and what becomes of a program's results."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

EXACT = os.environ.get("PUBLIC_EXACT") == "1"
"""Run in double precision, for the float rule."""
RESULTS = os.environ.get("PUBLIC_RESULTS")
"""The file that the results go to."""


def ready(model: Any, seed: int = 1) -> Any:
    """The model in eval mode, its floating-point parameters drawn: zeros and ones would hide what uses them."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.named_parameters():
        scale = 1.0 / tensor.shape[-1] ** 0.5 if tensor.dim() > 1 else 0.1
        drawn = torch.randn(tensor.shape, generator=generator, dtype=torch.float32) * scale
        tensor.data.copy_(1.0 + drawn if tensor.dim() == 1 and name.endswith("weight") else drawn)
    model = model.eval()
    return model.double() if EXACT else model


def drawn(*shape: int, seed: int = 2) -> torch.Tensor:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    return values.double() if EXACT else values


def tokens(*shape: int, most: int, seed: int = 3) -> torch.Tensor:
    return torch.randint(most, shape, generator=torch.Generator().manual_seed(seed))


def of_times(times: torch.Tensor, size: int) -> torch.Tensor:
    """What diffusion models embed times as, in double precision: a float32 rounds its angles by far more."""
    angles = times[:, None].double() * torch.exp(-math.log(10000) * torch.arange(size // 2).double() / (size // 2))
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


def kernels_here() -> None:
    """Lets kernels run on tensors of the CPU, in Triton's interpreter, as if it were the device they are made for.
    Called when all is imported."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return
    from mugraph.verification.interpreter import patch_interpreter

    patch_interpreter()
    for name, module in list(sys.modules.items()):
        if name.rpartition(".")[2].endswith("_mugraph") and hasattr(module, "_tested_gpu"):
            vars(module)["_tested_gpu"] = lambda kind, index: kind == "cpu"


def report(results: Mapping[str, torch.Tensor] | Sequence[torch.Tensor]) -> None:
    named = dict(results) if isinstance(results, Mapping) else {str(n): one for n, one in enumerate(results)}
    if RESULTS is not None:
        torch.save({name: one.detach().clone() for name, one in named.items()}, RESULTS)
