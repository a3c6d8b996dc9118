"""Checks of a tensor: its shape, strides, type, place."""

from __future__ import annotations

import ast
import sys
from typing import Any

from .guards import Frame, Refusal
from .values import a, compared, short

_BITS = {
    "is_neg": "is a view that is still to be negated",
    "is_conj": "is a view that is still to be conjugated",
    "_is_zerotensor": "is a tensor of zeros without memory",
    "is_nested": "is a nested tensor",
    "is_sparse": "is sparse",
}


def of_tensor(refusal: Refusal) -> str | None:
    frame = refusal.frame
    pair = compared(refusal)
    if pair is None:
        return _of_bit(refusal)
    left = frame.names.behind(pair.left)
    actual, expected = pair.actual, pair.expected
    if _is_device_type(actual) and type(expected) is str and expected == "cuda":
        return _no_gpu(frame, left, actual)
    match left:
        case ast.Call(ast.Name("type"), [one]) if pair.range is not None or is_tensor(frame.tried(one)):
            return f"{frame.said(one)} is {_a(actual)}, no plain tensor"
        case ast.BinOp(ast.Call(ast.Attribute(one, "data_ptr")), ast.BitAnd() | ast.Mod()):
            return f"{frame.said(one)} does not begin at a multiple of 16 bytes"
        case ast.Attribute(one, name) | ast.Call(ast.Attribute(one, name), []) if is_tensor(frame.tried(one)):
            return _whole(frame.said(one), frame.tried(one), name, actual, expected)
        case ast.Subscript(ast.Attribute(one, "shape"), ast.Constant(int(dim))) | ast.Call(
            ast.Attribute(one, "size"), [ast.Constant(int(dim))]
        ) if is_tensor(frame.tried(one)):
            wanted = pair.range or short(expected)
            return _along(frame.said(one), dim % max(frame.tried(one).dim(), 1), frame.tried(one).dim(), actual, wanted)
        case ast.Call(ast.Attribute(one, "stride"), [ast.Constant(int(dim))]) if is_tensor(frame.tried(one)):
            return f"{frame.said(one)} has stride {actual} in dimension {dim}, the kernel is for {short(expected)}"
        case _:
            return None


def _of_bit(refusal: Refusal) -> str | None:
    """What is said of a tensor without a comparison."""
    match refusal.node:
        case ast.Attribute(one, name) | ast.Call(ast.Attribute(one, name), []):
            value = refusal.frame.tried(one)
        case ast.BinOp(ast.Call(ast.Attribute(one, "data_ptr")), ast.BitAnd() | ast.Mod()):
            return f"{refusal.frame.said(one)} does not begin at a multiple of 16 bytes"
        case _:
            return None
    if name == "requires_grad" and refusal.truth:
        return "a gradient is wanted"
    if not is_tensor(value):
        return None
    if name == "is_cuda" and not refusal.truth:
        return _no_gpu(refusal.frame, ast.Attribute(one, "device", ast.Load()), value.device.type)
    said = refusal.frame.said(one)
    if name == "is_contiguous" and not refusal.truth:
        return f"{said} is not contiguous"
    return f"{said} {_BITS[name]}" if name in _BITS and refusal.truth else None


def _whole(said: str, tensor: Any, name: str, actual: Any, expected: Any) -> str | None:
    if name == "shape":
        return _shapes(said, tuple(actual), tuple(expected))
    if name == "stride":
        return f"{said} has strides {short(tuple(actual))}, the kernel is for {short(tuple(expected))}"
    if name == "dtype":
        return f"{said} is {short(actual)}, the kernel is for {short(expected)}"
    if name in ("dim", "ndim"):
        return f"{said} has {_count(actual, 'dimension')}, the kernel is for {expected}"
    if name == "device":
        return f"{said} is on {short(actual)}, other tensors are on {short(expected)}"
    if name == "layout":
        return f"{said} is laid out as {short(actual)}, the kernel is for {short(expected)}"
    return None


def _shapes(said: str, actual: tuple[Any, ...], expected: tuple[Any, ...]) -> str:
    differing = [dim for dim, (one, other) in enumerate(zip(actual, expected, strict=False)) if one != other]
    if len(actual) == len(expected) and len(differing) == 1:
        [dim] = differing
        return _along(said, dim, len(actual), actual[dim], str(expected[dim]))
    return f"{said} has shape {short(actual)}, the kernel is for {short(expected)}"


def _along(said: str, dim: int, rank: int, size: int, wanted: str) -> str:
    of = {(0, 1): "element", (0, 2): "row", (1, 2): "column"}.get((dim, rank))
    if of is None:
        return f"{said} has size {size} in dimension {dim}, the kernel is for {wanted}"
    return f"{said} has {_count(size, of)}, the kernel is for {wanted}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _no_gpu(frame: Frame, node: ast.expr, kind: str) -> str:
    """No driver is asked: that would keep the program's processes from being forked."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    count = getattr(cuda, "_device_count_nvml", None)
    known = cuda is not None and (cuda.is_initialized() or (callable(count) and _positive(count())))
    if not known:
        return "no NVIDIA GPU here"
    said = frame.said(node).removesuffix(".type").removesuffix(".device")
    return f"{said} is on {'the CPU' if kind == 'cpu' else kind}"


def _positive(count: object) -> bool:
    return isinstance(count, int) and count > 0


def _is_device_type(value: object) -> bool:
    return isinstance(value, str) and value in ("cpu", "meta", "mps", "xpu", "hpu", "xla", "vulkan")


def _a(value: Any) -> str:
    return a(value.__qualname__ if isinstance(value, type) else str(value))


def is_tensor(value: object) -> bool:
    kind: Any = getattr(sys.modules.get("torch"), "Tensor", None)
    return isinstance(kind, type) and isinstance(value, kind)
