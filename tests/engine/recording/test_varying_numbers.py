"""A run that shows a number with one value in all calls leaves it a constant; one with several values varies."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.recording.memory import pictured, recorded_shapes, seen
from mugraph.recording.misfits import misfits, unknown
from mugraph.trace.tracer import trace_file

PROGRAM = """\
import torch


@torch.no_grad()
def step(p, g, rate, decay, count):
    p.mul_(1 - rate * decay).add_(g.sign() / count, alpha=-rate)


class Mean:
    def __init__(self):
        self.count = 0

    @torch.no_grad()
    def update(self, kept, new, most):
        self.count += 1
        kept.lerp_(new * most, 1 / self.count)


if __name__ == "__main__":
    p, mean = torch.ones(16, 32), Mean()
    for at in range({times}):
        step(p, torch.ones(16, 32), {rate}, 0.125, at + 1)
        mean.update(p, torch.ones(16, 32), 0.75)
"""


def test_numbers_that_were_the_same_in_all_calls_are_constants(tmp_path: Path, record: Callable[..., object]) -> None:
    found = traced(tmp_path, record, "0.5 / (at + 1)", 6)
    numbers = ["_number(-rate, p)", "_number(1 - rate * 0.125, p)", "_number(count, p)"]
    assert found["step"] == (["p", "g", *numbers], ["decay == 0.125"])
    assert found["Mean.update"] == (["kept", "new", "_number(1 / self.count, new)"], ["most == 0.75"])


def test_of_one_call_it_is_not_known_what_is_the_same(tmp_path: Path, record: Callable[..., object]) -> None:
    reads, guards = traced(tmp_path, record, "0.5", 1)["step"]
    assert "_number(-rate, p)" in reads
    assert guards == []


def test_a_recorded_call_with_another_number_fits(tmp_path: Path, record: Callable[..., object]) -> None:
    traced(tmp_path, record, "0.5 / (at + 1)", 6)
    path = tmp_path / "program.py"
    text = path.read_text()
    region = next(one for one in trace(path).regions if one.function == "step")
    calls = seen(path, text)["step"]
    assert len(calls) > 1
    assert not any(unknown(region, one, frozenset()) for one in calls)
    assert [why for one in calls for why in misfits(region, one)] == []


STEPS = """\
import torch


class Sampler:
    def __init__(self, count):
        self.levels = torch.linspace(1.0, 0.0, count + 1).view(-1, 1).expand(-1, {width}).contiguous()
        self.at = 0

    @torch.no_grad()
    def step(self, x, noise):
        found = x.softmax(-1) * self.levels[self.at] + noise * self.levels[self.at + 1]
        self.at += 1
        return found


if __name__ == "__main__":
    for count, width in (({count}, 32), ({count} + 3, {other})):
        sampler, x = Sampler(count), torch.ones(16, width)
        sampler.levels = sampler.levels[:, :1].expand(-1, width).contiguous()
        for at in range(count):
            x = sampler.step(x, torch.ones(16, width))
"""


@pytest.mark.parametrize("other", [32, 48])
@pytest.mark.parametrize("count", [1, 5])
def test_rows_at_another_number_in_each_call_fit_them_all(
    count: int, other: int, tmp_path: Path, record: Callable[..., object]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(STEPS.format(count=count, other=other, width=32))
    record(sys.executable, "program.py")
    text = path.read_text()
    region = next(one for one in trace(path).regions if one.status is None)
    rows = {one.expression for one in region.live_ins} - {"x", "noise"}
    assert rows == {"self.levels[self.at]", "self.levels[self.at + 1]"}
    assert region.guards == ()
    calls = seen(path, text)["Sampler.step"]
    assert not any(unknown(region, one, frozenset()) for one in calls)
    width = region.values[region.live_ins[0].value].shape[-1]
    fit = {one.call.arguments["x"]: [*misfits(region, one)] for one in calls}
    assert any(not whys for whys in fit.values())
    for shape, whys in fit.items():
        assert bool(whys) == (f", {width}]" not in shape)
        assert not any("self.at ==" in why for why in whys)


@pytest.mark.parametrize("value", ["0.5", "1e-05", "-2.0"])
def test_numbers_in_all_spellings(value: str, tmp_path: Path, record: Callable[..., object]) -> None:
    reads, guards = traced(tmp_path, record, value, 4)["step"]
    assert f"rate == {value}" in guards
    assert not any("rate" in one for one in reads)


def trace(path: Path):
    text = path.read_text()
    return trace_file(path, recorded_shapes=recorded_shapes(path, text), pictures=pictured(path, text))


def traced(
    folder: Path, record: Callable[..., object], rate: str, times: int
) -> dict[str, tuple[list[str], list[str]]]:
    """Of each function's region, sorted, what it reads and what it is guarded by as far as that is a number."""
    path = folder / "program.py"
    path.write_text(PROGRAM.format(rate=rate, times=times))
    record(sys.executable, "program.py")
    regions = [region for region in trace(path).regions if region.status is None]
    return {
        region.function: (
            sorted((one.expression for one in region.live_ins), key=lambda one: ("_number" in one, one != "p", one)),
            [guard for guard in region.guards if " == " in guard and "(" not in guard],
        )
        for region in regions
    }
