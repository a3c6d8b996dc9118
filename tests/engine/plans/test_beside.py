"""Which kernels of a plan could run side by side: whatever the plan is, all runs after what it needs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.calls import Call, Position, Range, Ref, TensorInfo, is_inplace, operands
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import PlainCalls, Region, SearchUnit
from mugraph.plans.beside import Step, Together, beside
from mugraph.plans.plan import KernelStep
from mugraph.verification.verdict import Verdict

HERE = Range(Position(0, 0), Position(0, 1))
INFO = TensorInfo((4, 4), (4, 1), "f16")


def kernel(name: str, reads: Sequence[int], makes: int) -> KernelStep:
    unit = SearchUnit(TensorProgram(name, {}, (), ()), {f"in_{value}": value for value in reads}, {"out": makes}, ())
    return KernelStep(unit, GraphKernel(name, BlockGraph(name, {}, (), ()), Schedule(())), Verdict(True))


def call(target: str, reads: Sequence[int], makes: int) -> PlainCalls:
    return PlainCalls((Call(target, tuple(map(Ref, reads)), {}, (makes,), HERE),))


def region(count: int) -> Region:
    return Region("f", HERE, "statements", "", values=dict.fromkeys(range(count), INFO))


def arranged(steps: Sequence[Step], count: int = 20) -> list[list[str]]:
    """Names of kernels and calls, as they would be launched."""
    found: list[list[str]] = []
    for one in beside(region(count), steps, lambda step: "large" not in step.kernel.name):
        if isinstance(one, Together):
            found.append([step.kernel.name for step in one.steps])
        elif isinstance(one, KernelStep):
            found.append([one.kernel.name])
        else:
            found += [[made.target] for made in one.calls]
    return found


def test_neighbours() -> None:
    steps = [kernel("q", [0], 1), kernel("k", [0], 2), kernel("v", [0], 3), kernel("all", [1, 2, 3], 4)]
    assert arranged(steps) == [["q", "k", "v"], ["all"]]


def test_calls_between() -> None:
    """A view that a kernel reads moves before the launch; what reads the first one's result, behind it."""
    steps = [
        kernel("q", [0], 2),
        call("Tensor.view", [2], 3),
        call("Tensor.t", [1], 4),
        call("torch.sort", [3], 5),
        kernel("k", [0, 4], 6),
        kernel("late", [5], 7),
    ]
    assert arranged(steps) == [["Tensor.t"], ["q", "k"], ["Tensor.view"], ["torch.sort"], ["late"]]


def test_nothing_moves_over_a_call_that_writes_in_place() -> None:
    steps = [kernel("q", [0], 2), call("Tensor.add_", [0], 3), kernel("k", [1], 4), kernel("v", [1], 5)]
    assert arranged(steps) == [["q"], ["Tensor.add_"], ["k", "v"]]


def test_a_kernel_that_needs_a_call_of_pytorchs_waits_for_it() -> None:
    steps = [kernel("q", [0], 2), call("torch.sort", [0], 3), kernel("k", [3], 4)]
    assert arranged(steps) == [["q"], ["torch.sort"], ["k"]]
    assert arranged([kernel("q", [0], 2), kernel("large", [0], 3), kernel("k", [3], 4)]) == [["q"], ["large"], ["k"]]


@st.composite
def plans(draw: st.DrawFn) -> list[Step]:
    """Two values are there from the start; each step makes one."""
    steps: list[Step] = []
    for at in range(draw(st.integers(1, 9))):
        makes = at + 2
        reads = draw(st.lists(st.integers(0, makes - 1), min_size=1, max_size=2, unique=True))
        what = draw(st.sampled_from(["kernel", "kernel", "large", "Tensor.view", "torch.sort", "Tensor.add_"]))
        is_call = "." in what
        steps.append(call(what, reads, makes) if is_call else kernel(f"{what}_{at}", reads, makes))
    return steps


@given(plans())
def test_all_runs_after_what_it_needs(steps: list[Step]) -> None:
    found = beside(region(20), steps, lambda step: "large" not in step.kernel.name)
    known = {0, 1}
    order: list[object] = []
    for one in found:
        if isinstance(one, Together):
            assert len(one.steps) > 1
            for step in one.steps:
                assert set(step.unit.inputs.values()) <= known  # before any of them
                assert "large" not in step.kernel.name
            known |= {value for step in one.steps for value in step.unit.outputs.values()}
            order += one.steps
        elif isinstance(one, KernelStep):
            assert set(one.unit.inputs.values()) <= known
            known |= set(one.unit.outputs.values())
            order.append(one)
        else:
            for made in one.calls:
                assert set(operands(made)) <= known
                known |= set(made.outputs)
                order.append(made)
    every = [step if isinstance(step, KernelStep) else step.calls[0] for step in steps]
    assert sorted(map(id, order)) == sorted(map(id, every))
    # What is before a call that writes in place, and what is behind it, stays there.
    for at, one in enumerate(every):
        if isinstance(one, Call) and is_inplace(one):
            place = next(number for number, other in enumerate(order) if other is one)
            assert {id(other) for other in order[:place]} == {id(other) for other in every[:at]}
