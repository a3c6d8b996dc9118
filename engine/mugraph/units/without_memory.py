"""Calls run on tensors without memory: what they make has a shape, strides and a type."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from mugraph.ir.calls import Call, TensorInfo
from mugraph.trace.regions.replay import replay

_TYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "bool": torch.bool,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_NOTHING = TensorInfo((), (), "f32")


def run(call: Call, given: Mapping[int, TensorInfo]) -> list[TensorInfo]:
    """What the call makes, in order; what it or PyTorch raises goes through. given: its operands"""
    env = {number: _tensor(info) for number, info in given.items()} or {-1: _tensor(_NOTHING)}
    with torch.no_grad():
        found = replay([call], env)
    return [_info(found[number]) for number in call.outputs]


def _tensor(info: TensorInfo) -> torch.Tensor:
    return torch.empty_strided(info.shape, info.strides, dtype=_TYPES[info.dtype], device="meta")


def _info(tensor: torch.Tensor) -> TensorInfo:
    return TensorInfo(tuple(tensor.shape), tuple(tensor.stride()), _NAMES[tensor.dtype])
