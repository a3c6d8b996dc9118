"""`w & n` and `w >> n`: PyTorch's numbers, for every byte; and kernels that take other bits are rejected."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search.run import Search
from mugraph.units.lower import NotLowerable
from mugraph.verification.torch_reference import _opaque  # pyright: ignore[reportPrivateUsage]
from mugraph.verification.verifier import verify_topology

from tests.engine.codegen.changed_text import passes
from tests.engine.ops.harness import check, lower_region, randn, record

TYPES = (torch.uint8, torch.int8)
TL = SimpleNamespace(cast=lambda x, kind: np.asarray(x).astype(kind), int32=np.int32, float32=np.float32)


def every(kind: torch.dtype) -> torch.Tensor:
    """All 256 numbers of the type."""
    return torch.arange(256, dtype=torch.int16).to(torch.uint8).view(kind)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_byte_has_the_bits_that_pytorch_says(dtype: torch.dtype) -> None:
    """What the field test and the float test take it for, and what the kernel's text computes."""
    own: Any = Kind.BIT_AND
    bytes_ = every(dtype)
    assert len(set(bytes_.tolist())) == 256
    for number in bytes_.tolist():
        wanted = torch.bitwise_and(bytes_, number).double().numpy()
        x, n = bytes_.double().numpy(), np.float64(number)
        np.testing.assert_array_equal(own.opaque.numbers(x, n), wanted)
        np.testing.assert_array_equal(_opaque(own)(bytes_.double(), torch.tensor(float(number))), wanted)
        text = own.triton.format("x", f"{float(number)}")
        np.testing.assert_array_equal(eval(text, {"tl": TL, "x": x.astype(np.float32)}), wanted.astype(np.float32))


SPELLINGS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "and": lambda w: (w & 0xF).float(),
    "and, number first": lambda w: (0xF & w).float(),
    "bitwise_and": lambda w: torch.bitwise_and(w, 6).half().float(),
    "shift": lambda w: (w >> 4).float(),
    "bitwise_right_shift": lambda w: w.bitwise_right_shift(3).float(),
    "shift by none": lambda w: (w >> 0).float(),
    "shift twice": lambda w: ((w >> 1) >> 2).float(),
    "the middle": lambda w: ((w >> 2) & 3).float(),
    "the middle of what is shifted twice": lambda w: (((w >> 1) >> 2) & 5).float(),
    "bits that are not side by side": lambda w: ((w >> 1) & 0b101).float() + (w & 0b1010).float(),
    "the upper half in its place": lambda w: (w & 0x70).float() / 16,
    "all but the lowest": lambda w: (w & 126).float() + (w & 127).float(),
    "of what is masked": lambda w: ((w & 0x70) >> 4).float() + ((w & 0x70) & 0x30).float() + ((w & 9) >> 4).float(),
    "of a sum": lambda w: (((w & 15) + (w & 3)) >> 2).float() + (((w & 15) + (w & 3)) & 16).float(),
    "of what is joined": lambda w: ((torch.stack((w & 0xF, w >> 4), -1) >> 1) & 3).flatten(-2).float(),
    "a shift of what is shifted, less eight": lambda w: (((w >> 4) & 15).to(torch.int8) - 8).float(),
    "in a wider type": lambda w: ((w.to(torch.int32) >> 4) & 0xF).float(),
    "less eight": lambda w: ((w & 0xF).to(torch.int8) - 8).float(),
    "two to a byte": lambda w: torch.stack((w & 0xF, (w >> 4) & 0xF), dim=-1).flatten(-2).float(),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", SPELLINGS)
def test_what_pytorch_spells(name: str, dtype: torch.dtype) -> None:
    """The program's numbers are PyTorch's, for every byte."""
    spelled = SPELLINGS[name]

    def program(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return spelled(w).to(x.dtype) @ x

    w = every(dtype).view(32, 8)
    check(program, {"w": w, "x": randn(spelled(w).shape[1], 4)})


REFUSED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "it wraps below zero": lambda u, i: ((u & 0xF) - 8).float(),
    "it wraps above": lambda u, i: (u + u).float(),
    "a signed byte wraps": lambda u, i: u.to(torch.int8).float(),
    "bits that a byte does not have": lambda u, i: (i.long() & (1 << 20)).float(),
    "by as many places as there are": lambda u, i: (u >> 8).float(),
    "by a tensor": lambda u, i: (u & i.to(torch.uint8)).float(),
    "to the left": lambda u, i: (u << 1).float(),
    "of large numbers": lambda u, i: (i.long() & 0xF).float(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_wrap_around_is_refused(name: str) -> None:
    spelled, inputs = REFUSED[name], {"u": every(torch.uint8).view(16, 16), "i": torch.arange(256).view(16, 16)}

    def program(u: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return spelled(u, i).sum(-1)

    with pytest.raises(NotLowerable):
        lower_region(record(program, inputs))


def _linear(x: torch.Tensor, packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    codes = torch.stack((packed & 0xF, packed >> 4), dim=-1).reshape(packed.shape[0], -1)
    return x @ ((codes.to(x.dtype) - 8.0) * scale).T


@cache
def _lowered() -> tuple[TensorProgram, KernelSource]:
    inputs = {"x": randn(16, 64), "packed": every(torch.uint8).repeat(4).view(32, 32), "scale": randn(32, 1)}
    program = check(_linear, inputs).program
    block = next(
        found.block
        for found in Search(program).run()
        if found.block.loop_axes and verify_topology(program, found.block).passed
    )
    rows, columns = block.outputs[0].axes
    schedule = Schedule(((rows, 16), (columns, 16)), dict.fromkeys(block.loop_axes, 16))
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


def test_packed_weights_are_loaded_once() -> None:
    _, source = _lowered()
    assert source.jit.count("tl.load(packed_ptr") + source.jit.count("tl.load(\n            packed_ptr") == 1
    assert passes(_lowered())
    assert ".target sm_90" in compile_for(source, 90).ptx


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("& tl.cast(15.0, tl.int32)", "& tl.cast(7.0, tl.int32)"),
        ("& tl.cast(15.0, tl.int32)", ">> tl.cast(4.0, tl.int32)"),
        ("& tl.cast(15.0, tl.int32)", "| tl.cast(15.0, tl.int32)"),
        ("& tl.cast(15.0, tl.int32)", "& tl.cast(240.0, tl.int32)"),
    ],
)
def test_other_bits_are_rejected_in_a_text(old: str, new: str) -> None:
    assert not passes(_lowered(), old, new)


@pytest.mark.parametrize(
    "upper",
    [
        lambda w: w >> 4,
        lambda w: (w >> 4) & 15,
        lambda w: (w & 0xF0) >> 4,
        lambda w: (w >> 2) >> 2,
        lambda w: ((w >> 3) & 30) >> 1,
    ],
)
def test_the_upper_half_is_one_thing_however_it_is_spelled(upper: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """It is computed from the byte and its lower half, which other code takes out of it, too."""

    def program(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return upper(w).to(x.dtype) @ x

    found = check(program, {"w": every(torch.uint8).view(32, 8), "x": randn(8, 4)}).program
    masks = [op for op in found.ops if op.kind is Kind.BIT_AND]
    assert [found.op(one.inputs[1]).value for one in masks] == [15.0]
