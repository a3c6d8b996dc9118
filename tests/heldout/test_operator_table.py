"""The operators of the papers' tables, each at the levels they name (Mirage, Table 1; MCFuser §3): found by search in a
small program, and right in the generated kernel.

Block level: an operator of a block graph. Thread level: one of a thread graph, which runs in registers. Kernel level: a
kernel of its own in the region's kernel graph, which is PyTorch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from mugraph.events import Done, FileResult, RegionResult
from mugraph.ir.mugraph import GraphKernel, LibraryKernel
from mugraph.ir.ops import Kind
from mugraph.pipeline import Options, run

from tests.heldout.checks import check_edit, check_kernels
from tests.support.clock import FILE_S

BUDGET_S = 0.5
HEADER = "import math\nimport torch\nimport torch.nn.functional as F\n"
COMMENT = "# mugraph: x=f32[32, 48], y=f32[32, 48], w=f32[48, 64]\n"


@dataclass(frozen=True)
class Row:
    """An operator of the tables.

    text: on x and y, [32, 48], the result as well
    kind: what it is in a block graph; None for what is a view there, and no operator
    fn:   the unary function
    threads: an operator that a thread graph holds
    """

    text: str
    kind: Kind | None
    fn: str = ""
    threads: bool = True


TABLE = {
    "ew_add": Row("x + y", Kind.ADD),
    "ew_mul": Row("x * y", Kind.MUL),
    "ew_div": Row("x / (y * y + 1.0)", Kind.DIV),
    "ew_exp": Row("torch.softmax(x * 0.5, -1)", Kind.EXP),
    "sqr": Row("torch.square(x)", Kind.MUL),
    "sqrt": Row("torch.sqrt(x * x + 0.5)", Kind.SQRT),
    "silu": Row("F.silu(x)", Kind.UNARY, "silu"),
    "sub": Row("x - y", Kind.ADD),
    "neg": Row("-x + y", Kind.ADD),
    "relu": Row("F.relu(x)", Kind.UNARY, "relu"),
    "sigmoid": Row("torch.sigmoid(x)", Kind.UNARY, "sigmoid"),
    "tanh": Row("torch.tanh(x)", Kind.UNARY, "tanh"),
    "gelu": Row("F.gelu(x)", Kind.UNARY, "gelu"),
    "gelu_tanh": Row('F.gelu(x, approximate="tanh")', Kind.UNARY, "gelu_tanh"),
    "maximum": Row("torch.maximum(x, y)", Kind.MAX),
    "minimum": Row("torch.min(x, y * 0.5)", Kind.MAX),
    "clamp": Row("x.clamp(-0.75, 1.25)", Kind.MAX),
    "amax": Row("x - y.amax(-1, keepdim=True)", Kind.AMAX),
    "sum": Row("x + y.sum(-1, keepdim=True)", Kind.SUM),
    "mean": Row("x - y.mean(-1, keepdim=True)", Kind.SUM),
    "matmul": Row("(x @ y.T) @ y * 0.1", Kind.DOT),
    "transpose": Row("x.T.contiguous().T", None, threads=False),
    "reshape": Row("x.reshape(4, 8, 48).reshape(32, 48)", None, threads=False),
    "repeat": Row("y[:8].repeat_interleave(4, dim=0) * x", Kind.MUL),
}


def in_block(name: str) -> str:
    """The operator's value scaled and multiplied by w: one kernel."""
    return f"{COMMENT}def {name}(x, y, w):\n    v = {TABLE[name].text}\n    return ((v + 0.5) * y) @ w\n"


def in_kernel_graph(name: str) -> str:
    """The same before a cumulative sum, which nothing fuses with."""
    return f"{COMMENT}def {name}(x, y, w):\n    v = {TABLE[name].text}\n    return torch.logcumsumexp(v, 0) @ w\n"


def optimized(path: Path) -> FileResult:
    for event in run(path, options=Options(target="h100", budget_s=BUDGET_S, file_budget_s=FILE_S, measure=False)):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def written(path: Path, functions: list[str]) -> tuple[FileResult, dict[str, RegionResult]]:
    path.write_text("\n\n".join([HEADER, *functions]))
    result = optimized(path)
    assert result.errors == ()
    return result, {region.region.function: region for region in result.regions}


@pytest.mark.parametrize("part", range(4))
def test_block_and_thread_level(part: int, tmp_path: Path) -> None:
    names = list(TABLE)[part::4]
    path = tmp_path / "table.py"
    result, regions = written(path, [in_block(name) for name in names])
    for name in names:
        row, region = TABLE[name], regions[name]
        assert region.plan is not None, f"{name}: {region.reason}"
        kernels = [kernel for kernel in region.plan.mugraph.kernels if isinstance(kernel, GraphKernel)]
        ops = [op for kernel in kernels for op in kernel.block.ops]
        assert any(op.kind is Kind.DOT for op in ops)
        assert row.kind is None or any(op.kind is row.kind and op.fn == row.fn for op in ops), name
        if row.threads:
            fused = [op for kernel in kernels for thread in kernel.threads for op in thread.ops]
            assert any(op.kind is row.kind and op.fn == row.fn for op in fused), name
    check_edit(path, path.read_bytes(), result)
    check_kernels(path, path.read_bytes(), result)


def test_kernel_level(tmp_path: Path) -> None:
    """Between kernels of PyTorch's, which no generated one takes in."""
    path = tmp_path / "table.py"
    result, regions = written(path, [in_kernel_graph(name) for name in TABLE])
    for name in TABLE:
        region = regions[name]
        assert region.plan is not None, f"{name}: {region.reason}"
        kernels = region.plan.mugraph.kernels
        calls = [kernel.call for kernel in kernels if isinstance(kernel, LibraryKernel)]
        assert any("cumsum" in call for call in calls), name
        assert len(kernels) > 2, name
    check_edit(path, path.read_bytes(), result)
    check_kernels(path, path.read_bytes(), result)
