"""Rounding to whole numbers and conversions to types of eight bits: their numbers, what is refused, kernels that write
them, and wrong graphs and texts that are rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest
import torch
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ops.algebra import conversions
from mugraph.ops.algebra.conversions import saturates
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.search.direct import as_block
from mugraph.verification.float_test import FloatTester
from mugraph.verification.torch_reference import TorchArithmetic, Value
from mugraph.verification.verifier import verify_topology

from tests.engine.codegen.changed_text import passes
from tests.engine.ops.harness import lower_region, record

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
ROWS, COLUMNS = 8, 64


def rows_e4m3(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 448.0
    return (x / scale).clamp(-448.0, 448.0).to(E4M3)


def unbounded(x: torch.Tensor) -> torch.Tensor:
    return (x * 8.0).to(E4M3)


def rows_e5m2(x: torch.Tensor) -> torch.Tensor:
    return (x / x.abs().amax(-1, keepdim=True) * 57344.0).clamp(-57344.0, 57344.0).to(E5M2)


def rows_int8(x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127.0
    return torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8)


def truncated(x: torch.Tensor) -> torch.Tensor:
    return (x * 8.0).clamp(0.0, 255.0).to(torch.uint8)


PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    one.__name__: one for one in (rows_e4m3, unbounded, rows_e5m2, rows_int8, truncated)
}


def program_of(function: Callable[..., torch.Tensor], dtype: torch.dtype = torch.float32) -> TensorProgram:
    return lower_region(record(function, {"x": torch.empty(ROWS, COLUMNS, dtype=dtype, device="meta")})).program


@cache
def lowered(name: str) -> tuple[TensorProgram, KernelSource]:
    program = program_of(PROGRAMS[name])
    block = as_block(program)
    rows = block.outputs[0].axes[0]
    grid = ((rows, 1),) if any(op.kind.reduces for op in block.ops) else tuple((a, 8) for a in block.outputs[0].axes)
    return program, lower_kernels([(block, Schedule(grid))], outputs=["out"], program=program)


def in_torch(kind: Kind, x: torch.Tensor) -> torch.Tensor:
    value: Value = TorchArithmetic(x.device).opaque(kind, Value(x.double(), ("n",)))
    return value.data


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("kind", "code"), [(Kind.E4M3, E4M3), (Kind.E5M2, E5M2)])
def test_every_number_is_rounded_as_pytorch_rounds_it(kind: Kind, code: torch.dtype, dtype: torch.dtype) -> None:
    x = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(dtype)
    found = in_torch(kind, x)
    assert kind.opaque is not None
    assert same(torch.as_tensor(kind.opaque.numbers(x.double().numpy())), found)
    inside = ~(x.double().abs() > torch.finfo(code).max + (16.0 if kind is Kind.E4M3 else 4096.0 - 2.0**-40))
    assert same(found[inside], x[inside].to(code).double())
    if kind is Kind.E5M2:
        assert same(found, x.to(code).double())
    else:
        assert bool(found[x.double().abs() > 464.0].isnan().all())


@pytest.mark.parametrize(
    ("kind", "function"),
    [(Kind.ROUND, torch.round), (Kind.FLOOR, torch.floor), (Kind.CEIL, torch.ceil), (Kind.TRUNC, torch.trunc)],
)
def test_whole_numbers_are_pytorchs(kind: Kind, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor([0.5, 1.5, -0.5, -2.5, 3.49, -3.51, 2.0**23 + 1, -(2.0**22) - 0.5, float("nan"), float("inf")])
    assert same(in_torch(kind, x), function(x.double()))
    assert kind.opaque is not None
    assert same(torch.as_tensor(kind.opaque.numbers(x.double().numpy())), function(x.double()))


REFUSED = {
    "nothing bounds it": lambda x: torch.round(x).to(torch.int8),
    "too far": lambda x: torch.round(x).clamp(-129, 127).to(torch.int8),
    "from one end": lambda x: torch.round(x).clamp(max=127).to(torch.int8),
    "negative": lambda x: torch.round(x).clamp(-1, 127).to(torch.uint8),
    "of other rows": lambda x: torch.round(x / (x.abs().amax(0, keepdim=True)[:, :1] / 127.0)).to(torch.int8),
    "no largest size": lambda x: torch.round(x / (x.amax(-1, keepdim=True) / 127.0)).to(torch.int8),
    "a step more": lambda x: torch.round(x / (x.abs().amax(-1, keepdim=True) / 128.0)).to(torch.int8),
    "infinite": lambda x: x.to(E5M2),
    "to decimals": lambda x: torch.round(x, decimals=1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_leave_its_type_is_refused(name: str) -> None:
    with pytest.raises(NotLowerable):
        program_of(REFUSED[name])


BOUNDED = {
    "by functions": lambda x: torch.round(torch.sigmoid(x) * 255.0).to(torch.uint8),
    "by its row": lambda x: torch.round(x / (x.abs().amax(-1, keepdim=True) / 127.0)).to(torch.int8),
    "by its row, at least": lambda x: torch.round(x * (127.0 / x.abs().amax(-1, keepdim=True).clamp(min=1e-3))).to(
        torch.int8
    ),
    "by its block": lambda x: torch.round(
        x.view(ROWS, 4, 16) / (x.view(ROWS, 4, 16).abs().amax(-1) / 127.0)[..., None]
    ).to(torch.int8),
    "of a condition": lambda x: (x > 0.0).to(torch.int8) * 2.0 + x,
}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_bounded_is_not(name: str) -> None:
    assert program_of(BOUNDED[name]).outputs


def test_roundings_of_16_bits_count_where_a_row_bounds_it() -> None:
    with pytest.raises(NotLowerable):
        program_of(BOUNDED["by its row"], torch.bfloat16)


def test_a_conversion_of_codes_is_nothing() -> None:
    """Numbers of the type, taken back and forth."""
    program = program_of(lambda x: x.to(E4M3).float().to(E4M3).float().sum(-1))
    assert [op.kind for op in program.compute_ops].count(Kind.E4M3) == 1


def test_what_is_clamped_or_divided_by_its_largest_is_the_same_in_all_versions_of_pytorch() -> None:
    for function in (rows_e4m3, lambda x: (x * (448.0 / x.abs().amax(-1, keepdim=True))).to(E4M3)):
        clamps = [op for op in program_of(function).compute_ops if op.kind is Kind.MAX]
        assert len(clamps) <= (3 if function is rows_e4m3 else 0)
    assert any(op.kind is Kind.MAX for op in program_of(unbounded).compute_ops) == saturates()


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester() as tester:
        yield tester


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_write_them(name: str, tester: FloatTester) -> None:
    program, source = lowered(name)
    assert passes((program, source))
    result = tester.test_kernel(source, program)
    assert result.passed, result.reason


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_compile_for_an_h100(name: str) -> None:
    _, source = lowered(name)
    assert "_kernel" in compile_for(source, 90).ptx


WRONG: dict[str, tuple[str, Callable[[Op], Op]]] = {
    "down": ("rows_int8", lambda op: replace(op, kind=Kind.FLOOR) if op.kind is Kind.ROUND else op),
    "towards zero": ("rows_int8", lambda op: replace(op, kind=Kind.TRUNC) if op.kind is Kind.ROUND else op),
    "to another type": ("rows_e4m3", lambda op: replace(op, kind=Kind.E5M2) if op.kind is Kind.E4M3 else op),
    "another end": ("rows_int8", lambda op: replace(op, value=-127.0) if op.value == -128.0 else op),
    "half the scale": ("rows_e4m3", lambda op: replace(op, value=op.value / 2) if op.value == 1 / 448.0 else op),
    "not truncated": ("truncated", lambda op: replace(op, kind=Kind.ROUND) if op.kind is Kind.TRUNC else op),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_graphs_are_rejected(name: str) -> None:
    of, change = WRONG[name]
    program, _ = lowered(of)
    block = as_block(program)
    assert verify_topology(program, block, seed=0).passed
    ops = tuple(map(change, block.ops))
    assert ops != block.ops
    assert not verify_topology(program, replace(block, ops=ops), seed=0).passed


TEXTS = {
    "halves up": ("rows_int8", "(quotient + 8388608.0) - 8388608.0", "tl.floor(quotient + 0.5)"),
    "at another place": ("rows_int8", "tl.abs(quotient) < 8388608.0", "tl.abs(quotient) < 8388608.5"),
    "not rounded": ("rows_int8", "(quotient + 8388608.0) - 8388608.0", "quotient"),
    "not clamped": ("rows_int8", "tl.minimum(larger_2, NEG_C_5, propagate_nan=tl.PropagateNan.ALL)", "larger_2"),
    "another end": ("rows_e4m3", "NEG_C_3,", "0.5 * NEG_C_3,"),
    "in another type": ("rows_e4m3", "tl.float8e4nv", "tl.float8e5"),
    "not truncated": ("truncated", "tl.floor(", "tl.ceil("),
    "half the scale": ("unbounded", "8.0 * x", "4.0 * x"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_wrong_texts_are_rejected(name: str) -> None:
    of, old, new = TEXTS[name]
    assert not passes(lowered(of), old, new)


@pytest.mark.parametrize("name", ["rows_e4m3", "unbounded"])
def test_a_clamp_bounds_what_a_gpu_would_clamp(name: str) -> None:
    """The conversion alone is of what is clamped to the type's range; without the clamp it is another function."""
    _, source = lowered(name)
    if name == "unbounded" and not saturates():
        assert "464.0" in source.jit
        return
    assert "tl.where(tl.abs(" not in source.jit
    assert "tl.float8e4nv" in source.jit


@pytest.mark.parametrize("saturating", [True, False])
def test_beyond_the_largest_it_is_what_pytorch_makes_of_it(
    saturating: bool, monkeypatch: pytest.MonkeyPatch, tester: FloatTester
) -> None:
    """Up to 2.12 it is NaN, which a GPU's conversion does not give."""
    monkeypatch.setattr(conversions, "saturates", lambda: saturating)
    program = program_of(unbounded)
    block = as_block(program)
    schedule = Schedule(tuple((axis, 8) for axis in block.outputs[0].axes))
    source = lower_kernels([(block, schedule)], outputs=["out"], program=program)
    assert passes((program, source))
    result = tester.test_kernel(source, program)
    assert result.passed, result.reason
    assert ("464.0" in source.jit) != saturating
    if not saturating:
        code = "tl.cast(8.0 * x, tl.float8e4nv)"
        first = source.jit.index("tl.cast(tl.where(")
        before = source.jit[first : source.jit.index("tl.float8e4nv)", first) + len("tl.float8e4nv)")]
        assert not passes((program, source), before, code)
