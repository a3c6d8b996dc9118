"""What is set around a call: the default type, autocast, TF32, whether gradients are wanted, and the module's own
data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from .groups import distributed

_DEVICES = ("cpu", "cuda")
_MULTIPLIED = {"cudnn": "conv", "cublas": "matmul"}
"""Settings of TF32, and what PyTorch calls that they are about."""


def around() -> dict[str, Any]:
    torch: Any = sys.modules["torch"]
    found: dict[str, Any] = {
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "grad": bool(torch.is_grad_enabled()),
        "inference": bool(torch.is_inference_mode_enabled()),
        "autocast": {},
        "distributed": distributed(),
        "tf32": [setting for setting in _MULTIPLIED if _takes_tf32(torch, setting)],
        "path": [os.path.abspath(place) for place in sys.path if _is_own(place)],
    }
    for device in _DEVICES:
        if torch.is_autocast_enabled(device):
            found["autocast"][device] = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
    return found


def _takes_tf32(torch: Any, setting: str) -> bool:
    """What was set by `fp32_precision` may be unreadable as `allow_tf32`."""
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        return False
    read = getattr(torch._C, "_get_fp32_precision_getter", None)
    if read is not None:
        return read("cuda", _MULTIPLIED[setting]) == "tf32"
    backends = torch.backends
    return bool(backends.cudnn.allow_tf32 if setting == "cudnn" else backends.cuda.matmul.allow_tf32)


def _is_own(place: str) -> bool:
    full = os.path.abspath(place)
    return os.path.isdir(full) and not full.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep))


def global_data(owner: object, code: CodeType | None, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The module's names that the function, and what it reaches by name in its own module, may read: those that hold
    neither functions nor classes nor modules. A script sets some of them after it was imported."""
    found: dict[str, Any] = {}
    done: set[int] = set()
    waiting: list[object] = [code, type(owner) if owner is not None else None]
    while waiting:
        one = waiting.pop()
        if id(one) in done:
            continue
        done.add(id(one))
        if isinstance(one, type):
            if one.__module__ == namespace.get("__name__"):
                waiting += [getattr(value, "__func__", value) for value in vars(one).values()]
                waiting += one.__bases__
            continue
        if isinstance(one, FunctionType) and one.__globals__ is namespace:
            one = one.__code__
        if not isinstance(one, CodeType):
            continue
        for name in _names(one):
            if name not in namespace or name.startswith("__"):
                continue
            value = namespace[name]
            if isinstance(value, FunctionType | type):
                waiting.append(value)
            elif not isinstance(value, ModuleType | BuiltinFunctionType):
                found[name] = value
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
