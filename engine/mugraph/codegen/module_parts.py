"""The parts of a kernel module that are the same in every one."""

from __future__ import annotations

PRELUDE = """\
import functools
import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

try:
    import triton
    import triton.language as tl
except ImportError:  # every test below says no, and the original code runs
    from types import SimpleNamespace

    triton, tl = SimpleNamespace(jit=lambda function: function), SimpleNamespace(constexpr=lambda value: value)
    _TRITON = False
else:
    _TRITON = True
"""

MACHINERY = '''\
# Where the kernels may run
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_gpus: dict[int | None, bool] = {}


@torch.compiler.assume_constant_result
def _tested_gpu(kind: str, index: int | None) -> bool:
    """Whether the device is an NVIDIA GPU of compute capability @MAJOR@.@MINOR@, for which the kernels were made."""
    if kind != "cuda" or not _TRITON or torch.version.hip is not None:
        return False
    if index not in _gpus:
        _gpus[index] = torch.cuda.get_device_capability(index) == (@MAJOR@, @MINOR@)
    return _gpus[index]


def _is_plain(module: torch.nn.Module, kind: str) -> bool:
    """Whether the module is of the class that was analysed, and nothing has been hooked into it."""
    return type(module).__qualname__ == kind and not module._forward_hooks and not module._forward_pre_hooks


def _runs_here(*tensors: torch.Tensor) -> bool:
    """Plain tensors on one tested GPU; no gradient, autocast, function transform or tracing by torch.jit."""
    if not torch.compiler.is_compiling() and (
        _transforms() or torch.jit.is_tracing() or forward_ad._current_level >= 0
    ):
        return False
    grad, device = torch.is_grad_enabled(), None
    for tensor in tensors:
        if type(tensor) not in _PLAIN and not (isinstance(tensor, torch.Tensor) and torch.compiler.is_exporting()):
            return False
        if grad and tensor.requires_grad:
            return False
        if device is None:
            device = tensor.device
        elif tensor.device != device:
            return False
    return _tested_gpu(device.type, device.index) and not torch.is_autocast_enabled(device.type)


def _plain_eager() -> bool:
    """Whether nothing traces or watches, so that a kernel may be launched without going through the dispatcher."""
    return not torch.compiler.is_compiling() and not _dispatch_modes()


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The tensor with these strides, copied if it has others."""
    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
'''
