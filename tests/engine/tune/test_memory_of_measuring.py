"""What is measured takes no more memory than is free: inputs are drawn by parts and once, copies that only keep the
cache cold are as many as fit, and what has no place beside others is timed after them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mugraph.too_little_memory import is_of_memory
from mugraph.tune import timing
from mugraph.tune.against import against_peers
from mugraph.tune.device_errors import is_fatal, one_line
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import Applied, InputSpec, Subject
from mugraph.tune.process import ChildProcess
from mugraph.tune.rotation import rotation
from mugraph.tune.statistics import Summary

from tests.support.live_memory import LiveMemory

FAKE = (sys.executable, str(Path(__file__).with_name("fake_child.py")))
INPUTS = (InputSpec((4,), (1,), "f16"),)
MIB = 1 << 20


@pytest.fixture
def measurer() -> Iterator[Measurer]:
    with Measurer(lambda: ChildProcess(FAKE)) as found:
        yield found


def subject(name: str) -> Subject:
    return Subject(name, "", "f")


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_an_input_is_drawn_in_parts(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_PART", 1 << 12)
    spec = InputSpec((1 << 18,), (1,), dtype, scale=0.5)
    with LiveMemory() as memory:
        tensor = timing.make_input(spec, torch.Generator().manual_seed(0))
    assert memory.most_bytes <= tensor.nbytes + 3 * 4 * (1 << 12)
    assert 0.45 < float(tensor.float().std()) < 0.55
    halves = tensor[: 1 << 12], tensor[1 << 12 : 1 << 13]
    assert not torch.equal(*halves)


def test_inputs_without_a_sign_and_without_elements() -> None:
    generator = torch.Generator().manual_seed(0)
    assert (timing.make_input(InputSpec((64,), (1,), "f32", positive=True), generator) > 0).all()
    assert timing.make_input(InputSpec((0, 4), (4, 1), "f32"), generator).shape == (0, 4)


def test_inputs_are_made_once_and_gone_before_others_are() -> None:
    sets = timing.Sets("cpu")
    one, other = (InputSpec((rows, 1 << 16), (1 << 16, 1), "f32") for rows in (16, 17))
    with LiveMemory() as memory:
        first = sets.of((one,), 2, 0)
        assert sets.of((one,), 2, 0) is first
        del first
        sets.of((other,), 2, 0)
    assert memory.most_bytes < 2 * 17 * (1 << 18) + timing._PART  # pyright: ignore[reportPrivateUsage]


def test_there_is_room_for_what_is_there_and_else_for_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "free_bytes", lambda: 100 * MIB)
    sets, spec = timing.Sets("cpu"), InputSpec((MIB,), (1,), "f32")
    assert sets.room((spec,), 0) == 50 * MIB
    sets.of((spec,), 3, 0)
    assert sets.room((spec,), 0) == 12 * MIB, "what is there is as good as it was"
    assert sets.room((INPUTS[0],), 0) == 50 * MIB


@pytest.mark.parametrize("set_mib", [1, 7, 60, 500, 1500, 4000])
@pytest.mark.parametrize("room_mib", [1, 100, 1000, 3000, 1 << 20])
def test_copies_fit_and_the_cache_is_cold_with_any_number(set_mib: int, room_mib: int) -> None:
    l2 = 50 * MIB
    plan = rotation(set_mib * MIB, l2, room_mib * MIB)
    assert plan.copies == 1 or plan.copies * set_mib <= room_mib
    assert plan.launches >= plan.copies >= 1
    if not plan.flush:
        assert plan.copies * set_mib * MIB > 4 * l2
    else:
        assert plan.launches == plan.copies, "what is overwritten before a replay is read once in it"
    if plan.copies * set_mib * 2 < room_mib:
        assert plan == rotation(set_mib * MIB, l2), "where there is room, nothing changes"


def test_what_has_no_memory_beside_others_is_timed_after_them(measurer: Measurer) -> None:
    found = measurer.compare([subject("a_3"), subject("large_7"), subject("endless_1"), subject("b_4")], INPUTS, 5)
    times = {name: one.median_us for name, one in found.items() if isinstance(one, Summary)}
    assert times == {"a_3": 3.0, "large_7": 7.0, "b_4": 4.0}
    refused = found["endless_1"]
    assert isinstance(refused, Refused)
    assert "too little memory" in refused.reason


def test_what_was_kept_for_later_makes_room(measurer: Measurer) -> None:
    assert measurer.keep(subject("kept_5"), INPUTS)
    found = measurer.compare([subject("kept_5"), subject("large_7")], INPUTS, 5)
    assert isinstance(found["large_7"], Summary)
    assert not measurer.is_kept(subject("kept_5"))


def applied(text: str = "") -> Applied:
    return Applied("model.py", text, "model_mugraph", "", "f", "fits", "f", {})


@pytest.mark.parametrize("text", ["", "die"])
def test_the_kernels_are_entered_when_they_are_timed_alone(measurer: Measurer, text: str) -> None:
    ours = subject("large_7")
    found = measurer.compare_called([subject("eager_9"), ours], INPUTS, "large_7", applied(text), rounds=5)
    assert found.alone == ("large_7",)
    called = found.called["large_7"]
    assert isinstance(called, Summary)
    assert called.median_us == (75.0 if not text else 70.0), "with the guards, where they could be built"
    assert (found.not_entered is None) is (not text)
    assert isinstance(found.device["eager_9"], Summary)


def test_digits_are_compared_on_the_programs_own_tensors_all_the_same(measurer: Measurer) -> None:
    eager, ours = subject("eager_9"), subject("large_7")
    measured = against_peers(
        ours, eager, INPUTS, measurer, applied=applied("further"), names=["eager"], on_its_own=True
    )
    assert "on the program's own tensors" in (measured.reason or "")


def test_it_is_said_what_was_timed_alone(measurer: Measurer) -> None:
    measured = against_peers(subject("large_7"), subject("eager_9"), INPUTS, measurer, names=["eager"])
    assert "no memory for large_7 beside the others" in measured.method
    assert measured.on_device.us == 7.0


def test_a_device_that_others_have_filled_is_a_reason() -> None:
    """The process cannot begin there."""
    with Measurer(lambda: ChildProcess((*FAKE, "refuse"))) as measurer:
        measured = against_peers(subject("a_3"), subject("eager_9"), INPUTS, measurer)
    assert measured.on_device.us is None
    assert "did not start" in (measured.reason or "")


def test_what_an_error_of_memory_says() -> None:
    class OutOfMemoryError(RuntimeError): ...

    text = (
        "CUDA out of memory. Tried to allocate 14.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 7.48 GiB is "
        "free. Process 1910 has 7.67 GiB memory in use. Process 1909 has 612.00 MiB memory in use."
    )
    error = OutOfMemoryError(text)
    said = "there was too little memory: 14.00 GiB more were asked for, 7.48 GiB were free"
    assert (one_line(error), is_of_memory(error), is_fatal(error)) == (said, True, False)
    assert one_line(MemoryError()) == "there was too little memory"
    assert one_line(ValueError("no")) == "ValueError: no"
