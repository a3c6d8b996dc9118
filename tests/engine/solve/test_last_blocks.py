"""Kernels of a plan that combine their own sums in the same launch: which can be, that they are the same function, and
when they are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.checking.again import Here, check_again, modules_in
from mugraph.edit.apply import apply_files
from mugraph.edit.module.carried import carried, graph_of
from mugraph.edit.module.evidence import evidence
from mugraph.events import RegionResult
from mugraph.ir.drawing import draw_tree
from mugraph.ir.json import mugraph_from_json, mugraph_to_json
from mugraph.ir.region import Trace
from mugraph.ir.spec import check_mugraph
from mugraph.ir.text import format_mugraph, parse_mugraph
from mugraph.ir.text.lines import TextError
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.reports.text import beside_words
from mugraph.solve.last_blocks import last_blocks
from mugraph.solve.launch_verdict import verified_as_one
from mugraph.solve.one_launch import NOT_YET, Written, with_verdicts
from mugraph.solve.overlapping import COMBINED, USUAL
from mugraph.verification.document import verify_mugraph
from mugraph.verification.float_test import FloatTester

from tests.engine.solve.machine import TARGET
from tests.engine.solve.timed import Side, kernels_of, plan_of, solved_when_timed

TEXT = """
import torch
import torch.nn.functional as F


# mugraph: q=f16[1, 4, 32], k=f16[1, 1024, 32], v=f16[1, 1024, 32]
def decode(q, k, v):
    return F.softmax(q @ k.transpose(1, 2) * 32**-0.5, dim=-1) @ v


# mugraph: x=f32[2, 40000], y=f32[2, 40000]
def loss(x, y):
    return (x - y).abs().sum(-1)


# mugraph: x=f16[64, 256], w=f16[256, 256]
def short(x, w):
    return F.silu(x @ w)
"""


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


@pytest.fixture(scope="module")
def usual(trace: Trace) -> Mapping[str, RegionResult]:
    """As the cost model has them."""
    return {name: solved_when_timed(trace, Side(us={}), name, measured=False) for name in ("loss", "short")}


def written_of(result: RegionResult) -> Written:
    assert result.plan is not None
    return last_blocks(result.plan, result.sources, TARGET)[0]


def combined(written: Written) -> KernelStep:
    (step,) = [step for step in kernels_of(written.plan) if step.combined]
    return step


def checked(written: Written, tester: FloatTester) -> RegionPlan:
    """The plan with its verdict."""
    step = combined(written)
    name = step.kernel.name
    verdict = verified_as_one(step, written.sources[name], written.made_of[name], tester, TARGET)
    assert verdict.passed, verdict.reason
    assert None not in (verdict.text, verdict.indexing, verdict.max_rel_error)
    assert verify_mugraph(step.unit.program, graph_of(step), verdict.seed).passed  # as `mugraph check` does
    return with_verdicts(written.plan, {name: verdict})


def test_it_is_the_same_function(usual: Mapping[str, RegionResult], tester: FloatTester) -> None:
    """As the user's code is, in Triton's interpreter."""
    is_the_same_function(usual["loss"], tester)


@pytest.mark.more
def test_so_is_attention(trace: Trace, tester: FloatTester) -> None:
    """Whose sums are relative to maxima."""
    is_the_same_function(solved_when_timed(trace, Side(us={}), "decode", measured=False), tester)


def is_the_same_function(result: RegionResult, tester: FloatTester) -> None:
    plan = result.plan
    assert plan is not None
    assert [len(source.parts) for source in result.sources.values()] == [2]
    written = last_blocks(plan, result.sources, TARGET)[-1]
    step = combined(written)
    assert step.verdict is NOT_YET
    source = written.sources[step.kernel.name]
    assert source.launcher.count("_kernel[") == 1
    made = checked(written, tester)
    assert "combined in the same launch" in " ".join(evidence(made, written.sources, None).replace("\n#", "").split())
    said = beside_words(replace(result, plan=made, sources=written.sources))
    assert said == f"the sums of {step.kernel.name} are combined in the same launch"


def test_the_graph_says_it(usual: Mapping[str, RegionResult]) -> None:
    graph = written_of(usual["loss"]).plan.mugraph
    assert check_mugraph(graph) == []
    ((first, second),) = graph.combined
    text = format_mugraph(graph)
    assert f"\n  combined {first}, {second}\n" in text
    assert parse_mugraph(text) == graph
    assert mugraph_from_json(mugraph_to_json(graph)) == graph
    assert (graph.combines(second), graph.combines(first)) == (first, "")
    assert f"combined in the same launch as {first}" in " ".join(draw_tree(graph, width=200).split())
    with pytest.raises(TextError):
        parse_mugraph(text.replace(f"combined {first}, {second}", f"combined {first}"))
    wrong = check_mugraph(replace(graph, combined=((second, first),)))
    assert any("does not come right after" in one for one in wrong)
    assert any("not all that" in one for one in wrong)
    assert any("is in two launches" in one for one in check_mugraph(replace(graph, combined=2 * graph.combined)))
    assert check_mugraph(replace(graph, combined=((first, "another"),))) != []


def test_what_is_one_kernel_stays_so(usual: Mapping[str, RegionResult]) -> None:
    plan = usual["short"].plan
    assert plan is not None
    assert last_blocks(plan, usual["short"].sources, TARGET) == []


@pytest.mark.parametrize(
    ("us", "kept"), [({COMBINED: 8.0}, True), ({COMBINED: 9.99}, False), ({COMBINED: 11.0}, False)]
)
def test_the_fastest_is_kept(us: dict[str, float], kept: bool, trace: Trace) -> None:
    machine = Side(us=us)
    result = solved_when_timed(trace, machine, "loss")
    plan = plan_of(result)
    assert {USUAL, COMBINED} <= {*machine.timed[0]}
    assert bool(plan.mugraph.combined) == kept
    assert all(step.verdict.passed for step in kernels_of(plan))


@pytest.mark.parametrize("why", ["its results", "another result"])
def test_one_that_is_wrong_is_not_kept(why: str, trace: Trace) -> None:
    machine = Side(us={COMBINED: 8.0}, right=why != "its results", agrees=why != "another result")
    assert not plan_of(solved_when_timed(trace, machine, "loss")).mugraph.combined


def test_without_measuring_nothing_changes(trace: Trace) -> None:
    result = solved_when_timed(trace, Side(us={COMBINED: 1.0}), "loss", measured=False)
    assert result.plan is not None
    assert not result.plan.mugraph.combined


def test_the_module_computes_what_pytorch_does(
    usual: Mapping[str, RegionResult], tester: FloatTester, tmp_path: Path
) -> None:
    """In Triton's interpreter, through the user's file; called again, it finds its counters at 0."""
    path = tmp_path / "losses.py"
    path.write_text(TEXT)
    written = written_of(usual["loss"])
    apply_files(path, [checked(written, tester)], written.sources, target=TARGET)
    script = (
        "import torch, losses, losses_mugraph as kernels\n"
        "torch.manual_seed(0)\n"
        "x, y = torch.randn(2, 40000), torch.randn(2, 40000)\n"
        "expected = losses.loss(x, y)\n"
        "kernels._tested_gpu = lambda kind, index: True\n"
        "kernels._right_here = lambda *_: True\n"
        "kept = {}\n"
        "kernels._counters = lambda count, device: kept.setdefault(count, torch.zeros(count, dtype=torch.int32))\n"
        "run, made = kernels.loss, []\n"
        "kernels.loss = lambda *given: made.append(1) or run(*given)\n"
        "with torch.no_grad():\n"
        "    found = [losses.loss(x, y) for _ in range(2)]\n"
        "assert made == [1, 1]\n"
        "assert len(kept) == 1 and not any(one.any() for one in kept.values())\n"
        "assert torch.equal(*found)\n"
        "torch.testing.assert_close(found[0], expected, rtol=1e-4, atol=1e-4)\n"
    )
    env = {"TRITON_INTERPRET": "1", "HOME": str(tmp_path), "PATH": ""}
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    module = path.with_name("losses_mugraph.py")
    ((again, record),) = modules_in([module])
    (found,) = check_again(again, record, Here(gpu=None, versions={}))
    assert not any("is not the function" in one for one in found.problems)
    assert found.kernels[0].graph.combined
    assert carried(module.read_text()) is not None
