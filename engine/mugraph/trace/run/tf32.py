"""PyTorch's settings of TF32 in this process: whether a call may take it, and how they are set.

On a GPU, cuDNN's convolutions of float32 numbers take TF32 unless they are told not to; cuBLAS's products of matrices
only where the program asks for it. PyTorch has two ways to say either, `allow_tf32` and `fp32_precision`. What is set
by the second may be unreadable by the first, so the second is read where there is one. A process of ours sets by the
first alone, as torch.compile reads that.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch

from mugraph.ir.ops import Tf32
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.trace.pytorch.tf32 import OPERATIONS

_OFF = "NVIDIA_TF32_OVERRIDE"
"""With "0" in it, no library of NVIDIA's takes TF32."""


def takes_tf32(target: str, given: Sequence[torch.Tensor]) -> bool:
    """May a call compute its products in TF32? given: its tensors

    A matrix times a vector is no product of matrices: cuBLAS's other functions do not take TF32.
    """
    entry = entry_for(target)
    setting = entry.tf32 if entry is not None else "cudnn" if canonical(target) in WINDOW_DIMS else ""
    if not setting:
        return False
    multiplied = [tensor for tensor in given if tensor.dim() > 1]
    if len(multiplied) < 2 or any(tensor.dtype != torch.float32 for tensor in given):
        return False
    return is_set(setting)


def is_set(setting: Tf32) -> bool:
    """Does PyTorch take TF32 now for what the setting is about?"""
    if os.environ.get(_OFF) == "0":
        return False
    read = getattr(cast("Any", torch)._C, "_get_fp32_precision_getter", None)
    if read is not None:
        return read("cuda", OPERATIONS[setting]) == "tf32"
    backends = cast("Any", torch.backends)
    return bool(backends.cudnn.allow_tf32 if setting == "cudnn" else backends.cuda.matmul.allow_tf32)


def take(settings: Collection[Tf32]) -> None:
    """From now on PyTorch takes TF32 for what these settings are about, and for nothing else."""
    backends = cast("Any", torch.backends)
    backends.cudnn.allow_tf32 = "cudnn" in settings
    backends.cuda.matmul.allow_tf32 = "cublas" in settings


@contextmanager
def as_set(settings: Collection[Tf32] | None) -> Generator[None]:
    """PyTorch takes TF32 for what these settings are about and for nothing else, and then as before. None: as it is."""
    before: set[Tf32] = {setting for setting in OPERATIONS if is_set(setting)}
    if settings is None or before == {*settings}:
        yield
        return
    take(settings)
    try:
        yield
    finally:
        take(before)
