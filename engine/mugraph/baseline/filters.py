"""Convolutions: products over what a filter covers at each place, and the copies and additions around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from mugraph.baseline.arguments import tensors
from mugraph.baseline.launch import Launch, Values, name_of
from mugraph.baseline.memory import held_bytes, is_channels_last, is_dense
from mugraph.ir.calls import Call, Ref
from mugraph.ir.library import Product

_IMAGES = 4
"""Dimensions of images. torch.compile leaves those of more, and of fewer, as they lie."""
_CHANNELS = 8
"""That a convolution needs at least for the tensor cores."""


def is_filter(name: str) -> bool:
    return name.startswith("conv") and name[-1:] == "d"


def filtered(launch: Launch, call: Call, values: Values) -> Iterator[Launch]:
    """launch: one that reads what the call is given and writes what it makes"""
    source, weight, *_ = tensors(call, values)
    dtype, reads, writes = launch.dtype, launch.reads, launch.writes
    converts = dtype in ("f16", "bf16") and is_dense(source) and weight.shape[1:] != (1,) * len(weight.shape[1:])
    if converts:  # the tensor cores take channels last
        yield Launch("elementwise", {**reads}, {}, dtype=dtype)
    narrow = weight.shape[0 if "transpose" in name_of(call) else 1] < _CHANNELS
    # In 16 bits the copies are counted as kernels of their own.
    turns = dtype == "f32" and len(source.shape) == _IMAGES and prod(weight.shape[2:]) > 1
    products = _products(call, values)
    turns = turns and all(product.matrices == 1 for product in products)
    turned = held_bytes(source) if turns and is_channels_last(source) else 0
    yield replace(
        launch,
        work="product",
        products=products,
        is_narrow=narrow,
        may_turn=turns and is_dense(source),
        turned=turned,
        tf32="cudnn" if call.tf32 else "",
    )
    if converts:
        yield Launch("elementwise", {**writes}, {}, dtype=dtype)
    bias = call.args[2] if len(call.args) > 2 else call.kwargs.get("bias")
    if isinstance(bias, Ref):  # PyTorch adds it on its own
        yield Launch("elementwise", {**writes}, writes, dtype=dtype)


def _products(call: Call, values: Values) -> tuple[Product, ...]:
    x, weight, *_ = tensors(call, values)
    out = values[call.outputs[0]].shape
    groups = call.args[6] if len(call.args) > 6 and isinstance(call.args[6], int) else call.kwargs.get("groups", 1)
    groups = groups if isinstance(groups, int) else 1
    if "transpose" in name_of(call):  # its weight has the operand's channels first; each element goes to all taps
        places = prod(x.shape) // weight.shape[0]
        return (Product(groups, places, prod(weight.shape[1:]), weight.shape[0] // groups),)
    spatial = prod(out) // weight.shape[0]
    return (Product(groups, spatial, weight.shape[0] // groups, prod(weight.shape[1:])),)
