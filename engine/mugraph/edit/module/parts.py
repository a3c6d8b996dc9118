"""The parts of a kernel module that are the same in every one."""

from __future__ import annotations

PRELUDE = """\
import functools
import hashlib
import importlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from operator import attrgetter, itemgetter
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.jit import is_scripting
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

try:
    import triton
    import triton.language as tl
except ImportError:  # every test below says no, and the original code runs
    triton, tl = SimpleNamespace(jit=lambda function: function), SimpleNamespace(constexpr=lambda value: value)
    _TRITON = False
else:
    _TRITON = True
"""

MACHINERY = '''\
# Where the kernels may run
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_STRIDED = torch.strided
_tracing = getattr(torch._C, "_is_tracing", lambda: True)
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_function_modes = getattr(torch._C, "_len_torch_function_stack", lambda: 1)
_gpus: dict[int | None, bool] = {}


@torch.compiler.assume_constant_result
def _tested_gpu(kind: str, index: int | None) -> bool:
    """Whether the device is an NVIDIA GPU of compute capability @MAJOR@.@MINOR@, for which the kernels were made."""
    if kind != "cuda" or not _TRITON or torch.version.hip is not None:
        return False
    if index not in _gpus:
        _gpus[index] = torch.cuda.get_device_capability(index) == (@MAJOR@, @MINOR@)
    return _gpus[index]


def _watched() -> bool:
    """Whether a transform, a tracer or a mode is to see what the original code calls."""
    if _tracing() or forward_ad._current_level >= 0 or _transforms():
        return True
    return _dispatch_modes() > 0 or (_function_modes() > 0 and _in_a_mode())


def _in_a_mode() -> bool:
    """One that only says where new tensors go (`with torch.device(...)`) does not count."""
    for at in range(_function_modes()):
        if not isinstance(torch._C._get_function_stack_at(at), DeviceContext):
            return True
    return False


def _runs_here(*tensors: torch.Tensor, any_size: bool = False) -> bool:
    """Plain tensors on one tested GPU; no gradient, autocast, mode, function transform or tracing by torch.jit.

    While a program is compiled or exported for many sizes, to compare a size with a number would fix it: then a kernel
    for one size does not run.
    """
    compiling = torch.compiler.is_compiling()
    exporting = compiling and torch.compiler.is_exporting()
    if (not exporting and _in_a_mode()) if compiling else _watched():
        return False
    grad, device = torch.is_grad_enabled(), None
    for tensor in tensors:
        if type(tensor) not in _PLAIN and not (exporting and isinstance(tensor, torch.Tensor)):
            return False
        if compiling:
            fixed = torch.fx.experimental.symbolic_shapes.has_static_value
            if not any_size and not all([fixed(size) for size in tensor.shape]):
                return False
        elif (  # plain memory, in whole words of 16 bytes, and no negation that is still to do
            tensor.layout is not _STRIDED
            or tensor.is_nested
            or tensor.is_neg()
            or tensor._is_zerotensor()
            or tensor.data_ptr() & 15
        ):
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
