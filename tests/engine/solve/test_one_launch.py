"""Kernels of a plan as one launch: which can be, that they are the same function, and when they are kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from mugraph.checking.again import Here, check_again, modules_in
from mugraph.codegen import one_grid
from mugraph.codegen.lower import lower_kernels
from mugraph.edit.apply import apply_files
from mugraph.edit.module.carried import carried, graph_of
from mugraph.edit.module.evidence import evidence
from mugraph.edit.revert import revert_file
from mugraph.events import RegionResult
from mugraph.ir.json import mugraph_from_json, mugraph_to_json
from mugraph.ir.region import Trace
from mugraph.ir.spec import check_mugraph
from mugraph.ir.text import format_mugraph, parse_mugraph
from mugraph.optimizer.nodes import scheduled
from mugraph.plans.origins import origins
from mugraph.reports.text import beside_words
from mugraph.solve.launch_verdict import verified_as_one
from mugraph.solve.one_launch import NOT_YET, one_launch, with_verdicts
from mugraph.solve.overlapping import BESIDE, USUAL
from mugraph.store import Store
from mugraph.targets import TARGETS
from mugraph.verification.document import verify_mugraph
from mugraph.verification.float_test import FloatTester

from tests.engine.solve.machine import TARGET
from tests.engine.solve.timed import Side, kernels_of, plan_of, solved_when_timed

TEXT = """
import torch
import torch.nn.functional as F


# mugraph: x=f16[1, 256], g=f16[256], a=f16[512, 256], b=f16[128, 256], c=f16[64, 256]
def three(x, g, a, b, c):
    x = torch.sort(x, dim=-1)[0].contiguous()
    first = F.linear(F.rms_norm(x, (256,), g, 1e-6), a).view(1, 8, 64).transpose(0, 1)
    second = F.silu(F.linear(x, b))
    third = F.linear(x, c) * 2
    return torch.sort(first)[0], torch.sort(second)[0], torch.sort(third)[0]


# mugraph: x=f16[8, 256], y=f16[16, 128], g=f16[256], h=f16[128]
def norms(x, y, g, h):
    x, y = torch.sort(x, dim=-1)[0].contiguous(), torch.sort(y, dim=-1)[0].contiguous()
    return torch.sort(F.rms_norm(x, (256,), g, 1e-6) * 3)[0], torch.sort(F.rms_norm(y, (128,), h, 1e-5) + 1)[0]


# mugraph: x=f16[1, 256], a=f16[128, 256], y=f16[4, 512]
def beside(x, a, y):
    made = torch.sort(F.silu(F.linear(x, a)))[0]
    return made, torch.sort(torch.tanh(y) * torch.exp(y))[0]


# mugraph: x=f16[1, 256], a=f16[256, 256], b=f16[256, 256], g=f16[256]
def after(x, a, b, g):
    x = F.rms_norm(x, (256,), g, 1e-6) @ a
    return F.rms_norm(x, (256,), g, 1e-6) @ b


# mugraph: x=f16[1, 256], y=f16[1, 256], a=f16[128, 256], b=f16[64, 256]
def written(x, y, a, b):
    first = torch.sort(F.silu(F.linear(x, a)))[0]
    y[:, :1] = x[:, :1]
    return first, torch.sort(F.silu(F.linear(y, b)))[0]
"""
TOGETHER = {"three": 3, "norms": 2, "beside": 2}


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


solved = partial(solved_when_timed, name="three")


@pytest.fixture(scope="module")
def usual(trace: Trace) -> Mapping[str, RegionResult]:
    return {name: solved(trace, Side(us={}), name=name) for name in (*TOGETHER, "after", "written")}


@pytest.mark.parametrize("name", TOGETHER)
def test_it_is_the_same_function(name: str, usual: Mapping[str, RegionResult], tester: FloatTester) -> None:
    """As the user's code is, in Triton's interpreter."""
    plan = plan_of(usual[name])
    written = one_launch(plan, usual[name].sources, TARGET)[0]
    (step,) = kernels_of(written.plan)
    assert step.verdict is NOT_YET
    assert step.one_launch == (tuple(kernel.name for kernel in step.kernels),)
    assert len(step.kernels) == TOGETHER[name]
    source = written.sources[step.kernel.name]
    assert written.sources.keys() == {step.kernel.name}
    assert len(source.joined) == TOGETHER[name]
    verdict = verified_as_one(step, source, written.made_of[step.kernel.name], tester, TARGET)
    assert verdict.passed, verdict.reason
    assert None not in (verdict.text, verdict.indexing, verdict.proof, verdict.max_rel_error, verdict.lowering)
    made = with_verdicts(written.plan, {step.kernel.name: verdict})
    assert f"one launch of {source.joined[0].name} (" in evidence(made, written.sources, None)
    assert verify_mugraph(step.unit.program, graph_of(step), verdict.seed).passed  # as `mugraph check` does


@pytest.mark.parametrize("name", TOGETHER)
def test_the_graph_says_it(name: str, usual: Mapping[str, RegionResult]) -> None:
    written = one_launch(plan_of(usual[name]), usual[name].sources, TARGET)[0]
    graph = written.plan.mugraph
    assert check_mugraph(graph) == []
    (group,) = graph.one_launch
    assert len(group) == TOGETHER[name]
    assert parse_mugraph(format_mugraph(graph)) == graph
    assert mugraph_from_json(mugraph_to_json(graph)) == graph
    assert graph.beside(group[0]) == group[1:]
    places = origins(written.plan)  # in the user's code
    assert all(any(places[kernel].ops.values()) for kernel in group)


@pytest.mark.parametrize("name", ["after", "written"])
def test_what_depends_on_another_one_is_a_launch_of_its_own(name: str, usual: Mapping[str, RegionResult]) -> None:
    """`written`: a call between them writes in place."""
    assert len(kernels_of(plan_of(usual[name]))) == 2
    assert one_launch(plan_of(usual[name]), usual[name].sources, TARGET) == []


def test_kernels_of_one_step(usual: Mapping[str, RegionResult], tester: FloatTester) -> None:
    """That one source launches one after the other, without need."""
    result = usual["three"]
    written = one_launch(plan_of(result), result.sources, TARGET)[0]
    (joint,) = kernels_of(written.plan)
    program, old = joint.unit.program, written.made_of[joint.kernel.name]
    apart = replace(joint, one_launch=(), verdict=old[0])
    source = lower_kernels([*map(scheduled, joint.kernels)], program=program)
    assert [part.name for part in source.parts] == [kernel.name for kernel in joint.kernels]
    steps = tuple(apart if step is joint else step for step in written.plan.steps)
    plan = replace(written.plan, steps=steps)
    again = one_launch(plan, {source.name: source}, TARGET)[0]
    (step,) = kernels_of(again.plan)
    assert step.unit is joint.unit
    assert step.one_launch == joint.one_launch
    assert again.sources[source.name].joined
    verdict = verified_as_one(step, again.sources[source.name], again.made_of[source.name], tester, TARGET)
    assert verdict.passed, verdict.reason


def test_large_kernels_stay_apart(usual: Mapping[str, RegionResult]) -> None:
    """One that takes long gains nothing."""
    slow = replace(TARGET, bandwidth=1.0)
    assert one_launch(plan_of(usual["three"]), usual["three"].sources, slow) == []


@pytest.mark.parametrize(
    ("us", "kept"),
    [
        ({BESIDE: 8.0}, BESIDE),
        ({BESIDE: 9.0, f"{BESIDE}, loading": 8.0}, BESIDE),
        ({BESIDE: 9.99}, None),
        ({BESIDE: 11.0}, None),
    ],
)
def test_the_fastest_is_kept(us: dict[str, float], kept: str | None, trace: Trace) -> None:
    machine = Side(us=us)
    result = solved(trace, machine)
    plan = plan_of(result)
    assert machine.timed[0][:1] == [USUAL]
    assert BESIDE in machine.timed[0]
    assert len(kernels_of(plan)) == (1 if kept else 3)
    words = "three_2, three_3 and three_4 are one launch, side by side"
    assert beside_words(result) == (words if kept else "")
    assert all(step.verdict.passed for step in kernels_of(plan))
    assert bool(plan.mugraph.one_launch) == (kept is not None)


@pytest.mark.parametrize("why", ["its results", "another result", "its text"])
def test_one_that_is_wrong_is_not_kept(why: str, trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "its text":
        ids = one_grid._block_ids  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(one_grid, "_block_ids", lambda kernel, number: ids(kernel, number.split(" ")[0]))  # pyright: ignore
    result = solved(trace, Side(right=why != "its results", agrees=why != "another result"))
    assert len(kernels_of(plan_of(result))) == 3


def test_it_is_measured_once(trace: Trace, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        first = solved(trace, Side(), store=store)
        machine = Side(us={BESIDE: 20.0})
        again = solved(trace, machine, store=store)
    assert not any(USUAL in names for names in machine.timed)
    (one,), (other,) = kernels_of(plan_of(first)), kernels_of(plan_of(again))
    assert first.sources == again.sources
    assert other.verdict.passed
    assert one.one_launch == other.one_launch


def test_without_measuring_nothing_changes(trace: Trace) -> None:
    machine = Side()
    result = solved(trace, machine, measured=False)
    assert not any(USUAL in names for names in machine.timed)
    assert result.plan is not None
    assert not result.plan.mugraph.one_launch


def test_devices_that_start_none_early(trace: Trace) -> None:
    machine = Side()
    result = solved(trace, machine, target=TARGETS["a100"])
    assert machine.timed[0][:2] == [USUAL, BESIDE]
    assert {*machine.timed[0][2:]} <= {f"{BESIDE} (2)"}, "with the warps of another, if it has others"
    assert len(kernels_of(plan_of(result))) == 1
    machine = Side()
    solved(trace, machine, overlap=False)
    assert machine.timed[0][:2] == [USUAL, BESIDE]
    assert {*machine.timed[0][2:]} <= {f"{BESIDE} (2)"}


@pytest.fixture(scope="module")
def applied(usual: Mapping[str, RegionResult], tester: FloatTester, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with the kernels of `three` as one launch."""
    path = tmp_path_factory.mktemp("applied") / "projections.py"
    path.write_text(TEXT)
    result = usual["three"]
    written = one_launch(plan_of(result), result.sources, TARGET)[0]
    (step,) = kernels_of(written.plan)
    name = step.kernel.name
    verdict = verified_as_one(step, written.sources[name], written.made_of[name], tester, TARGET)
    assert verdict.passed, verdict.reason
    apply_files(path, [with_verdicts(written.plan, {name: verdict})], written.sources, target=TARGET)
    return path


def test_the_module_computes_what_pytorch_does(applied: Path, tmp_path: Path) -> None:
    """In Triton's interpreter, and through the user's file."""
    script = (
        "import torch, projections, projections_mugraph as kernels\n"
        "torch.manual_seed(0)\n"
        "given = [torch.randn(*shape).half() for shape in ((1, 256), (256,), (512, 256), (128, 256), (64, 256))]\n"
        "expected = projections.three(*given)\n"
        "kernels._tested_gpu = lambda kind, index: True\n"
        "kernels._right_here = lambda *_: True\n"
        "assert kernels.three_fits(*given)\n"
        "with torch.no_grad():\n"
        "    made = []\n"
        "    run = kernels.three\n"
        "    kernels.three = lambda *given: made.append(1) or run(*given)\n"
        "    found = projections.three(*given)\n"
        "assert made == [1]\n"
        "for one, other in zip(found, expected, strict=True):\n"
        "    torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)\n"
    )
    env = {"TRITON_INTERPRET": "1", "HOME": str(tmp_path), "PATH": ""}
    run = subprocess.run([sys.executable, "-c", script], cwd=applied.parent, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    module = applied.with_name("projections_mugraph.py").read_text()
    assert module.count("[(704, 1, 1)](") == 1
    assert "# three: " in module
    assert "one launch of three_2 (512 blocks), three_3 (128) and three_4 (64), side by side" in " ".join(
        module.replace("\n#", " ").split()
    )


def test_the_module_is_checked_again_and_reverted(applied: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(applied.parent, tmp_path / "copy")
    [(module, record)] = modules_in([folder])
    assert not isinstance(record, str), record
    versions = kernels_versions(module)
    [checked] = check_again(module, record, Here(None, versions))
    assert checked.problems == ()
    [step] = checked.kernels
    assert len(step.graph.kernels) == 3
    assert step.graph.one_launch == (tuple(kernel.name for kernel in step.graph.kernels),)
    revert_file(folder / "projections.py")
    assert (folder / "projections.py").read_text() == TEXT
    assert not module.exists()


def kernels_versions(module: Path) -> Mapping[str, str]:
    """With which the kernels were tested."""
    [steps] = (carried(module.read_text()) or {}).values()
    return steps[0].verdict.versions
