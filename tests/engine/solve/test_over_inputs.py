"""Plans whose kernels write over what they read, and plans that copy because they may not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from mugraph.codegen.over_inputs import over_inputs, writes_over
from mugraph.events import Done, RegionResult
from mugraph.ir.region import Call, PlainCalls
from mugraph.pipeline import Options, run
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.trace.regions.replay import replay
from mugraph.triton_text.same_places import BARRIER

PROGRAM = """\
import torch


# mugraph: p=f32[96, 32], m=f32[96, 32], g=f32[96, 32]
@torch.no_grad()
def step(p, m, g):
    m.mul_(0.9).add_(g)
    p.sub_(m * 0.1)


# mugraph: p=bf16[50, 7], g=f32[50, 7]
@torch.no_grad()
def of_two_types(p, g):
    p.mul_(0.5).add_(g.to(torch.bfloat16)).tanh_()


# mugraph: p=f32[96, 32], g=f32[96, 32]
@torch.no_grad()
def rows(p, g):
    p.sub_(torch.softmax(p * g, dim=-1))


# mugraph: p=f32[32, 32], g=f32[32, 32]
@torch.no_grad()
def multiplied(p, g):
    p.sub_(torch.tanh(p @ g) * 0.5)


# mugraph: p=f32[96, 32], g=f32[96, 32], scale=f32[96, 1]
@torch.no_grad()
def and_another(p, g, scale):
    p.mul_(scale).add_(g)
    return p * scale + g


# mugraph: x=f32[96, 32], count=i64[1]
@torch.no_grad()
def counted(x, count):
    count.add_(1)
    return torch.softmax(x * 2.0, dim=-1)


# mugraph: x=f32[96, 32], count=i64[1], last=i64[1]
@torch.no_grad()
def told_of(x, count, last):
    last.add_(count)
    count.add_(1)
    last.add_(count)
    return torch.softmax(x * 2.0, dim=-1)
"""
OVER = {"step": {"p", "m"}, "of_two_types": {"p"}}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, RegionResult]:
    path = tmp_path_factory.mktemp("over") / "steps.py"
    path.write_text(PROGRAM)
    options = Options(target="h100", budget_s=1.0, measure=False)
    result = next(event.result for event in run(path, options=options) if isinstance(event, Done))
    assert result.errors == ()
    return {region.region.function: region for region in result.regions}


def plan_of(result: RegionResult) -> RegionPlan:
    assert result.plan is not None, result.reason
    return result.plan


def written(plan: RegionPlan) -> set[str]:
    named = {live.value: live.expression for live in plan.region.live_ins}
    return {named[one.stored] for one in writes_over(plan)}


@pytest.mark.parametrize("name", OVER)
def test_they_write_over_what_they_read(found: Mapping[str, RegionResult], name: str) -> None:
    plan = plan_of(found[name])
    assert written(plan) == OVER[name]
    assert not [step for step in plan.steps if isinstance(step, PlainCalls)]
    for source in found[name].sources.values():
        assert "torch.empty" not in source.launcher
        assert "return" not in source.launcher
        assert source.jit.count(BARRIER) == 1


def test_what_others_read_is_copied(found: Mapping[str, RegionResult]) -> None:
    """A block would read what another one has written already."""
    plan = plan_of(found["multiplied"])
    assert written(plan) == set()
    assert [c.target for s in plan.steps if isinstance(s, PlainCalls) for c in s.calls].count("Tensor.copy_") == 1
    assert all("torch.empty" in source.launcher for source in found["multiplied"].sources.values())


def test_what_is_read_once_more_is_read_as_it_was(found: Mapping[str, RegionResult]) -> None:
    """Rows that are read whole may be written over, where a block has them to itself."""
    for name in ("rows", "and_another"):
        plan = plan_of(found[name])
        copies = [c for s in plan.steps if isinstance(s, PlainCalls) for c in s.calls if c.target == "Tensor.copy_"]
        assert len(copies) + len(written(plan)) == 1


def test_it_is_done_once(found: Mapping[str, RegionResult]) -> None:
    plan, sources = plan_of(found["step"]), found["step"].sources
    again, same = over_inputs(plan, sources)
    assert again == plan
    assert same == sources
    assert [step.over for step in again.steps if isinstance(step, KernelStep)]


def plain(plan: RegionPlan) -> list[Call]:
    return [call for step in plan.steps if isinstance(step, PlainCalls) for call in step.calls]


def test_what_pytorch_writes_is_written_at_once(found: Mapping[str, RegionResult]) -> None:
    assert [call.target for call in plain(plan_of(found["counted"]))] == ["Tensor.add_"]


def test_but_for_what_others_read(found: Mapping[str, RegionResult]) -> None:
    plan = plan_of(found["told_of"])
    assert "Tensor.add_" not in [call.target for call in plain(plan)]
    held = {live.value: torch.tensor([5]) for live in plan.region.live_ins if live.expression != "x"}
    names = {live.value: live.expression for live in plan.region.live_ins}
    replay(plain(plan), held)
    assert {names[value]: tensor.item() for value, tensor in held.items()} == {"last": 16, "count": 6}
