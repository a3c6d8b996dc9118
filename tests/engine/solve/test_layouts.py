"""Convolutions that PyTorch runs, in both orders of memory: where there is a GPU, the faster one is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from mugraph.events import RegionResult
from mugraph.ir.region import PlainCalls, Trace
from mugraph.plans.plan import KernelStep
from mugraph.solve.layouts import other_layouts
from mugraph.tune.measure import Compared
from mugraph.tune.messages import Agreed, Subject

from tests.engine.solve.machine import Machine
from tests.engine.solve.solving import solved

TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[32, 32, 64, 64], w=f32[32, 32, 3, 3], b=f32[32]
def image(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.relu(F.conv_transpose2d(x, w, b) * 2) - 1)


# mugraph: x=f32[128, 8, 128, 128], w=f32[64, 8, 3, 3], b=f32[64]
def picture(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.leaky_relu(F.conv2d(x, w, b) / 2)


# mugraph: x=f32[32, 32, 16, 16, 16], w=f32[32, 32, 3, 3, 3], b=f32[32]
def volume(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.relu(F.conv3d(x, w, b) * 2) - 1)


# mugraph: x=f32[64, 64]
def none(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.relu(x * 2) - 1)
"""


def turns(source: str) -> bool:
    """Does a module turn the operand of a convolution, by a call or by a kernel?"""
    return "memory_format=torch.channels_last" in source or "_copy_ptr" in source


@dataclass
class Layouts(Machine):
    """last_us, usual_us: of a module whose convolution is channels last, and of another. last_differs: as where the
    library has no kernel for the tensor cores in the usual order"""

    last_us: float = 5.0
    usual_us: float = 5.0
    last_differs: bool = False

    def agree(self, *given: object) -> Agreed:
        turned = isinstance(given[0], Subject) and turns(given[0].source)
        differs = self.last_differs and turned
        return Agreed(not differs, 1e-4 if differs else 1e-7, 1e-5)

    def compare_called(
        self, subjects: Sequence[Subject], inputs: object, ours: str, applied: object, **_: object
    ) -> Compared:
        self.compared += subjects
        last = any(turns(one.source) for one in subjects if one.name == ours)
        mine = self.last_us if last else self.usual_us
        found = {
            one.name: replace(self._measured(12.0), median_us=mine if one.name == ours else 12.0) for one in subjects
        }
        return Compared(dict(found), dict(found))


def is_turned(result: RegionResult) -> bool:
    """By a call, or by a kernel in its place."""
    assert result.plan is not None
    steps = [step if isinstance(step, PlainCalls) else step.unit for step in result.plan.steps]
    return any("memory_format" in call.kwargs for step in steps for call in step.calls)


@pytest.mark.parametrize(("last_us", "usual_us"), [(4.0, 6.0), (6.0, 4.0)])
def test_the_faster_of_both_is_kept(trace: Trace, last_us: float, usual_us: float) -> None:
    name = "volume"
    result = solved(trace, name, Layouts(last_us=last_us, usual_us=usual_us))
    assert result.status == "improved", result.reason
    assert is_turned(result) == (last_us < usual_us)
    assert result.timing.optimized_us == 4.0
    assert result.plan is not None
    assert result.plan.name == name, "nothing shows that there was another"
    assert len(result.sources) == sum(isinstance(step, KernelStep) for step in result.plan.steps)


@pytest.mark.parametrize(("last_us", "usual_us"), [(4.0, 6.0), (6.0, 4.0)])
def test_what_is_searched_first_is_what_is_faster_with_pytorchs_convolution(
    trace: Trace, last_us: float, usual_us: float
) -> None:
    """Of three dimensions, of which nothing is known before: each choice is measured, and then the faster one searched
    through."""
    machine = Layouts(last_us=last_us, usual_us=usual_us)
    solved(trace, "volume", machine)
    turned = [turns(one.source) for one in machine.compared if one.name == "mugraph"]
    print(turned)
    assert turned[:2] == [False, True]
    assert turned[2] == (last_us < usual_us)


@pytest.mark.parametrize("name", ["image", "picture"])
def test_in_two_dimensions_channels_last_is_enough_where_it_is_offered(trace: Trace, name: str) -> None:
    machine = Layouts(last_us=6.0, usual_us=4.0)
    result = solved(trace, name, machine)
    assert result.status == "improved", result.reason
    assert is_turned(result)
    assert [one.name for one in machine.compared].count("mugraph") == 1


@pytest.mark.parametrize("name", ["image", "picture"])
def test_one_that_is_not_offered_is_not_kept(trace: Trace, name: str) -> None:
    result = solved(trace, name, Layouts(last_us=20.0, usual_us=10.0))
    assert result.status == "improved", result.reason
    assert not is_turned(result)


@pytest.mark.parametrize("name", ["image", "picture"])
def test_one_that_differs_is_not_kept(trace: Trace, name: str) -> None:
    result = solved(trace, name, Layouts(last_us=4.0, usual_us=10.0, last_differs=True))
    assert result.status == "improved", result.reason
    assert not is_turned(result)


@pytest.mark.parametrize(("name", "turned"), [("image", True), ("picture", False)])
def test_without_a_gpu_the_one_that_is_expected_to_be_faster(trace: Trace, name: str, turned: bool) -> None:
    """The picture's convolution has few channels: by estimate a kernel of ours, in TF32 as well, is faster yet."""
    assert is_turned(solved(trace, name, None)) == turned


def test_without_a_gpu_nothing_is_turned_in_three_dimensions(trace: Trace) -> None:
    """Of which nothing was measured; and torch.compile is expected to be as fast as a kernel of ours."""
    result = solved(trace, "volume", None)
    assert result.status == "no-gain"
    assert result.plan is None or not is_turned(result)


def test_where_there_is_no_choice_nothing_is_measured_twice(trace: Trace) -> None:
    machine = Layouts()
    solved(trace, "none", machine)
    assert [one.name for one in machine.compared].count("mugraph") == 1
    assert [other_layouts(region) for region in trace.regions] == [set(), set(), {3}, None]
