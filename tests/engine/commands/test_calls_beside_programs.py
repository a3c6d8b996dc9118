"""`mugraph verify` and `mugraph check --trace` run the recorded calls beside the program that a kernel is compared
with: a rule that reads a call wrongly is found there too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mugraph.cli import run
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.json import mugraph_to_json
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.graphs import tensor
from tests.engine.verification.through_exp import SIZES, Writer, X, Y
from tests.support.mislowered import RIGHT, WRONG

PRODUCT = """
# mugraph: x=f16[8, 16], y=f16[8, 16]
def product(x, y):
    return ({}).sum(-1)
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    at = tl.program_id(0) * N + n
    z = tl.load(x_ptr + at).to(tl.float32) * tl.load(y_ptr + at).to(tl.float32)
    tl.store(z_ptr + tl.program_id(0), tl.sum(z).to(tl.float16))


def launch(x, y):
    z = torch.empty((x.shape[0],), device=x.device, dtype=x.dtype)
    kernel[(x.shape[0],)](x, y, z, N=x.shape[1])
    return z
"""
SAID = "the program is not what PyTorch's own calls compute: of "


def model(folder: Path, *functions: str) -> Path:
    path = folder / "model.py"
    path.write_text("import torch\n" + "".join(functions))
    return path


def document(capfd: pytest.CaptureFixture[str], *command: str) -> tuple[int, dict[str, Any]]:
    status = run([*command, "--json"])
    return status, json.loads(capfd.readouterr().out)


def product_graph(folder: Path) -> Path:
    writer, total = Writer(), tensor("z", "row", SIZES)
    writer.store(writer.reduce("total", Kind.SUM, writer.mul(writer.x, writer.y), over="column"), total)
    tensors = (X, Y, total)
    block = BlockGraph("product", SIZES, tensors, tuple(writer.ops), ())
    kernel = GraphKernel("product", block, Schedule((("row", 4),)))
    path = folder / "product.json"
    path.write_text(json.dumps(mugraph_to_json(MuGraph("product", SIZES, tensors, ("x", "y"), ("z",), (kernel,)))))
    return path


@pytest.mark.usefixtures("a_cast_is_nothing")
@pytest.mark.parametrize(("code", "passed"), [("x * y", True), ("x.to(torch.bool) * y", False), ("x + y", None)])
def test_a_graph(code: str, passed: bool | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """None: the graph is not the program's function, whatever the calls compute."""
    place = f"{model(tmp_path, PRODUCT.format(code))}:product"
    status, found = document(capfd, "verify", "--ugraph", str(product_graph(tmp_path)), place)
    [graph] = found["graphs"]
    assert (status == 0, graph["passed"]) == (passed is True, passed is True)
    if passed is None:
        assert graph["lowering"] is None
    else:
        assert graph["lowering"]["passed"] is passed
        assert (graph["reason"] or SAID).startswith(SAID)


@pytest.mark.usefixtures("a_cast_is_nothing")
@pytest.mark.parametrize("passed", [True, False])
def test_a_kernel(passed: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernels.py").write_text(KERNEL)
    place = f"{model(tmp_path, PRODUCT.format('x * y' if passed else 'x.to(torch.bool) * y'))}:product"
    command = ["verify", "--kernel", f"{tmp_path / 'kernels.py'}:launch", place]
    status, found = document(capfd, *command)
    [graph] = found["graphs"]
    assert (status == 0, graph["passed"], graph["lowering"]["passed"]) == (passed, passed, passed)
    assert (graph["reason"] or SAID).startswith(SAID)
    run(command)
    said = " ".join(capfd.readouterr().out.split())
    assert ("the program is what PyTorch's own calls compute on random numbers" in said) == passed
    assert (SAID in said) == (not passed)


def applied(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["optimize", str(path), "--apply", "--no-measure", "--target", "h100", "--budget", "3", "--no-store"]
    assert run(command) == 0
    assert "model_mugraph.py" in " ".join(capfd.readouterr().out.split())


def test_applied_kernels(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = model(tmp_path, RIGHT)
    applied(path, capfd)

    def region(*more: str) -> tuple[int, dict[str, Any]]:
        status, found = document(capfd, "check", str(path), *more)
        [one] = found["regions"]
        assert one["problems"] == []
        [lowering] = one["lowering"]
        assert lowering["kernel"]
        return status, lowering

    status, lowering = region("--trace")
    assert (status, lowering["passed"]) == (0, True)
    assert "float64" in lowering["note"]
    assert run(["check", str(path), "--trace"]) == 0
    said = capfd.readouterr().out
    assert f"{lowering['kernel']}: the program is what PyTorch's own calls compute on random numbers" in said

    status, lowering = region()
    assert (status, lowering["passed"]) == (0, None)
    assert "--trace" in lowering["note"]
    assert run(["check", str(path)]) == 0
    said = capfd.readouterr().out
    assert "nothing was run again (--trace" in said
    assert "PyTorch's own calls" not in said

    text = path.read_text()
    for old, new, why in (
        ("x=f16[512, 4096]", "x=f16[512, 2048]", "no part of right, as it is traced here, has the program"),
        ("# mugraph: x=f16[512, 4096]", "# shapes are elsewhere", "right has no region"),
        ("import torch\n", "import torch\nraise RuntimeError('not here')\n", "cannot be traced again"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        status, lowering = region("--trace")
        assert (status, lowering["passed"]) == (0, None), "which is said, and is no fault of the kernel"
        assert why in lowering["note"], lowering


@pytest.mark.usefixtures("a_cast_is_nothing")
def test_applied_kernels_of_a_wrong_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written when nothing could be told. Another function with the same program is right."""
    path = model(tmp_path, WRONG, RIGHT)
    with monkeypatch.context() as patch:
        patch.setattr(FloatTester, "test_lowering", lambda *_: LoweringResult(None, "it was not looked at"))
        patch.setattr("mugraph.solve.together.processors", lambda: 1)
        patch.setattr("mugraph.pipeline.processors", lambda: 1)
        applied(path, capfd)
    assert run(["check", str(path)]) == 0
    capfd.readouterr()
    status, found = document(capfd, "check", str(path), "--trace")
    assert status == 1
    regions = {one["function"]: one for one in found["regions"]}
    assert set(regions) == {"wrong", "right"}
    assert regions["right"]["passed"]
    assert [one["passed"] for one in regions["right"]["lowering"]] == [True]
    [problem] = regions["wrong"]["problems"]
    assert SAID in problem
    assert [one["passed"] for one in regions["wrong"]["lowering"]] == [False]
    assert run(["check", str(path), "--trace"]) == 1
    assert capfd.readouterr().out.count(SAID) == 1
