"""Search units that differ in names alone are one, and what was found for one reads well under the other's names."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mugraph.codegen.lower import lower_kernels
from mugraph.events import Done, Event, RegionResult, Searching, UnitResult
from mugraph.ir.block import Candidate
from mugraph.ir.region import SearchUnit
from mugraph.ir.transforms.renaming import canonical
from mugraph.memory.said import renamed_reason, renamed_words
from mugraph.pipeline import Options, run, working
from mugraph.search import Limits, topologies
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.limits import never
from mugraph.solve.recalling import Memory
from mugraph.solve.search_unit import solve
from mugraph.solve.telling import Place
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect
from mugraph.units.search_units import single_units
from mugraph.verification.verifier import verify_topologies

PRELUDE = "import torch\nimport torch.nn.functional as F\n\n"
ONE = """
# mugraph: x=f16[16, 4096], w=f16[4096, 256]
def one(x, w):
    scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return scaled @ w
"""
OTHER = """
# mugraph: tokens=f16[16, 4096], head=f16[4096, 256]
def other(tokens, head):
    root = torch.rsqrt(tokens.pow(2).mean(-1, keepdim=True) + 1e-6)
    logits = (tokens * root) @ head
    return logits
"""


@pytest.fixture
def units(tmp_path: Path) -> Callable[[str], list[SearchUnit]]:
    def make(source: str) -> list[SearchUnit]:
        path = tmp_path / "program.py"
        path.write_text(PRELUDE + source)
        trace = trace_file(path)
        assert trace.errors == ()
        return [unit for region in trace.regions for unit in single_units(region) if isinstance(unit, SearchUnit)]

    return make


def names_of(candidate: Candidate) -> set[str]:
    return {
        name
        for kernel in candidate.kernels
        for name in (
            *kernel.block.sizes,
            *(tensor.name for tensor in kernel.block.tensors),
            *(op.name for op in kernel.block.ops),
        )
    }


def test_names_do_not_count(units: Callable[[str], list[SearchUnit]]) -> None:
    one, other = units(ONE + OTHER)
    assert one.program != other.program
    assert canonical(one.program)[0] == canonical(other.program)[0]


CHANGED = {
    "another size": OTHER.replace("256", "512"),
    "another constant": OTHER.replace("1e-6", "1e-5"),
    "another type": OTHER.replace("f16", "bf16"),
    "another layout": OTHER.replace("head=f16[4096, 256]", "head=f16[256, 4096]").replace("@ head", "@ head.T"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_everything_else_counts(units: Callable[[str], list[SearchUnit]], name: str) -> None:
    one, other = units(ONE + CHANGED[name])
    assert canonical(one.program)[0] != canonical(other.program)[0]


def test_which_names_are_equal_counts(units: Callable[[str], list[SearchUnit]]) -> None:
    (gram,) = units("# mugraph: x=f16[64, 64]\ndef gram(x):\n    return x @ x.T\n")
    (product,) = units("# mugraph: x=f16[64, 64], y=f16[64, 64]\ndef product(x, y):\n    return x @ y.T\n")
    assert canonical(gram.program)[0] != canonical(product.program)[0]


def test_candidates_move_to_the_other_names_and_back(units: Callable[[str], list[SearchUnit]]) -> None:
    """With all that the search named itself: parts of values, axes split across the grid, what kernels hand over."""
    one, other = units(ONE + OTHER)
    of_one, of_other = canonical(one.program)[1], canonical(other.program)[1]
    blocks = [found.block for found in topologies(one.program, Limits(seconds=2.0))]
    candidates = kernel_candidates(blocks, TARGETS["sm_90"])
    several = next(candidate for candidate in candidates if len(candidate.kernels) > 1)
    for candidate in (candidates[0], several):
        moved = of_other.inverse.candidate(of_one.candidate(candidate))
        assert not names_of(moved) & {"x", "w", "scaled"}
        assert verify_topologies(other.program, [(kernel.block, None) for kernel in moved.kernels]).passed
        lower_kernels([(kernel.block, kernel.schedule) for kernel in moved.kernels], target=TARGETS["sm_90"])
        assert of_one.inverse.candidate(of_one.candidate(candidate)) == candidate


def test_words_and_reasons_move_too(units: Callable[[str], list[SearchUnit]]) -> None:
    (one,) = units(ONE)
    names = canonical(one.program)[1]
    axis = next(iter(one.program.sizes))
    assert renamed_words(f"grid {axis}/64: 4 blocks; for {axis}: 4 × 128; 4 warps", names) == (
        f"grid {names.axes[axis]}/64: 4 blocks; for {names.axes[axis]}: 4 × 128; 4 warps"
    )
    output = next(iter(one.program.outputs.values())).name
    assert (
        renamed_reason(f"no kernel is right: {output} holds NaN", names)
        == f"no kernel is right: {names.tensors[output]} holds NaN"
    )


def test_what_was_solved_for_another_unit_is_kept_under_its_names(units: Callable[[str], list[SearchUnit]]) -> None:
    """Of several units with one program a process solves one; any of them may be the first to ask for it."""
    one, other = units(ONE + OTHER)
    device, options = detect(), Options(target="h100", budget_s=0.5, measure=False)
    place = Place(0, 0, 1, "one", "one_fused", False)
    with working(device, TARGETS["sm_90"], options) as tools:
        found = result_of(solve(one, place, tools, options.bounds, never))
        memory = Memory(tools, device, None, Path("program.py"))
        key, names = memory.key(other, options.bounds, None)
        memory.keep(found, key)
        known = memory.recalled(other, replace(place, name="other_fused"), key, names)
    assert known is not None
    assert known.solution is not None
    assert {tensor.name for tensor in known.solution.source.inputs} == set(other.inputs) == {"tokens", "head"}


def result_of(steps: Generator[Event, None, UnitResult]) -> UnitResult:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def searched(path: Path, **changes: Any) -> tuple[set[tuple[int, int]], tuple[RegionResult, ...]]:
    """Which units (of which regions) were searched, and what became of all of them."""
    options = replace(Options(target="h100", budget_s=0.5, measure=False), **changes)
    begun: set[tuple[int, int]] = set()
    for event in run(path, options=options):
        if isinstance(event, Searching):
            begun.add((event.region, event.unit))
        if isinstance(event, Done):
            return begun, event.result.regions
    raise AssertionError("the pipeline ended without a result")


def test_a_unit_is_solved_once_in_a_run(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PRELUDE + ONE + OTHER)
    begun, (one, other) = searched(path)
    assert begun == {(0, 0)}
    (first,), (second,) = one.units, other.units
    assert first.solution is not None
    assert second.solution is not None
    assert not second.from_store
    assert second.search.total_s == 0.0
    assert second.search.topologies == first.search.topologies
    assert second.solution.verdict.passed
    (source,) = other.sources.values()
    assert "tokens_ptr" in source.standalone()
    assert "x_ptr" not in source.standalone()
