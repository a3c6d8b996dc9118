"""A kernel that was not tested on a GPU compares itself with PyTorch there before it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mugraph.edit.apply import apply_files
from mugraph.edit.module.carried import sealed
from mugraph.edit.module.file import module_text
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.plans.scales import input_scales

CPU = torch.device("cpu")
HERE = ("NVIDIA H200", "3.6.0")


@pytest.fixture
def kernels(gated_file, maker, source, part, load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The kernel module of an edited file; processes it starts use Triton's interpreter."""
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    found = load(gated_file).kernels
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index=None: HERE[0])
    monkeypatch.setattr(found.triton, "__version__", HERE[1])
    return found


def spoil(kernels: ModuleType, old: str, new: str) -> None:
    """In the file, which is what a process of its own reads."""
    path = Path(str(kernels.__file__))
    text = path.read_text()
    assert old in text
    path.write_text(sealed(text.replace(old, new)))


def test_right_kernels_agree(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    state = torch.get_rng_state()
    assert kernels._agreed("gated", CPU, HERE)
    assert torch.equal(torch.get_rng_state(), state)  # the user's random numbers are left alone
    monkeypatch.setattr(kernels.sys, "executable", "/nowhere")
    assert kernels._agreed("gated", CPU, HERE)  # known on this machine
    with pytest.warns(UserWarning, match="could not be tried"):
        assert not kernels._agreed("gated", CPU, (HERE[0], "3.7.0"))  # with another compiler it is not


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("return gated * 1.1", "off by 1.00e-01 .* WRONG"),
        ("return gated * float('nan')", "WRONG"),
        ("return gated.roll(1, 0)", "WRONG"),
        ("raise RuntimeError('out of resources: shared memory')", "out of resources: shared memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it died"),
    ],
)
def test_wrong_ones_do_not(kernels: ModuleType, new: str, said: str) -> None:
    spoil(kernels, "return gated\n", f"{new}\n")
    with pytest.warns(
        UserWarning, match=rf"gated: its kernel is not used on NVIDIA H200 with triton 3\.6\.0: .*{said}"
    ):
        assert not kernels._agreed("gated", CPU, HERE)


def test_the_limit_is_that_of_the_precision(
    kernels: ModuleType, on_this_machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_this_machine(kernels)
    ((error, trouble),) = kernels._errors("gated", CPU)
    assert trouble is None
    assert 0 < error < 1e-4
    launch = kernels.launch_gate
    monkeypatch.setattr(kernels, "launch_gate", lambda product, u: launch(product, u) * (1 + 1e-4))
    ((error, trouble),) = kernels._errors("gated", CPU)
    assert trouble is not None
    assert error < 2e-4


def test_matrices_that_only_pytorch_reads_are_small(maker, source, part) -> None:
    """A chain of products of standard normal weights leaves the range of half precision, and says nothing."""
    plan: RegionPlan = maker.plan(source, part)
    values, found = plan.region.values, input_scales(plan)
    scales = {values[live_in.value].shape: found[live_in.value] for live_in in plan.region.live_ins}
    assert scales == {(4, 8): 8**-0.5, (8, 16): 16**-0.5, (4, 16): 1.0}


def test_tried_once(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(kernels, "_agreed", lambda name, device, here: tried.append(name) or False)
    assert not kernels._right_here("gated", "cuda", 0)
    assert not kernels._right_here("gated", "cuda", 0)
    assert tried == ["gated"]


def test_an_interpreter_is_not_tried(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_agreed", lambda name, device, here: False)
    assert kernels._right_here("gated", "cpu", None)


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
