"""A region whose code runs inside another one that is written is left out, and the report says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mugraph.events import RegionResult
from mugraph.ir.ranges import DynamicSize, SizeRange
from mugraph.ir.region import Region
from mugraph.pipeline import improved, with_left_out
from mugraph.plans.covered import covered
from mugraph.plans.plan import RegionPlan
from mugraph.trace.tracer import trace_file

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn


def scaled(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(x * 0.5, dim=-1)


# mugraph: x=f16[8, 32]
class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(32, 32, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = F.silu(self.up(x))

        # a comment inside of the region
        return scaled(gate * x)


# mugraph: x=f16[8, 32]
class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x * 2.0)


# mugraph: x=f16[8, 32]
def apart(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(x * 3.0, dim=-1) + x
"""


def result(region: Region, **of: Any) -> RegionResult:
    nothing: Any = None  # of the plan's graph nothing is asked
    plan = RegionPlan(region.function.lower().replace(".", "_"), region, (), nothing)
    return RegionResult(region, **{"status": "improved", "plan": plan, **of})


def test_the_outer_one_alone_is_written(tmp_path: Path) -> None:
    path = tmp_path / "nested.py"
    path.write_text(PROGRAM)
    regions = trace_file(path).regions
    names = [region.function for region in regions]
    assert names == ["Inner.forward", "Outer.forward", "apart"]
    found = covered(regions)
    assert {names[inner]: outer.function for inner, outer in found.items()} == {"Inner.forward": "Outer.forward"}

    results = [result(region) for region in regions]
    plans, _, _ = improved(results)
    assert [plan.region.function for plan in plans] == ["Outer.forward", "apart"]
    why = "left out: Inner.forward runs inside Outer.forward, whose kernels take its place"
    assert [one.reason for one in with_left_out(results)] == [why, None, None]

    # Where the outer one is not written, or only the inner one is asked for, that one is
    results[1] = result(regions[1], status="no-gain")
    assert [plan.region.function for plan in improved(results)[0]] == ["Inner.forward", "apart"]
    assert all(one.reason is None for one in with_left_out(results))
    assert len(improved(results[:1])[0]) == 1


def test_sizes_that_the_outer_one_leaves_to_it(tmp_path: Path) -> None:
    """The outer one is for one size; where it refuses a call, what runs inside of it is called."""
    path = tmp_path / "nested.py"
    path.write_text(PROGRAM)
    inner, outer, _ = trace_file(path).regions
    ranged = DynamicSize(SizeRange("t", 1, 8))
    of_sizes, outer_of_sizes = replace(inner, dynamic=ranged), replace(outer, dynamic=ranged)
    assert covered([inner, of_sizes, outer]) == {0: outer}
    assert covered([inner, of_sizes, outer_of_sizes]) == {0: outer_of_sizes, 1: outer_of_sizes}


def test_calls_of_other_sizes_than_the_outer_one_has(tmp_path: Path) -> None:
    """Code that runs inside of the outer one is called by itself too, with sizes that the outer one has never."""

    def traced(inner: str, outer: str = "x=f16[8, 32]") -> list[Region]:
        path = tmp_path / "nested.py"
        of_inner, of_outer, end = PROGRAM.split("# mugraph: x=f16[8, 32]\nclass ", 2)
        path.write_text(f"{of_inner}# mugraph: {inner}\nclass {of_outer}# mugraph: {outer}\nclass {end}")
        return list(trace_file(path).regions[:2])

    same, outer = traced("x=f16[8, 32]")
    longer, _ = traced("x=f16[16, 32]")
    deeper, _ = traced("x=f16[1, 8, 32]")
    assert covered([longer, deeper, same, outer]) == {2: outer}
    _, of_sizes = traced("x=f16[8, 32]", "t=2..12, x=f16[t, 32]")
    assert of_sizes.dynamic is not None
    assert covered([longer, same, of_sizes]) == {1: of_sizes}
    alone, _ = traced("x=f16[1, 32]")
    assert covered([alone, of_sizes]) == {}
