"""What is the same in all kernel modules: what each begins with, and where kernels may run."""

from __future__ import annotations

PRELUDE = """\
import warnings
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch.jit import is_scripting

try:
    import triton
    import triton.language as tl
except ImportError:  # every test below says no, and the original code runs
    triton, tl = SimpleNamespace(jit=lambda function: function), SimpleNamespace(constexpr=lambda value: value)
"""

IMPORTS = """\
import ast
import ctypes
import functools
import gc
import hashlib
import importlib
import inspect
import itertools
import os
import re
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from operator import attrgetter, call, is_, itemgetter, mul, or_
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

try:
    import triton
except ImportError:
    _TRITON = False
else:
    _TRITON = True
"""

MACHINERY = '''\
# Where the kernels may run
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_TENSOR, _PARAMETER = _PLAIN
_tracing = getattr(torch._C, "_is_tracing", lambda: True)
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_function_modes = getattr(torch._C, "_len_torch_function_stack", lambda: 1)
_any_autocast = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)
_grad_enabled, _dynamo = torch.is_grad_enabled, torch.compiler.is_dynamo_compiling
_compiling = torch.compiler.is_compiling
_address = torch.Tensor.data_ptr
_places: dict[torch.device, tuple[str, int | None]] = {}
_gpus: dict[int | None, bool] = {}


def _only_marked() -> bool:
    """Whether `torch.compiler.assume_constant_result` does nothing but set a mark, in this version of PyTorch."""
    try:
        text = Path(torch.__file__).with_name("_dynamo").joinpath("decorators.py").read_text(encoding="utf-8")
    except (OSError, TypeError, ValueError):
        return False
    return re.search(_MARKING, text) is not None


_MARKING = r"\\ndef assume_constant_result\\(fn\\):.*\\n    fn\\._dynamo_marked_constant = True.*\\n    return fn\\n"
_mark_only = "torch._dynamo" not in sys.modules and _only_marked()


def _constant(function: Callable[..., Any]) -> Callable[..., Any]:
    """What it says while torch.compile reads a program is a constant there. PyTorch's own decorator would import the
    compiler, which takes seconds and which most programs do without."""
    if not _mark_only:
        return torch.compiler.assume_constant_result(function)
    function._dynamo_marked_constant = True
    return function


@_constant
def _tested_gpu(kind: str, index: int | None) -> bool:
    """Whether the device is an NVIDIA GPU of the compute capability that the kernels were made for."""
    if kind != "cuda" or not _TRITON or torch.version.hip is not None:
        return False
    if index not in _gpus:
        _gpus[index] = torch.cuda.get_device_capability(index) == _CAPABILITY
    return _gpus[index]


def _in_a_mode() -> bool:
    """One that only says where new tensors go (`with torch.device(...)`) does not count."""
    for at in range(_function_modes()):
        if not isinstance(torch._C._get_function_stack_at(at), DeviceContext):
            return True
    return False


def _runs_here(*tensors: torch.Tensor, any_size: bool = False, anywhere: tuple[torch.Tensor, ...] = ()) -> bool:
    """Plain tensors on one tested GPU; no gradient, autocast, tracing by torch.jit, and no mode or function transform,
    which are to see what the original code calls. anywhere: further ones, wherever they lie: only PyTorch reads them,
    or they did not begin at a whole word where the program was traced"""
    if _dynamo():
        return _traced((*tensors, *anywhere), any_size)
    if _tracing() or _transforms() or _dispatch_modes() or forward_ad._current_level >= 0:
        return torch.compiler.is_compiling() and _traced((*tensors, *anywhere), any_size)
    if _function_modes() and _in_a_mode():
        return False
    grad, device = _grad_enabled(), None
    for tensor in tensors:
        kind = type(tensor)
        if kind is not _PARAMETER and kind is not _TENSOR:
            return False
        if device is None:
            device = tensor.device
        if tensor.device != device:
            return False
        if tensor.is_neg() or (grad and tensor.requires_grad):  # a negation that is still to do
            return False
        at = tensor.data_ptr()  # other layouts have none
        if at & 15 or (not at and tensor._is_zerotensor()):  # in whole words of 16 bytes; zeros without memory
            return False
    for tensor in anywhere:
        if type(tensor) not in _PLAIN:
            return False
        if device is None:
            device = tensor.device
        if tensor.device != device or tensor.layout != torch.strided:
            return False
        if tensor.is_neg() or (grad and tensor.requires_grad) or tensor._is_zerotensor():
            return False
    if (place := _places.get(device)) is None:  # PyTorch makes a string of it each time
        place = _places[device] = device.type, device.index
    return _tested_gpu(*place) and not (_any_autocast() and torch.is_autocast_enabled(place[0]))


_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
_fitted: dict[str, list[tuple[Callable[..., bool], bool, Callable[..., bool] | None]]] = {}
_anywhere: dict[str, int] = {}
"""Of regions: which of their tensors may begin at any address, a bit for each."""
_native: ModuleType | None = None
_fitted_in_c: dict[str, Callable[..., bool]] = {}


def _fit_again(region: str, *tensors: torch.Tensor) -> bool:
    """Whether tensors are like others that fitted the region: of the same kinds, types, devices, shapes and strides."""
    if _dynamo():
        return False
    if (native := _fitted_in_c.get(region)) is not None:
        return native(*tensors)
    if _tracing() or _transforms() or _dispatch_modes() or forward_ad._current_level >= 0:
        return False
    known = _fitted.get(region)
    if known is None or _any_autocast() or (_function_modes() and _in_a_mode()):
        return False
    anywhere = _anywhere.get(region, 0)
    for at, tensor in enumerate(tensors):
        if (_address(tensor) & 15 and not anywhere >> at & 1) or tensor.is_nested:  # which is not to be compared
            return False
    for at, (are_alike, only_without_grad, _) in enumerate(known):
        if are_alike(*tensors):
            if only_without_grad and _grad_enabled():
                return False
            if _native:
                known[at] = are_alike, only_without_grad, _alike_in_c(*tensors)
                _fitted_in_c[region] = _native.Fit(known, anywhere)
            return True
    return False


def _alike_in_c(*tensors: torch.Tensor) -> Callable[..., bool] | None:
    """The same comparison, without asking Python of each tensor; None where PyTorch keeps them in another way."""
    try:
        return _native.Alike(_likeness(tensors[0]), tensors)
    except (TypeError, ValueError):
        return None


def _fit_from_now(region: str, *tensors: torch.Tensor, anywhere: tuple[int, ...] = ()) -> bool:
    """Remembers what tensors that fit are like, where PyTorch can compare that at once. anywhere: positions of those
    that may begin at any address"""
    if _compiling() or not _apart or any([type(one) not in _PLAIN or one.is_nested for one in tensors]):
        return True
    known = _fitted.setdefault(region, [])
    if anywhere:
        _anywhere[region] = sum([1 << at for at in anywhere])
    if len(known) < 8:
        if (are_alike := _likeness(*tensors)) is not None:
            known.append((are_alike, any([one.requires_grad for one in tensors]), _native and _alike_in_c(*tensors)))
    return True


def _likeness(*tensors: torch.Tensor) -> Callable[..., bool] | None:
    """PyTorch's own comparison with tensors, which torch.compile makes before each call."""
    try:
        sizes, strides = [list(one.shape) for one in tensors], [list(one.stride()) for one in tensors]
        made = _guards.TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        return made.check if made.check(*tensors) else None
    except (AttributeError, TypeError, RuntimeError):
        return None


def _tells_apart() -> bool:
    """Whether that comparison tells all that matters."""
    plain = torch.zeros(2, 3)
    others = [plain.half(), plain[:1], plain[None], plain.mT.contiguous().mT, plain.to("meta"), None]
    others += [torch.nn.Parameter(plain), torch._efficientzerotensor((2, 3))]
    others += [torch.zeros(2, 3, requires_grad=True), torch._neg_view(plain), plain.to_sparse(), plain.to_mkldnn()]
    are_alike = _likeness(plain)
    return are_alike is not None and are_alike(plain.clone()) and not any([are_alike(other) for other in others])


def _traced(tensors: tuple[torch.Tensor, ...], any_size: bool) -> bool:
    """As `_runs_here`, while a program is compiled or exported. For many sizes, to compare a size with a number would
    fix it: then a kernel for one size does not run."""
    exporting, fixed = torch.compiler.is_exporting(), torch.fx.experimental.symbolic_shapes.has_static_value
    if not exporting and _in_a_mode():
        return False
    grad, device = torch.is_grad_enabled(), None
    for tensor in tensors:
        if type(tensor) not in _PLAIN and not (exporting and isinstance(tensor, torch.Tensor)):
            return False
        if not any_size and not all([fixed(size) for size in tensor.shape]):
            return False
        if grad and tensor.requires_grad:
            return False
        if device is None:
            device = tensor.device
        elif tensor.device != device:
            return False
    return _tested_gpu(device.type, device.index) and not torch.is_autocast_enabled(device.type)


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The tensor with these strides, copied if it has others."""
    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


_apart = _tells_apart()
'''
