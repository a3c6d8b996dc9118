"""Kernels that finish one another's sums: right together, safe for large logits, wrong when anything is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.launcher import borders, launcher_text
from mugraph.codegen.lower import lower, lower_kernels
from mugraph.ir.kernel import KernelSource, Rejected, Unfinished
from mugraph.ir.transforms.reduced import program_sizes, reduced_kernels
from mugraph.ir.transforms.resizing import resize
from mugraph.targets import TARGETS
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_schedules
from syrupy.assertion import SnapshotAssertion

import tests.engine.codegen.graphs as g
from tests.engine.codegen.goldens import PythonFile
from tests.engine.codegen.splits import CASES, REAL_SIZES, grid, program_of, source, split


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


def result_of(tester: FloatTester, name: str, kernel: KernelSource | None = None) -> FloatResult:
    return tester.test_kernel(kernel or source(name), program_of(CASES[name][0]))


@pytest.mark.parametrize("name", CASES)
def test_two_kernels_compute_what_one_would(name: str, tester: FloatTester) -> None:
    block, kernels = CASES[name]
    result = result_of(tester, name)
    assert result.passed, result.reason
    kinds = {"normal", "rows", "cancellation", "ends"} | ({"large logits"} if "attention" in name else set())
    assert kinds <= {one.name for one in result.scenarios}
    indexed = verify_schedules(program_of(block), kernels, seed=1)
    assert indexed.passed, indexed.reason


@pytest.mark.parametrize("name", REAL_SIZES)
def test_reduced_sizes_fit_together(name: str, tester: FloatTester) -> None:
    kernels = REAL_SIZES[name]
    small = reduced_kernels(kernels, largest_tile=16, whole=32)
    whole = {axis: size for block, _ in kernels for axis, size in block.sizes.items()}
    sizes = {axis: size for block, _ in small for axis, size in block.sizes.items()}
    for (block, schedule), (little, reduced) in zip(kernels, small, strict=True):
        assert {axis: sizes[axis] for axis in little.sizes} == little.sizes
        for (axis, _), (_, tile) in zip(schedule.grid, reduced.grid, strict=True):
            if dict(schedule.grid)[axis] < block.sizes[axis]:
                assert tile < little.sizes[axis]
    assert all(2 <= sizes[axis] <= whole[axis] for axis in sizes if whole[axis] > 1)
    original = {"attention": g.attention(2, 256, 4096, 64), "rms_norm_linear": g.rms_norm_linear(2, 4096, 6144)}
    if name in original:
        program = program_of(original[name])
        program = resize(program, program_sizes(program, small))
        result = tester.test_kernel(lower_kernels(small), program)
        assert result.passed, result.reason


# What a wrong combining kernel would look like


def _parts(name: str, unfinished: Unfinished | None = None) -> tuple[KernelSource, KernelSource]:
    """Both kernels, the second one lowered as if the first had said something else."""
    (first, one), (second, two) = CASES[name][1]
    left = lower(first, one, unfinished=True)
    return left, lower(second, two, finishes=left.unfinished if unfinished is None else unfinished)


def _together(parts: tuple[KernelSource, KernelSource]) -> KernelSource:
    inputs, outputs = borders(parts)
    outputs = tuple(tensor for tensor in outputs if tensor.name == "out")
    launcher = launcher_text(parts[0].name, parts)
    kept = launcher.rsplit("return ", 1)[0] + "return out"
    jit = "\n\n\n".join(part.jit for part in parts)
    return replace(parts[0], jit=jit, inputs=inputs, outputs=outputs, launcher=kept, parts=parts)


def test_sums_that_are_not_rescaled_are_rejected(tester: FloatTester) -> None:
    left, _ = _parts("attention")
    storage = left.unfinished.storage
    parts = _parts("attention", Unfinished(storage=storage))
    assert "exp2" not in parts[1].jit
    result = result_of(tester, "attention", _together(parts))
    assert not result.passed
    assert "is wrong by" in (result.reason or "")


@pytest.mark.parametrize("kept", ["acc_parts", "row_sum_parts"])
def test_one_sum_rescaled_and_the_other_not_is_no_softmax(kept: str) -> None:
    left, _ = _parts("attention")
    degrees = {kept: left.unfinished.degrees[kept]}
    with pytest.raises(Rejected, match="no softmax"):
        _parts("attention", replace(left.unfinished, degrees=degrees))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("KV_SPLIT=4, BLOCK_Q=4", "KV_SPLIT=2, BLOCK_Q=4"),  # parts dropped
        ("p_max_ptr + offs_kv_split[:, None] * B * Q", "p_max_ptr + offs_kv_split[:, None] * Q"),  # other rows' maxima
        ("tl.sum(row_sum_parts * weight, axis=0)", "tl.sum(row_sum_parts, axis=0)"),  # not rescaled
        ("+ pid_kv_split * KV_PART * D", "+ pid_kv_split * D"),  # parts that overlap
        ("(2, 4, 2)", "(2, 3, 2)"),  # a part that nobody computes
    ],
)
def test_spoiled_text_is_rejected(old: str, new: str, tester: FloatTester) -> None:
    right = source("attention")
    assert old in right.standalone()
    wrong = replace(right, jit=right.jit.replace(old, new), launcher=right.launcher.replace(old, new))
    assert not result_of(tester, "attention", wrong).passed


def test_parts_of_a_row_that_are_masked_altogether_count_for_nothing(tester: FloatTester) -> None:
    """Attention over the first 40 keys, as attention over 128 of which the others are masked with -inf."""
    for looped in (True, False):
        first = grid(("q", 16), ("kv_split", 1), ("b", 1), **({"kv_part": 16} if looped else {}))
        kernels = split(g.attention(1, 16, 128, 32, bias=True), "kv", 4, first, grid(("q", 4), ("b", 1)), looped=looped)
        text = lower_kernels(kernels).standalone() + (
            "\n\ndef launch_masked(query, key, value):\n"
            "    more = torch.ones((1, 88, 32), dtype=key.dtype, device=key.device)\n"
            "    mask = torch.zeros((16, 128), dtype=torch.float32, device=key.device)\n"
            "    mask[:, 40:] = float('-inf')\n"
            "    return launch_attention(query, torch.cat([key, more], 1), torch.cat([value, more], 1), mask)\n"
        )
        program = program_of(g.attention(1, 16, 40, 32))
        result = tester.test(text, "launch_masked", program, ["query", "key", "value"], ["out"])
        assert result.passed, result.reason


# The text


@pytest.mark.parametrize("name", REAL_SIZES)
def test_text_of_both_kernels(name: str, snapshot: SnapshotAssertion) -> None:
    text = lower_kernels(REAL_SIZES[name]).standalone()
    assert text == snapshot(extension_class=PythonFile)
    compile(text, name, "exec")
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", REAL_SIZES)
def test_both_kernels_compile(name: str, target: str) -> None:
    device = TARGETS[target]
    compiled = compile_for(lower_kernels(REAL_SIZES[name]), device.capability)
    assert 0 < compiled.shared_bytes <= device.shared
    assert compiled.ptx.count(f".target {target}") == 2
    assert compiled.registers is None or 8 <= compiled.registers <= 255
    assert compiled.spilled in (None, 0)


def test_what_is_handed_over_stays_inside() -> None:
    both = source("attention")
    assert [tensor.name for tensor in both.inputs] == ["query", "key", "value"]
    assert [tensor.name for tensor in both.outputs] == ["out"]
    first, second = both.parts
    handed = {tensor.name: tensor for tensor in first.outputs}
    assert handed.keys() == {"acc_parts", "row_sum_parts", "p_max"}
    assert {tensor.dtype for tensor in handed.values()} == {"f32"}
    assert [tensor.name for tensor in second.inputs] == list(handed)
    assert first.unfinished.degrees == {"acc_parts": {"p_max": 1.0}, "row_sum_parts": {"p_max": 1.0}}
    assert second.unfinished == Unfinished(storage=second.unfinished.storage)
    assert both.launcher.count("torch.empty") == 4


def test_an_output_without_a_grid_axis_is_stored_once() -> None:
    """The rows' norms do not depend on the columns that blocks differ in."""
    first, _ = source("rms_norm_linear").parts
    assert "if pid_n == 0:" in first.jit


def test_a_softmax_on_its_own_is_still_checked() -> None:
    (first, schedule), _ = CASES["attention"][1]
    with pytest.raises(Rejected, match="is stored"):
        lower(first, schedule)


def test_a_product_after_the_sums_keeps_the_programs_precision() -> None:
    """lora: the small product of the second kernel takes 16-bit operands, though its sums come from float32."""
    _, second = source("lora").parts
    assert "tl.float16" in second.jit
    assert "input_precision" not in second.jit
