"""A kernel that was not tested on a GPU compares itself with PyTorch there before it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mugraph.codegen.edit import apply_files
from mugraph.codegen.module import module_text
from mugraph.codegen.plan import KernelStep, RegionPlan

CPU = torch.device("cpu")
HERE = ("NVIDIA H200", "3.6.0")


@pytest.fixture
def kernels(gated_file, maker, source, part, load, on_this_machine, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    found = load(gated_file).kernels
    on_this_machine(found)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index=None: HERE[0])
    monkeypatch.setattr(found.triton, "__version__", HERE[1])
    return found


def test_right_kernels_agree(kernels: ModuleType) -> None:
    state = torch.get_rng_state()
    assert kernels._agrees("gated", CPU)
    assert torch.equal(torch.get_rng_state(), state)  # the user's random numbers are left alone


@pytest.mark.parametrize("spoil", [lambda out: out * 1.1, lambda out: out * float("nan"), lambda out: out.roll(1, 0)])
def test_wrong_ones_do_not(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, spoil) -> None:
    right = kernels.launch_gate
    monkeypatch.setattr(kernels, "launch_gate", lambda *tensors: spoil(right(*tensors)))
    assert not kernels._agrees("gated", CPU)


def test_one_that_does_not_compile_is_not_used(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("out of resources: shared memory")

    monkeypatch.setattr(kernels, "launch_gate", launch)
    with pytest.warns(UserWarning, match="shared memory"):
        assert not kernels._agrees("gated", CPU)


def test_tried_once(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(kernels, "_agrees", lambda name, device: not tried.append(name))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert kernels._right_here("gated", "cuda", 0)
    assert kernels._right_here("gated", "cuda", 0)
    assert tried == ["gated"]


def test_what_is_wrong_is_said_and_stays_out(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_agrees", lambda name, device: False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    with pytest.warns(UserWarning, match=r"gated: compiled by triton 3\.6\.0 for NVIDIA H200, it is wrong"):
        assert not kernels._right_here("gated", "cuda", 0)
    assert not kernels._right_here("gated", "cuda", 0)


def test_during_a_capture_nothing_is_tried(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_agrees", lambda name, device: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert not kernels._right_here("gated", "cuda", 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert kernels._right_here("gated", "cuda", 0)


def checked_on(plan: RegionPlan, device: str) -> RegionPlan:
    steps = tuple(
        replace(s, verdict=replace(s.verdict, float_device=device, versions={"triton": HERE[1]}))
        if isinstance(s, KernelStep)
        else s
        for s in plan.steps
    )
    return replace(plan, steps=steps)


@pytest.mark.parametrize(("device", "known"), [("NVIDIA H200", True), ("NVIDIA H100", False), ("interpreter", False)])
def test_the_place_of_the_test_is_trusted(maker, source, part, device: str, known: bool) -> None:
    plan = checked_on(maker.plan(source, part), device)
    text = module_text([plan], maker.kernels, original_path=Path("gated.py"))
    assert (repr(HERE) in text) == known
