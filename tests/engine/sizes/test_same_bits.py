"""Kernels that are found, and whether they have the same bits as PyTorch: what is said, and what is so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.events import Done, RegionResult
from mugraph.ir.kernel import KernelSource
from mugraph.ir.region import Named, SearchUnit
from mugraph.pipeline import Options, run_trace
from mugraph.sizes.same_bits import same_bits
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect, resolve
from mugraph.verification.float_results import FloatResult, FloatScenario
from mugraph.verification.verdict import Verdict

SOURCE = """import torch


# mugraph: x=f16[256, 1024], y=f16[256, 1024]
def added_relu(x, y):
    return torch.relu(x + y)


# mugraph: x=f32[512, 1024], y=f32[512, 1024]
def largest(x, y):
    return (y - x).amax(-1)


# mugraph: x=bf16[256, 512], y=bf16[256, 512]
def larger(x, y):
    return torch.maximum(-x, x + y).amax(-1)


# mugraph: x=f16[256, 1024], y=f16[256, 1024]
def rounded_between(x, y):
    return (x + y) * x


# mugraph: x=f16[256, 1024], y=f16[256, 1024]
def by_exp(x, y):
    return torch.sigmoid(x + y) * y


# mugraph: x=f32[512, 1024], y=f32[512, 1024]
def summed(x, y):
    return (x * y).sum(-1)
"""
SAME = ("added_relu", "largest", "larger")
OTHER = {"rounded_between": "by its text", "by_exp": "sigmoid", "summed": "sum"}

_COMPARE = """
import sys
import torch
from mugraph.verification.interpreter import patch_interpreter

patch_interpreter()
sys.path.insert(0, {folder!r})
import functions
import {module} as kernels

generator = torch.Generator().manual_seed({seed})
info = torch.finfo(torch.{dtype})
infinity = float("inf")
special = [0.0, info.tiny, info.tiny / 4, -info.tiny / 2, info.max, -info.max, info.max / 2, infinity, -infinity]
for scale in (1.0, 1e-3, 1e3, "any"):
    tensors = []
    for number, shape in enumerate({shapes!r}):
        if scale == "any":
            bits = torch.randint(-(1 << 31), (1 << 31) - 1, shape, generator=generator).to(torch.int32)
            made = bits.view(torch.float32) if info.bits == 32 else bits.to(torch.int16).view(torch.{dtype})
            made = torch.where(made.isnan(), 1.0, made)
        else:
            made = (torch.randn(shape, generator=generator) * scale).to(torch.{dtype})
        flat = made.view(-1)
        at = torch.randperm(len(flat), generator=generator)[: 8 * len(special)]
        flat[at] = torch.tensor(special * 8, dtype=made.dtype)
        tensors.append(made)
    wanted = getattr(functions, {name!r})(*tensors)
    given = dict(zip({parameters!r}, tensors))
    found = kernels.launch_{kernel}(*(given[name].reshape(shape) for name, shape in {inputs!r})).reshape(wanted.shape)
    assert found.dtype == wanted.dtype
    same = (found == wanted) | (found.isnan() & wanted.isnan())
    assert same.all(), (scale, int((~same).sum()))
    print(scale, found.numel())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bits")
    (made / "functions.py").write_text(SOURCE)
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> Mapping[str, RegionResult]:
    return _found(folder / "functions.py", exact=False)


def _found(path: Path, *, exact: bool) -> Mapping[str, RegionResult]:
    options = Options(target="h100", budget_s=2.0, measure=False, exact=exact)
    device = detect()
    events = run_trace(trace_file(path), device, resolve("h100", device), options, None)
    result = next(event.result for event in events if isinstance(event, Done))
    return {one.region.function: one for one in result.regions}


def _kernel(result: RegionResult) -> tuple[SearchUnit, KernelSource, Verdict]:
    (unit,) = [one for one in result.units if one.solution is not None]
    assert unit.solution is not None
    return unit.unit, unit.solution.source, unit.solution.verdict


@pytest.mark.parametrize("name", SAME)
def test_kernels_with_the_same_bits_say_so(found: Mapping[str, RegionResult], name: str) -> None:
    bits = _kernel(found[name])[2].same_bits
    assert bits is not None
    assert bits.holds, bits.words


@pytest.mark.parametrize("name", OTHER)
def test_kernels_that_round_elsewhere_say_why(found: Mapping[str, RegionResult], name: str) -> None:
    bits = _kernel(found[name])[2].same_bits
    if bits is None:  # it is not expected to pay, and was not tested
        unit, source, _ = _kernel(found[name])
        bits = same_bits(unit, source, None)
    assert not bits.holds
    assert OTHER[name] in bits.why


@pytest.mark.parametrize("name", SAME)
def test_they_are_the_bits_of_pytorch(found: Mapping[str, RegionResult], folder: Path, name: str) -> None:
    """Numbers of every size, of any bits, zeros, denormals, the largest and infinities."""
    unit, source, _ = _kernel(found[name])
    (folder / f"kernel_{name}.py").write_text(source.standalone())
    tensors = {unit.inputs[t.name]: t for t in source.inputs}
    names = {one.value: one.expression for one in found[name].region.live_ins}
    program = unit.program
    script = _COMPARE.format(
        folder=str(folder),
        module=f"kernel_{name}",
        seed=7,
        dtype={"f16": "float16", "bf16": "bfloat16", "f32": "float32"}[program.tensors[0].dtype],
        shapes=[found[name].region.values[one.value].shape for one in sorted(found[name].region.live_ins, key=_name)],
        parameters=[one.expression for one in sorted(found[name].region.live_ins, key=_name)],
        name=name,
        kernel=source.name,
        inputs=[(names[value], tensor.shape(program.sizes)) for value, tensor in tensors.items()],
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert len(ran.stdout.splitlines()) == 4


def _name(one: Named) -> str:
    return one.expression


def test_a_float_test_that_differs_takes_the_word_back(found: Mapping[str, RegionResult]) -> None:
    unit, source, _ = _kernel(found["largest"])
    right = FloatScenario("normal", True, 0.0, 0.0, 0.0, same_bits=True, same_but_zeros=True)
    wrong = replace(right, name="rows", same_bits=False, same_but_zeros=False)
    assert same_bits(unit, source, FloatResult(True, None, 0.0, 0.0, "interpreter", (right, right))).holds
    said = same_bits(unit, source, FloatResult(True, None, 0.0, 0.0, "interpreter", (right, wrong)))
    assert not said.holds
    assert "on rows inputs a bit was another" in said.why
    assert not same_bits(unit, source, FloatResult(True, None)).holds


def test_exact_offers_only_these(folder: Path) -> None:
    results = _found(folder / "functions.py", exact=True)
    for name in SAME:
        assert _kernel(results[name])[2].same_bits is not None
    for name in OTHER:
        offered = [one.solution for one in results[name].units if one.solution is not None and one.solution.tested]
        assert not offered, name
