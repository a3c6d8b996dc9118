"""Softmax and norms by PyTorch's kernels beside generated ones: offered wherever a part is one, chosen by the
estimate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Candidate, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.optimizer.nodes import LIBRARY
from mugraph.search import Limits
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs.libraries import beside_libraries
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram
from mugraph.sizes.smaller import smaller
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_topologies

from tests.engine.ops.harness import lower_region, record

H100 = TARGETS["h100"]
Made = Callable[..., torch.Tensor]
LIMITS = Limits(seconds=5.0)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def rms_norm(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:])


def program_of(function: Made, **shapes: tuple[int, ...]) -> TensorProgram:
    given = {name: torch.empty(shape, dtype=torch.float16, device="meta") for name, shape in shapes.items()}
    return lower_region(record(function, given)).program


def name_of(kernel: Candidate) -> str:
    call = library_call(kernel.block) if kernel.schedule.library else None
    return call.function.rsplit(".", 1)[-1] if call is not None else ""


@pytest.mark.parametrize("function", [softmax, rms_norm, layer_norm])
def test_a_part_has_both_and_the_estimate_orders_them(function: Made) -> None:
    solved = Solver(H100, LIMITS, lambda: False).solve(program_of(function, x=(4096, 1024))).candidates
    names = [name_of(one) for one in solved]
    assert names.count(function.__name__) == 1
    assert names.count("") == len(names) - 1 > 0
    assert [one.estimate_us for one in solved] == sorted(one.estimate_us for one in solved)
    assert names[0] == ""  # as fast as the memory, and without an end between two launches


@pytest.mark.parametrize("function", [softmax, rms_norm])
def test_of_rows_that_no_thread_block_holds_there_is_the_librarys(function: Made) -> None:
    solved = Solver(H100, LIMITS, lambda: False).solve(program_of(function, x=(64, 131072))).candidates
    assert [name_of(one) for one in solved] == [function.__name__]


def of_a_product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1)


def test_a_search_finds_it_beside_generated_kernels() -> None:
    program = program_of(of_a_product, x=(64, 512), w=(512, 131072))
    found = [one for graph in KernelGraphs(program, H100, seconds=10.0).run() for one in graph.candidates]
    assert found
    with_it = [one for one in found if [name_of(kernel) for kernel in one.kernels] == ["", "softmax"]]
    assert with_it
    verdict = verify_topologies(program, [(kernel.block, None) for kernel in with_it[0].kernels], seed=2)
    assert verdict.passed, verdict.reason
    # Library kernels alone are what the code runs.
    assert not any(all(kernel.schedule.library for kernel in one.kernels) for one in found)
    early = beside_libraries(program, H100, 4, Solver(H100, LIMITS, lambda: False))
    assert not any(all(kernel.schedule.library for kernel in one.kernels) for one in early)


def normed_and_gated(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x * torch.sigmoid(y), (x.shape[-1],), w, 1e-6) * y


def test_a_norm_that_counts_its_rows_keeps_them_where_kernels_are_tested_at_small_sizes() -> None:
    """A mean of 512 places is no mean of 64."""
    program = program_of(normed_and_gated, x=(256, 512), y=(256, 512), w=(512,))
    stored = in_memory(program)
    (normed,) = (
        op.name
        for op in program.compute_ops
        if op.name not in program.outputs and any("w" in name for name in op.inputs) and len(op.axes) == 2
    )
    (gated,) = (op.inputs[0] for op in program.compute_ops if op.name.endswith("squared"))
    parts = [([gated], []), ([normed], [gated]), (list(program.outputs), [normed])]
    blocks = [as_block(subprogram(program, values, leaves, stored)) for values, leaves in parts]
    generated = Schedule(tuple((axis, 16) for axis in sorted(blocks[0].outputs[0].axes)))
    kernels = [(blocks[0], generated), (blocks[1], LIBRARY), (blocks[2], generated)]
    call = library_call(blocks[1])
    assert call is not None
    assert call.counted
    small, reduced = smaller(program, kernels)
    assert [small.sizes[axis] for axis in call.counted] == [512]
    assert min(small.sizes.values()) < 256
    call = library_call(reduced[1][0])
    assert call is not None
    assert "normalized_shape=(512,), eps=1e-06" in call.shown
    with FloatTester() as tester:
        tested = tester.test_kernel(lower_kernels(reduced), small, seed=3)
    assert tested.passed, tested.reason
