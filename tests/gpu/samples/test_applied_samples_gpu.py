"""Every sample with its kernels applied, on the GPU they were made for: they run, and they are right."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mugraph.edit.module.carried import sealed
from mugraph.plans.plan import KernelStep
from torch import nn

from tests.samples.applied import FILES, AppliedSample, Target, applied, found, targets

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(600),
]

MULTIPLE, PEAK = 3.0, 4.0


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def sample(request: pytest.FixtureRequest) -> AppliedSample:
    return applied(found(request.param, "auto", 4.0, most=2), "auto")


@pytest.fixture
def launched(sample: AppliedSample, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that ran, however they were reached: eagerly or through their operator. Launches that
    earlier tests had prepared are made anew: prepared ones go by what is not noted here."""
    log: list[str] = []
    for entry in entries(sample):
        entry.prepared.clear()
        entry.tried.clear()
        entry.now.clear()
    for region in sample.kernels._regions:  # what was written anew launches what was prepared
        monkeypatch.setattr(sample.kernels, f"_{region}_run", sample.kernels._run_of(region))
    for name in kernel_names(sample):
        launch = getattr(sample.kernels, f"launch_{name}")

        def noted(*tensors: torch.Tensor, name: str = name, launch: Callable = launch) -> object:
            log.append(name)
            return launch(*tensors)

        monkeypatch.setattr(sample.kernels, f"launch_{name}", noted)
    return log


def kernel_names(sample: AppliedSample) -> list[str]:
    steps = [step for plan in sample.plans for step in plan.steps]
    return [step.kernel.name for step in steps if isinstance(step, KernelStep)]


def entries(sample: AppliedSample) -> list[Any]:
    """What regions call in place of their kernels' launchers."""
    found = [value for value in vars(sample.kernels).values() if hasattr(value, "prepared")]
    assert found
    return found


def given(target: Target) -> dict[str, torch.Tensor]:
    """Normal values; large matrices are weights, and scaled like them so that nothing overflows."""
    generator, made = torch.Generator("cuda").manual_seed(0), dict[str, torch.Tensor]()
    for name, tensor in target.parameters.items():
        scale = tensor.shape[-2] ** -0.5 if tensor.dim() > 1 and min(tensor.shape[-2:]) >= 256 else 1.0
        made[name] = (torch.randn(tensor.shape, generator=generator, device="cuda") * scale).to(tensor.dtype)
    return made


def pair(sample: AppliedSample, target: Target) -> tuple[Callable, Callable]:
    """The edited callable and the original, with the same parameters."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        edited, original = target.make(sample.edited), target.make(sample.original)
    if isinstance(edited, nn.Module) and isinstance(original, nn.Module):
        original.load_state_dict(edited.state_dict())
    return edited, original


def exact(original: Callable, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The original in double precision, on the same numbers."""
    wide = {name: tensor.double() for name, tensor in inputs.items()}
    if not isinstance(original, nn.Module):
        return original(**wide)
    original.double()
    try:
        return original(**wide)
    finally:
        original.half()


def agrees(got: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor) -> None:
    """The float rule: no further from the exact result than a small multiple of what PyTorch is in that precision."""
    assert got.isfinite().all()
    error, own = got.double() - reference, eager.double() - reference
    scale = reference.square().mean().sqrt()
    mean, own_mean = (float(e.square().mean().sqrt() / scale) for e in (error, own))
    peak, own_peak = (float(e.abs().max() / scale) for e in (error, own))
    slack = torch.finfo(got.dtype).eps  # the rounding of the result itself, where PyTorch happens to be exact
    assert mean <= MULTIPLE * own_mean + slack, f"{mean:.2e}, PyTorch {own_mean:.2e}"
    assert peak <= MULTIPLE * own_peak + PEAK * slack, f"{peak:.2e}, PyTorch {own_peak:.2e}"


@pytest.mark.parametrize("way", ["eager", "inductor"])
def test_agrees_at_the_shapes_it_was_made_for(way: str, sample: AppliedSample, launched: list[str]) -> None:
    found = targets(sample)
    assert found, f"nothing of {sample.path.name} was replaced"
    for target in found:
        edited, original = pair(sample, target)
        inputs = given(target)
        kept = {name: tensor.clone() for name, tensor in inputs.items()}
        if way == "inductor":
            torch.compiler.reset()
            run = torch.compile(edited, fullgraph=True)
        else:
            run = edited
        with torch.no_grad():
            expected = original(**inputs)
            launched.clear()
            got = run(**inputs)
            torch.cuda.synchronize()
            assert sorted(launched) == sorted(target.kernel_names), target.name
            assert (got.shape, got.stride(), got.dtype) == (expected.shape, expected.stride(), expected.dtype)
            agrees(got, expected, exact(original, inputs))
            torch.testing.assert_close(run(**inputs), got, rtol=0, atol=0)
        for name, tensor in inputs.items():
            assert torch.equal(tensor, kept[name]), f"{target.name} wrote to {name}"


def test_elsewhere_the_original_runs(sample: AppliedSample, launched: list[str]) -> None:
    """Gradients wanted; more rows than the kernels were made for."""
    for target in targets(sample):
        edited, original = pair(sample, target)
        mine = {name: tensor.requires_grad_() for name, tensor in given(target).items()}
        other = {name: tensor.detach().clone().requires_grad_() for name, tensor in mine.items()}
        edited(**mine).float().sum().backward()
        original(**other).float().sum().backward()
        for name in mine:
            torch.testing.assert_close(mine[name].grad, other[name].grad, equal_nan=True)
        with torch.autocast("cuda", torch.bfloat16), torch.no_grad():
            torch.testing.assert_close(edited(**mine), original(**other), equal_nan=True)
    assert launched == []


def untested(sample: AppliedSample, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the kernels had been made without a GPU."""
    cases = {name: (*case[:2], None, *case[3:]) for name, case in sample.kernels._CASES.items()}
    monkeypatch.setattr(sample.kernels, "_CASES", cases)
    monkeypatch.setattr(sample.kernels, "_right", {})
    # Tensors like those of earlier tests were found to fit, and objects with them.
    monkeypatch.setattr(sample.kernels, "_fitted", {})
    monkeypatch.setattr(sample.kernels, "_fitted_in_c", {})
    for name, before in (("known", sample.kernels._unknown), ("done", sample.kernels._nothing)):
        for region in sample.kernels._PATHS:
            if hasattr(sample.kernels, f"_{region}_{name}"):
                monkeypatch.setattr(sample.kernels, f"_{region}_{name}", before)


@pytest.mark.parametrize("way", ["eager", "inductor"])
def test_first_use_compares_with_pytorch(
    way: str, sample: AppliedSample, launched: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = targets(sample)[0]
    edited, original = pair(sample, target)
    inputs = given(target)
    untested(sample, monkeypatch)
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    run = torch.compile(edited, fullgraph=True) if way == "inductor" else edited
    with torch.no_grad():
        got = run(**inputs)
        assert sample.kernels._right[target.plan.name, 0] is True
        assert sorted(launched) == sorted(target.kernel_names)
        agrees(got, original(**inputs), exact(original, inputs))


def test_a_kernel_the_compiler_spoils_is_not_used(
    sample: AppliedSample, launched: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What its process of its own runs gives something else."""
    target = targets(sample)[0]
    edited, original = pair(sample, target)
    inputs = given(target)
    untested(sample, monkeypatch)
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path))
    spoiled = tmp_path / "spoiled.py"
    launcher = re.compile(r"(\ndef launch_(?:(?!\ndef ).)*\n    return )(\w+)\n", re.DOTALL)
    module = Path(str(sample.kernels.__file__))
    text, count = launcher.subn(r"\1\2 * 1.5\n", module.read_text())
    assert count > 0
    spoiled.write_text(sealed(text))  # an edited file is not used at all
    for beside in module.parent.glob("mugraph_runtime_*.py"):
        shutil.copy(beside, tmp_path)
    monkeypatch.setattr(sample.kernels, "__file__", str(spoiled))
    with torch.no_grad(), pytest.warns(UserWarning, match="WRONG"):
        torch.testing.assert_close(edited(**inputs), original(**inputs), rtol=0, atol=0)
    assert launched == []
