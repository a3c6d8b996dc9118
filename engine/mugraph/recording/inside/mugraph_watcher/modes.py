"""Checks of how PyTorch runs: gradients, autocast, modes, transforms, tracing; and of the GPU."""

from __future__ import annotations

import ast
import sys
from typing import Any

from .guards import Frame, Refusal

_CALLS = {
    "_is_tracing": "torch.jit traces it",
    "_are_functorch_transforms_active": "a transform of torch.func is at work",
    "_len_torch_dispatch_stack": "a mode is at work that sees each operator",
    "_len_torch_function_stack": "a mode is at work that sees each function",
    "_get_function_stack_at": "a mode is at work that sees each function",
    "is_autocast_enabled": "autocast is on",
    "is_grad_enabled": "a gradient is wanted",
    "is_scripting": "TorchScript compiles it",
    "is_compiling": "it is being compiled",
    "is_exporting": "it is being exported",
    "_get_fp32_precision_getter": "TF32 is off, and the kernel takes it",
    "get_default_dtype": "the default type is another",
    "get_default_device": "the default device is another",
}
"""Of a function of PyTorch's that a check calls, what it means that the check says no."""


def of_mode(refusal: Refusal) -> str | None:
    frame = refusal.frame
    for node in ast.walk(refusal.node):
        if isinstance(node, ast.Call):
            name = _name(frame.tried(node.func))
            if name in _CALLS and frame.tried(node):
                return _CALLS[name] + _which(name, frame, node)
            if name == "get_device_capability":
                major, minor = frame.value(node)
                return f"the GPU here has compute capability {major}.{minor}, the kernel is for another"
        if isinstance(node, ast.Attribute) and node.attr == "_current_level":
            return "derivatives are taken in forward mode"
    return _of_gpu(refusal)


def _which(name: str, frame: Frame, node: ast.Call) -> str:
    """The name of the mode at work, or of the type or device."""
    torch: Any = sys.modules["torch"]
    if name == "_get_function_stack_at":
        return f" ({type(frame.value(node)).__qualname__})"
    if name == "_len_torch_function_stack" and frame.value(node):
        return f" ({type(torch._C._get_function_stack_at(0)).__qualname__})"
    if name == "_len_torch_dispatch_stack" and frame.value(node):
        return f" ({type(torch._C._get_dispatch_stack_at(0)).__qualname__})"
    return f": {str(frame.value(node)).removeprefix('torch.')}" if name.startswith("get_default") else ""


def _of_gpu(refusal: Refusal) -> str | None:
    """Of a guard that is asked about a GPU, with its kind among the arguments."""
    asked = next((one for one in reversed(refusal.frame.asked) if "cuda" in _texts(one.given[:2])), None)
    if asked is None:
        return None
    torch: Any = sys.modules["torch"]
    said = ast.unparse(refusal.node)
    if "hip" in said:
        return "no NVIDIA GPU here: this PyTorch is made for AMD's"
    if "cuda" not in _texts(asked.given[:1]):  # a region's name goes first
        return "the kernel did not agree with PyTorch on this GPU"
    if "TRITON" in said:
        return "Triton is not installed here"
    return f"the GPU here ({torch.cuda.get_device_name(asked.given[1])}) is not of the kind that the kernel is for"


def _texts(values: tuple[Any, ...]) -> list[str]:
    return [value for value in values if type(value) is str]


def _name(value: object) -> str:
    return str(getattr(value, "__name__", ""))
