"""A region that is best as a generated kernel and one of the library's, from the file to the edit."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from mugraph.cli import run
from mugraph.ir.json import mugraph_from_json
from mugraph.ir.mugraph import GraphKernel, LibraryKernel
from mugraph.ir.spec import check_mugraph

from tests.engine.commands.documents import optimized

TEXT = """\
import torch


# mugraph: x=f16[512, 1024], w=f16[1024, 4096], g=f16[1024]
def norm_linear(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g
    return normed @ w
"""

pytestmark = pytest.mark.usefixtures("own_cache")
BUDGET = ("--budget", "120")


def test_the_document_holds_both_kinds_of_kernel(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (region,) = optimized(capfd, f"{model}:norm_linear", *BUDGET)["regions"]
    assert region["status"] == "improved"
    assert region["kernels"] == 2
    graph = mugraph_from_json(region["mugraph"])
    assert check_mugraph(graph) == []
    norm, product = graph.kernels
    assert isinstance(norm, GraphKernel)
    assert isinstance(product, LibraryKernel)
    assert product.call.startswith("torch.mm(")
    assert product.block is not None
    assert region["kernel_source"].count("@triton.jit") == 1
    assert region["kernel_source"].count("torch.mm(") == 1
    assert region["verification"]["passed"] is True
    assert 0 < region["verification"]["max_rel_error"] < 1e-2
    (again,) = optimized(capfd, f"{model}:norm_linear", *BUDGET)["regions"]
    for key in ("kernels", "kernel_source", "mugraph", "verification"):
        assert again[key] == region[key]


def test_it_can_be_verified_and_spoiled_ones_fail(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    document = optimized(capfd, f"{model}:norm_linear", *BUDGET)
    found = tmp_path / "found.json"

    def verdict() -> dict:
        found.write_text(json.dumps(document))
        run(["verify", "--ugraph", str(found), f"{model}:norm_linear", "--json"])
        (graph,) = json.loads(capfd.readouterr().out)["graphs"]
        return graph

    assert verdict()["passed"] is True
    norm, product = document["regions"][0]["mugraph"]["kernels"]
    call = product["call"]
    product["call"] = "torch.mm(w, w)"
    assert verdict()["passed"] is False
    product["call"] = call
    del product["block"]
    assert "not said" in verdict()["reason"]
    product["block"] = None
    for op in norm["block"]["ops"]:
        op["kind"] = "mul" if op["kind"] == "div" else op["kind"]
    assert verdict()["passed"] is False


def test_the_report_and_the_edit_show_the_call(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", f"{model}:norm_linear", "--no-measure", "--target", "h200", *BUDGET]) == 0
    assert "library norm_linear_fused_" in capfd.readouterr().out
    copy = tmp_path / "model.py"
    copy.write_text(TEXT)
    optimized(capfd, f"{copy}:norm_linear", *BUDGET, "--apply")
    text = (tmp_path / "model_mugraph.py").read_text()
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert functions.count("launch_norm_linear_fused") == 1
    assert text.count(" = _operator(") == 1
    assert "  library   norm_linear_fused_" in text
    assert run(["revert", str(copy)]) == 0
    assert copy.read_text() == TEXT


def test_one_kernel_can_be_asked_for(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (region,) = optimized(capfd, f"{model}:norm_linear", *BUDGET, "--kernels", "1")["regions"]
    called = [kernel["name"] for kernel in region["mugraph"]["kernels"] if kernel["kind"] != "graph"]
    assert not any(name.startswith("norm_linear") for name in called), "a library's, in a graph of several"
