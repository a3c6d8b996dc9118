"""A region whose reduction is split over two kernels, from the file to the edit: document, verdict, report, store."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from mugraph import pipeline
from mugraph.cli import run
from mugraph.events import RegionDone
from mugraph.ir.json import mugraph_from_json
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.spec import check_mugraph
from mugraph.options import Options
from mugraph.plans.kernel_graph import kernel_graph
from mugraph.store import Store

from tests.engine.commands.documents import optimized

TEXT = """\
import torch


# mugraph: q=f16[1, 16, 32], k=f16[1, 4096, 32], v=f16[1, 4096, 32]
def decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) * 0.125
    return torch.softmax(scores, dim=-1) @ v


# mugraph: q=f16[1, 16, 32], k=f16[1, 4096, 32], v=f16[1, 4096, 32]
def twice(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    once = torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1) @ v
    again = torch.cumprod(once, dim=-1)
    return torch.softmax(again @ k.transpose(-1, -2) * 0.125, dim=-1) @ v
"""

pytestmark = pytest.mark.usefixtures("own_cache")


def test_both_kernels_are_in_the_document(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (region,) = optimized(capfd, f"{model}:decode")["regions"]
    assert region["status"] == "improved"
    assert region["kernels"] == 2
    graph = mugraph_from_json(region["mugraph"])
    assert check_mugraph(graph) == []
    first, second = graph.kernels
    assert isinstance(first, GraphKernel)
    assert isinstance(second, GraphKernel)
    assert region["block_ops"] == len(first.block.block_ops) + len(second.block.block_ops)
    assert sorted(graph.inputs) == ["k", "q", "v"]
    assert len(graph.outputs) == 1
    handed = {tensor.name for tensor in first.block.outputs}
    assert handed == {tensor.name for tensor in second.block.inputs}
    assert handed <= {tensor.name for tensor in graph.tensors}
    source = region["kernel_source"]
    assert source.count("@triton.jit") == 2
    assert source.count("def launch_") == 1
    compile(source, "kernels.py", "exec")
    verification = region["verification"]
    assert verification["passed"] is True
    assert all(sizes[f"{axis}_split"] >= 2 for sizes in verification["sizes"] for axis in ("r", "n", "k", "t")
               if f"{axis}_split" in sizes)  # fmt: skip
    assert 0 < verification["max_rel_error"] < 1e-2


def test_a_second_run_gives_the_same_kernels(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = (optimized(capfd, f"{model}:decode")["regions"][0] for _ in range(2))
    for key in ("kernels", "kernel_source", "mugraph", "verification", "block_ops"):
        assert first[key] == second[key]


def test_the_document_can_be_verified_and_spoiled_ones_fail(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    document = optimized(capfd, f"{model}:decode")
    found = tmp_path / "found.json"
    found.write_text(json.dumps(document))
    assert run(["verify", "--ugraph", str(found), f"{model}:decode", "--json"]) == 0
    (graph,) = json.loads(capfd.readouterr().out)["graphs"]
    assert graph["passed"] is True
    # The combining kernel leaves out the division.
    for op in document["regions"][0]["mugraph"]["kernels"][1]["block"]["ops"]:
        if op["kind"] == "div":
            op["kind"] = "mul"
    found.write_text(json.dumps(document))
    assert run(["verify", "--ugraph", str(found), f"{model}:decode", "--json"]) == 1
    (graph,) = json.loads(capfd.readouterr().out)["graphs"]
    assert graph["passed"] is False


def test_the_report_shows_both(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", f"{model}:decode", "--no-measure", "--target", "h200"]) == 0
    text = capfd.readouterr().out
    assert "decode_fused_kernel" in text
    assert "decode_fused_combine_kernel" in text


def test_two_splits_in_one_region_keep_apart(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (region,) = optimized(capfd, f"{model}:twice")["regions"]
    graph = mugraph_from_json(region["mugraph"])
    assert check_mugraph(graph) == []
    assert sum(isinstance(kernel, GraphKernel) for kernel in graph.kernels) >= 4
    names = [tensor.name for tensor in graph.tensors]
    assert len(set(names)) == len(names)


def test_what_two_steps_hand_over_has_two_names(model: Path) -> None:
    """The same search unit twice in one region has the same kernels, from the store."""
    (result,) = [
        event.result
        for event in pipeline.run(model, "decode", Options(target="h200", measure=False), store=Store.open())
        if isinstance(event, RegionDone)
    ]
    assert result.plan is not None
    (step,) = result.plan.steps
    first, second, third, fourth = kernel_graph("both", result.region, (step, step)).kernels
    assert isinstance(first, GraphKernel)
    assert isinstance(second, GraphKernel)
    assert isinstance(third, GraphKernel)
    assert isinstance(fourth, GraphKernel)
    handed = [{tensor.name for tensor in kernel.block.outputs} for kernel in (first, third)]
    assert not handed[0] & handed[1]
    assert handed == [{tensor.name for tensor in kernel.block.inputs} for kernel in (second, fourth)]


def test_the_edit_calls_one_operator_that_launches_both(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "model.py"
    copy.write_text(TEXT)
    optimized(capfd, f"{copy}:decode", "--apply")
    text = (tmp_path / "model_mugraph.py").read_text()
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert functions.count("launch_decode_fused") == 1
    assert {"decode_fused_kernel", "decode_fused_combine_kernel"} <= set(functions)
    assert text.count(" = _operator(") == 1
    assert "decode_fused_combine: " in text  # its grid, in the comment above
    assert run(["revert", str(copy)]) == 0
    assert copy.read_text() == TEXT
