"""Kernels that copy the operand of a convolution to another order in memory, in place of PyTorch's call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import cast

import pytest
import torch
import torch.nn.functional as F
from mugraph.events import Solution
from mugraph.ir.calls import operands
from mugraph.ir.region import Part, PlainCalls, Region, SearchUnit
from mugraph.search.direct import DirectSearch
from mugraph.search.topologies.limits import NotSearchable
from mugraph.solve.planning import steps_of
from mugraph.units import chains
from mugraph.units.layouts import plain_calls_of
from mugraph.units.region_units import cut_region
from mugraph.verification.verdict import Verdict

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import run, to_leave

INPUTS = {"x": randn(2, 4, 9, 6), "w": randn(4, 4, 3, 3, seed=1), "b": randn(4, seed=2)}
Function = Callable[..., torch.Tensor]
SOME = cast(Solution, SimpleNamespace(kernel=None, verdict=Verdict(True), then=()))
"""A kernel: which one it is no step looks at."""


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LEAST_TURNED", 0)


def alone(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.conv_transpose2d(x, w, b) * 2)


def after_a_kernel(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What the second convolution reads, a kernel writes channels last."""
    first = torch.relu(F.conv_transpose2d(x, w, b) * 3)
    return torch.relu(F.conv_transpose2d(first, w, b) * 3)


def read_twice(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What the second convolution reads, plain PyTorch reads as well: it is copied."""
    first = torch.relu(F.conv_transpose2d(x, w, b) * 3)
    wide = torch.sort(first, dim=-1).values.sum(dim=-1, keepdim=True)
    return torch.relu(F.conv_transpose2d(first, w, b, padding=1) * wide)


FUNCTIONS = (alone, after_a_kernel, read_twice)


def cut(fn: Function) -> tuple[Region, tuple[Part, ...], list[SearchUnit]]:
    region, parts = cut_region(region := record(fn, INPUTS), to_leave(region))
    return region, parts, [part for part in parts if isinstance(part, SearchUnit)]


def copies(region: Region, units: Sequence[SearchUnit]) -> list[SearchUnit]:
    return [unit for unit in units if plain_calls_of(region, unit)]


@pytest.mark.parametrize(("fn", "count"), [(alone, 1), (after_a_kernel, 1), (read_twice, 2)])
def test_a_copy_is_a_search_unit_of_its_own(fn: Function, count: int) -> None:
    region, parts, units = cut(fn)
    found = copies(region, units)
    assert len(found) == count
    for unit in found:
        assert unit.program.is_copy
        (block,) = [one.block for one in DirectSearch(unit.program).run()]
        assert [op.kind.name for op in block.ops] == ["load", "store"]
    (out,) = [live.value for live in region.live_outs]
    torch.testing.assert_close(run(region, parts, INPUTS)[out].float(), fn(**INPUTS), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_whatever_has_a_kernel_the_plan_computes_what_the_code_does(fn: Function) -> None:
    region, parts, units = cut(fn)
    expected = fn(**INPUTS)
    (out,) = [live.value for live in region.live_outs]
    for chosen in product((True, False), repeat=len(units)):
        kept = {id(unit): SOME for unit, has in zip(units, chosen, strict=True) if has}
        steps = tuple(step if isinstance(step, PlainCalls) else step.unit for step in steps_of(region, parts, kept))
        env = run(region, steps, INPUTS)
        torch.testing.assert_close(env[out].float(), expected, rtol=1e-4, atol=1e-5)
        assert env[out].is_contiguous()
        kernels = [step for step in steps if isinstance(step, SearchUnit)]
        readers = {value for kernel in kernels for value in kernel.inputs.values()}
        for copy in copies(region, kernels):
            (made,) = copy.outputs.values()
            turned = next(call for step in steps for call in step.calls if made in operands(call))
            assert readers.intersection(turned.outputs), "nothing is turned for what no kernel reads"


def test_what_lies_as_it_is_asked_for_is_no_copy() -> None:
    region, _, units = cut(alone)
    (unit,) = copies(region, units)
    (value, out), (tensor,) = next(iter(unit.program.outputs.items())), unit.program.tensors
    same = replace(unit.program, outputs={value: replace(tensor, name=out.name)})
    assert not same.is_copy
    with pytest.raises(NotSearchable, match="nothing to search"):
        DirectSearch(same)
