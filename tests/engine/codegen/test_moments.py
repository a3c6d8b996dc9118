"""Kernels of variances in parts of rows: right in Triton's interpreter, whatever the sizes; compiled without a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower, lower_kernels
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.search.schedules.moments import moments_cuts
from mugraph.search.schedules.sizes import ScheduleLimits, schedules
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_schedules
from syrupy.assertion import SnapshotAssertion

from tests.engine.codegen.changed_text import passes
from tests.engine.codegen.goldens import PythonFile
from tests.engine.search.row_programs import deviation, group_norm, naive_norm, offset_norm

Kernels = list[tuple[BlockGraph, Schedule]]
H100 = TARGETS["h100"]


def grid(*axes: tuple[str, int]) -> Schedule:
    return Schedule(axes)


def cut(program: TensorProgram, axis: str, count: int, first: Schedule, second: Schedule) -> Kernels:
    (one,) = (one for one in moments_cuts(as_block(program)) if one.axis == axis)
    ((a, b),) = one.pairs(count)
    return [(a, first), (b, second)]


def in_float32(program: TensorProgram) -> TensorProgram:
    return replace(
        program,
        tensors=tuple(replace(tensor, dtype="f32") for tensor in program.tensors),
        outputs={name: replace(tensor, dtype="f32") for name, tensor in program.outputs.items()},
    )


def of_two(channels: int, pixels: int, batch: int = 2) -> TensorProgram:
    return group_norm(channels, pixels, batch, groups=2)


PARTS = grid(("n_split", 1), ("k", 1), ("b", 1))
TILES = grid(("n", 16), ("c", 1), ("k", 1), ("b", 1))
CASES: dict[str, tuple[TensorProgram, Kernels]] = {}


def _case(name: str, program: TensorProgram, axis: str, count: int, first: Schedule, second: Schedule) -> None:
    CASES[name] = program, cut(program, axis, count, first, second)


_case("group_norm", of_two(4, 96), "n", 3, PARTS, TILES)
_case("group_norm_channels", of_two(6, 20), "c", 3, grid(("c_split", 1), ("k", 1), ("b", 1)), TILES)
_case("group_norm_odd", of_two(3, 75, 1), "n", 5, PARTS, grid(("n", 32), ("c", 2), ("k", 1), ("b", 1)))
_case("group_norm_f32", in_float32(of_two(3, 75, 1)), "n", 5, PARTS, TILES)
_case("several_parts_a_block", of_two(2, 96), "n", 6, grid(("n_split", 4), ("k", 2), ("b", 1)), TILES)
_case("deviation", deviation(120, rows=5), "n", 4, grid(("m", 2), ("n_split", 1)), grid(("m", 4)))
_case("offset_norm", offset_norm(144, rows=3), "n", 9, grid(("n_split", 1), ("m", 1)), grid(("n", 64), ("m", 2)))


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


@pytest.mark.parametrize("name", CASES)
def test_two_kernels_compute_what_one_would(name: str, tester: FloatTester) -> None:
    program, kernels = CASES[name]
    result = tester.test_kernel(lower_kernels(kernels), program)
    assert result.passed, result.reason
    assert {"normal", "rows", "cancellation", "ends"} <= {one.name for one in result.scenarios}
    indexed = verify_schedules(program, kernels, seed=1)
    assert indexed.passed, indexed.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SQUARES_ELEMENTS=100.0", "SQUARES_ELEMENTS=75.0"),  # a wrong count
        ("squares_parts + SQUARES_ELEMENTS * (squares_between * squares_between)", "squares_parts"),  # no delta
        ("active + TOTAL_SHARE * total", "active"),  # about 0
        ("TOTAL_SHARE=-0.01", "TOTAL_SHARE=-0.0033333333333333335"),  # a part's sum as the whole's
        ("0.01 * total_parts - mean", "total_parts - mean"),  # a part's sum as its mean
        ("N_SPLIT=3", "N_SPLIT=2"),  # a part left out
    ],
)
def test_spoiled_text_is_rejected(old: str, new: str) -> None:
    program, kernels = program_in_hundreds()
    lowered = program, lower_kernels(kernels)
    assert passes(lowered)
    assert not passes(lowered, old, new)


def program_in_hundreds() -> tuple[TensorProgram, Kernels]:
    """Parts of a hundred elements."""
    program = of_two(4, 75)
    return program, cut(program, "n", 3, PARTS, TILES)


def test_the_square_of_the_mean_taken_from_the_mean_square_is_rejected(tester: FloatTester) -> None:
    """The other way to read memory once."""
    program = in_float32(offset_norm(144, rows=3))
    naive = in_float32(naive_norm(144, rows=3))
    schedule = grid(("m", 1))
    assert verify_schedules(program, [(as_block(naive), schedule)], seed=1).passed
    result = tester.test_kernel(lower(as_block(naive), schedule), program)
    assert not result.passed
    assert tester.test_kernel(lower(as_block(program), schedule), program).passed


LONG = {
    "group_norm": (in_float32(group_norm(8, 512 * 512, batch=112)), "n", 256),
    "instance_norm": (in_float32(offset_norm(512 * 512, rows=7168)), "n", 32),
    "odd_row": (in_float32(offset_norm(30 * 31 * 63, rows=512)), "n", 7),
    "half": (group_norm(8, 512 * 512, batch=112), "n", 64),
}


def long_kernels(name: str, most: int) -> list[tuple[KernelSource, bool]]:
    """Kernels of a long row, one for each of several schedules of either; and whether it is the first."""
    program, axis, count = LONG[name]
    (one,) = (one for one in moments_cuts(as_block(program)) if one.axis == axis)
    ((first, second),) = one.pairs(count)
    found: list[tuple[KernelSource, bool]] = []
    for block in (first, second):
        every = schedules(block, H100, ScheduleLimits(max_candidates=128))
        found += [(lower(block, one.schedule), block is first) for one in every[:: -(-len(every) // most)]]
    return found


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
@pytest.mark.parametrize("name", LONG)
def test_whatever_the_tiles_both_kernels_compile(name: str) -> None:
    kernels = long_kernels(name, 4)
    assert {is_first for _, is_first in kernels} == {True, False}
    for source, _ in kernels:
        compiled = compile_for(source, H100.capability)
        assert 0 <= compiled.shared_bytes <= H100.shared
        assert compiled.spilled in (None, 0)


def test_text_of_both_kernels(snapshot: SnapshotAssertion) -> None:
    program, axis, count = LONG["group_norm"]
    kernels = cut(
        program, axis, count, grid(("b", 1), ("n_split", 1), ("k", 1)), grid(("n", 1024), ("b", 1), ("k", 1), ("c", 8))
    )
    text = lower_kernels(kernels).standalone()
    assert text == snapshot(extension_class=PythonFile)
    compile(text, "group_norm", "exec")
    assert max(map(len, text.splitlines())) <= 120
