"""Products by bytes, and by bits of bytes: their numbers are made by the bits of the mantissa."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.dtypes import READ, DType
from mugraph.ir.kernel import KernelSource
from mugraph.ir.mantissa import OF_BYTES, SINGLES, of_bits
from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.search.factored import blocks_of
from mugraph.verification.float_test import FloatTester

from tests.engine.codegen.changed_text import passes
from tests.engine.units.regions import cut, meta, units

ROWS, COLUMNS, DEPTH, GROUP = 8, 32, 128, 32


def by_bytes(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w.to(x.dtype)) * scale


def by_halves(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    codes = torch.stack((w & 0xF, w >> 4), dim=-1).view(w.shape[0], scale.shape[1], -1)
    return F.linear(x, ((codes.to(scale.dtype) - 8) * scale[:, :, None]).flatten(1))


PROGRAMS: dict[str, tuple[Callable[..., torch.Tensor], torch.dtype]] = {
    "uint8": (by_bytes, torch.uint8),
    "int8": (by_bytes, torch.int8),
    "halves": (by_halves, torch.uint8),
}


@cache
def lowered(name: str, dtype: torch.dtype = torch.float16) -> tuple[TensorProgram, KernelSource]:
    function, stored = PROGRAMS[name]
    halved = function is by_halves
    w = meta(COLUMNS, DEPTH // 2 if halved else DEPTH, dtype=stored)
    scale = meta(COLUMNS, DEPTH // GROUP, dtype=dtype) if halved else meta(COLUMNS, dtype=dtype)
    (unit,) = units(cut(function, x=meta(ROWS, DEPTH, dtype=dtype), w=w, scale=scale))
    program = unit.program
    block = blocks_of(program)[-1] if halved else as_block(program)
    grid = tuple((axis, 16) for axis in block.outputs[0].axes)
    schedule = Schedule(grid, dict.fromkeys(block.loop_axes, 1), swap=halved)
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester() as tester:
        yield tester


def _cast(x: Any, kind: Any, bitcast: bool = False) -> Any:
    return x.view(kind) if bitcast else x.astype(kind)


TL = SimpleNamespace(
    cast=_cast, uint8=np.uint8, uint16=np.uint16, int32=np.int32, float16=np.float16, float32=np.float32
)


@pytest.mark.parametrize(
    ("dtype", "text", "kind"),
    [(dtype, text, np.float16) for dtype, text in OF_BYTES.items()]
    + [(dtype, text, np.float32) for dtype, text in SINGLES.items()],
)
def test_every_byte_is_the_number_that_it_is(dtype: DType, text: str, kind: type[np.floating[Any]]) -> None:
    x = np.arange(256, dtype=np.uint8).view(READ[dtype].torch)
    found = eval(text.format(x="x"), {"tl": TL, "x": x})
    assert found.dtype == kind
    assert np.array_equal(found, x.astype(kind))


@pytest.mark.parametrize("mask", [1, 15, 0x70, 255])
def test_so_are_some_of_its_bits(mask: int) -> None:
    x = np.arange(256, dtype=np.uint8)
    assert np.array_equal(eval(of_bits(f"x & {mask}"), {"tl": TL, "x": x}), (x & mask).astype(np.float16))


@pytest.mark.parametrize("name", PROGRAMS)
def test_weights_are_not_converted(name: str, tester: FloatTester) -> None:
    program, source = lowered(name)
    assert source.jit.count("0x6400") == (2 if name == "halves" else 1)
    assert passes((program, source))
    tested = tester.test_kernel(source, program, seed=1)
    assert tested.passed, tested.reason
    ptx = compile_for(source, 90).ptx
    assert "cvt.rn.f16.u" not in ptx
    assert "cvt.rn.f16.s" not in ptx


@pytest.mark.parametrize("name", PROGRAMS)
def test_bfloat16_has_too_few_bits(name: str) -> None:
    program, source = lowered(name, torch.bfloat16)
    assert "0x6400" not in source.jit
    assert passes((program, source))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("uint8", "1024.0", "1023.0"),
        ("uint8", "0x6400", "0x6401"),
        ("int8", "1152.0", "1024.0"),
        ("int8", " ^ 0x80", " ^ 0x81"),
        ("halves", "& 15", "& 7"),
        ("halves", "& 15", "& 271"),
        ("halves", "w & 15", "w"),
    ],
)
def test_other_numbers_are_rejected(name: str, old: str, new: str) -> None:
    assert not passes(lowered(name), old, new)


def test_bytes_of_another_type_are_rejected() -> None:
    """As unsigned, an int8 is another number."""
    assert not passes(lowered("int8"), "tl.cast(w, tl.uint8, bitcast=True) ^ 0x80", "w")


@cache
def of_a_row(dtype: torch.dtype = torch.float16) -> tuple[TensorProgram, KernelSource]:
    inputs = {"x": meta(1, DEPTH, dtype=dtype), "w": meta(COLUMNS, DEPTH, dtype=torch.int8)}
    (unit,) = units(cut(by_bytes, **inputs, scale=meta(COLUMNS, dtype=dtype)))
    program = unit.program
    block = as_block(program)
    grid = tuple((axis, 4) for axis in block.outputs[0].axes if program.sizes[axis] > 1)
    schedule = Schedule(grid, dict.fromkeys(block.loop_axes, 32))
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_row_is_multiplied_with_what_is_not_converted(dtype: torch.dtype, tester: FloatTester) -> None:
    program, source = of_a_row(dtype)
    assert source.jit.count("0x4B400000") == 1
    assert passes((program, source))
    tested = tester.test_kernel(source, program, seed=1)
    assert tested.passed, tested.reason
    assert "cvt.rn.f32.s" not in compile_for(source, 90).ptx


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("12582912.0", "12582911.0"),
        ("0x4B400000", "0x4B400001"),
        ("0x4B400000", "0x4B000000"),
        ("tl.cast(w, tl.int32)", "w"),
        (" - 12582912.0", ""),
    ],
)
def test_other_numbers_of_a_row_are_rejected(old: str, new: str) -> None:
    assert not passes(of_a_row(), old, new)
