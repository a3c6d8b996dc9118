"""`mugraph verify --kernel`: somebody else's Triton kernel beside a PyTorch function."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mugraph.cli import run as command

REFERENCE = """\
import torch


# mugraph: a=f32[32, 48], b=f32[48, 32]
def product(a, b):
    return a @ b
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32}, num_warps=8)], key=["K"])
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, stride_am, stride_bk, stride_cm, M: tl.constexpr, BLOCK: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, M)
    acc = tl.zeros((M, M), dtype=tl.float32)
    for k0 in tl.range(0, tl.cdiv(K, BLOCK)):
        k = k0 * BLOCK + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :], mask=k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + n[None, :], mask=k[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :], acc)


def launch(a, b):
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
    kernel[lambda meta: (1,)](a, b, c, a.shape[1], a.stride(0), b.stride(0), c.stride(0), M=a.shape[0])
    return c
"""
SPLIT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, N, M: tl.constexpr, B: tl.constexpr):
    m = tl.arange(0, M)
    k = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.arange(0, M)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision="ieee"))


def launch(a, b):
    c = torch.zeros((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
    kernel[(a.shape[1] // 16,)](a, b, c, a.shape[1], b.shape[1], M=a.shape[0], B=16)
    return c
"""


def run(tmp_path: Path, kernel: str, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, object]]:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernels.py").write_text(kernel)
    arguments = ["--kernel", f"{tmp_path / 'kernels.py'}:launch", f"{tmp_path / 'reference.py'}:product", "--json"]
    status = command(["verify", *arguments, *more])
    (graph,) = json.loads(capsys.readouterr().out)["graphs"]
    return status, graph


def test_a_kernel_that_starts_before_the_one_before_it_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    early = KERNEL.replace("M=a.shape[0])", "M=a.shape[0], launch_pdl=True)")
    status, graph = run(tmp_path, early, capsys)
    said = (
        "kernel is launched before the kernel before it has ended, and reads a before it waits, and what is before it"
    )
    assert (status, graph["passed"]) == (1, False)
    assert said in str(graph["reason"])
    for wait, imports in (("tl.extra.cuda.gdc_wait()", ""), ("gdc_wait()", "triton.language.extra.cuda")):
        waits = early.replace("    m = tl.arange", f"    {wait}\n    m = tl.arange")
        head = f"from {imports} import gdc_wait\n" if imports else ""
        status, graph = run(tmp_path, head + waits, capsys)
        assert (status, graph["passed"], graph["reason"]) == (0, True, None)


def test_atomics_in_any_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, graph = run(tmp_path, SPLIT, capsys)
    assert (status, graph["passed"], graph["reason"], graph["where"]) == (0, True, None, None)
    assert isinstance(graph["max_rel_error"], float)
    assert (graph["bound"], graph["bound_note"]) == (None, "what blocks add up in memory is not counted")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("torch.zeros", "torch.empty", "not all of which was written before"),
        ("(a.shape[1] // 16,)", "(a.shape[1] // 16 - 1,)", "is not what the program computes"),
        ("tl.atomic_add(c_ptr", "tl.store(c_ptr", "is written by"),
    ],
)
def test_faults_of_atomics(tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str) -> None:
    status, graph = run(tmp_path, SPLIT.replace(old, new), capsys)
    assert (status, graph["passed"]) == (1, False)
    assert said in str(graph["reason"])


def test_a_seed_repeats_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, first = run(tmp_path, SPLIT, capsys)
    _, other = run(tmp_path, SPLIT, capsys)
    assert first["seed"] != other["seed"]
    assert first["max_rel_error"] != other["max_rel_error"]
    assert run(tmp_path, SPLIT, capsys, "--seed", str(first["seed"])) == (0, first)


def test_how_far_elements_are_from_pytorchs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sum in another order is off by units in the last place of its larger terms."""
    _, graph = run(tmp_path, SPLIT, capsys)
    ulps = graph["ulps"]
    assert isinstance(ulps, dict)
    assert set(ulps) == {"normal", "rows", "cancellation", "ends"}
    assert all(number >= 1.0 for number in ulps.values())


def test_each_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, graph = run(tmp_path, KERNEL, capsys)
    assert (status, graph["passed"], graph["bound_note"]) == (0, True, "k = 1, d = 2")
    assert isinstance(graph["bound"], float)
    assert graph["bound"] <= 1e-9
    # Without its masks the kernel is right with tiles of 16, of which 48 is a multiple, and not with those of 32.
    status, graph = run(tmp_path, KERNEL.replace(", mask=k[:, None] < K, other=0.0", ""), capsys)
    assert status == 1
    assert "in configuration 1, block (0, 0, 0) of kernel reads element 2047 of b" in str(graph["reason"])


def test_a_counterexample_has_tile_element_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, graph = run(tmp_path, KERNEL.replace("tl.dot(a, b, acc, ", "tl.dot(a, b, "), capsys)
    assert status == 1
    where = graph["where"]
    assert isinstance(where, dict)
    assert (where["kernel"], where["tile"], where["element"]) == ("kernel", [0, 0, 0], [0, 0])
    assert KERNEL.splitlines()[where["line"] - 1].strip().startswith("tl.store")


def test_what_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, graph = run(tmp_path, KERNEL.replace("m = tl.arange(0, M)", "m = tl.sort(tl.arange(0, M))"), capsys)
    assert (status, graph["passed"]) == (1, False)
    assert "tl.sort is not read (line 9)" in str(graph["reason"])


SEVERAL = """\
import torch


# mugraph: x=f32[3, 5, 40], y=f32[3, 5, 40]
def both(x, y):
    s = x + y
    return s * s, s


# mugraph: x=f32[3, 5, 40]
def alone(x):
    return torch.sigmoid(x)
"""
ROWS = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, a_ptr, b_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    s = tl.load(x_ptr + i, mask=i < n, other=0.0) + tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(a_ptr + i, s * s, mask=i < n)
    tl.store(b_ptr + i, s, mask=i < n)


def both(x, y):
    batch, rows, columns = x.shape
    a, b = torch.empty_like(x), torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, a, b, x.numel(), B=64)
    return a, b


@triton.jit
def one(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.sigmoid(tl.load(x_ptr + i, mask=i < n, other=0.0)), mask=i < n)


def alone(x):
    out = torch.empty_like(x)
    one[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), B=64)
    return out
"""


@pytest.mark.parametrize(
    ("launcher", "old", "new", "said"),
    [
        ("both", "", "", ""),
        ("both", "return a, b", "return b, a", "is not what the program computes"),
        ("both", "return a, b", "return a, b.view(-1, columns)", "has shape [15, 40]"),
        ("alone", "", "", ""),
        ("alone", "tl.sigmoid", "tl.exp", "is not what the program computes"),
    ],
)
def test_the_whole_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], launcher: str, old: str, new: str, said: str
) -> None:
    """Tensors have the function's own shapes, results its own order, and one operator alone is a function too."""
    (tmp_path / "reference.py").write_text(SEVERAL)
    (tmp_path / "kernels.py").write_text(ROWS.replace(old, new))
    places = [f"{tmp_path / name}:{launcher}" for name in ("kernels.py", "reference.py")]
    status = command(["verify", "--kernel", *places, "--json"])
    (graph,) = json.loads(capsys.readouterr().out)["graphs"]
    assert (status, graph["passed"]) == ((1, False) if said else (0, True)), graph["reason"]
    assert said in str(graph["reason"])


WILD = """\
import torch
import triton
import triton.language as tl
from triton.language.extra.libdevice import tanh


@triton.autotune(configs=[triton.Config({"B": b}, num_warps=w) for b in (32, 64) for w in (2, 4)], key=["n"])
@triton.jit
def kernel(x_ptr, out_ptr, scale, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    shift = tl.float32(1.0)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, tanh(x * scale.to(tl.float32)) + shift, mask=i < n)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, out, 0.5, x.numel())
        ctx.save_for_backward(x)
        return out


def launch(x):
    return _Function.apply(x)
"""


def test_kernels_as_they_are_in_the_wild(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A function of autograd, configurations that differ in warps alone, a number as an argument, libdevice: read, and
    run in floating point in Triton's interpreter, which by itself runs none of these."""
    (tmp_path / "reference.py").write_text(
        "import torch\n\n\n# mugraph: x=f32[300]\ndef shifted(x):\n    return torch.tanh(x * 0.5) + 1\n"
    )
    (tmp_path / "kernels.py").write_text(WILD)
    places = [f"{tmp_path / 'kernels.py'}:launch", f"{tmp_path / 'reference.py'}:shifted"]
    status = command(["verify", "--kernel", *places, "--json"])
    (graph,) = json.loads(capsys.readouterr().out)["graphs"]
    assert (status, graph["reason"]) == (0, None)
    assert isinstance(graph["max_rel_error"], float)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("kernels.py", "name the launcher"),
        ("none.py:launch", "does not exist"),
        ("kernels.py:nothing", "no function nothing"),
    ],
)
def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str], kernel: str, said: str) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernels.py").write_text(KERNEL)
    status = command(["verify", "--kernel", str(tmp_path / kernel), f"{tmp_path / 'reference.py'}:product"])
    output = capsys.readouterr()
    assert status in (1, 2)
    assert said in " ".join((output.out + output.err).split())
    assert "Traceback" not in output.err


BESIDE_REFERENCE = """\
import torch


# mugraph: a=f32[4, 48], b=f32[2, 64]
def both(a, b):
    return torch.tanh(a) * 2, b * b + 1
"""
BESIDE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def turned(row, a_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * N + at, mask=at < N, other=0.0)
    tl.store(out_ptr + row * N + at, 4.0 * tl.sigmoid(2.0 * a) - 2.0, mask=at < N)


@triton.jit
def squared(x, y, b_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    at = x * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(b_ptr + y * N + at)
    tl.store(out_ptr + y * N + at, b * b + 1.0)


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, d_ptr, ROWS: tl.constexpr):
    pid = tl.program_id(0)
    if pid < ROWS:
        turned(pid, a_ptr, c_ptr, N=48, BLOCK=64)
    else:
        squared((pid - ROWS) % 4, (pid - ROWS) // 4, b_ptr, d_ptr, N=64, BLOCK=16)


def launch(a, b):
    c, d = torch.empty_like(a), torch.empty_like(b)
    kernel[(12,)](a, b, c, d, ROWS=4)
    return c, d
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", ""),
        ("if pid < ROWS:", "if pid < ROWS + 1:", "block (4, 0, 0) of kernel reads element 239 of a"),
        ("if pid < ROWS:", "if pid < ROWS - 1:", "block (3, 0, 0) of kernel reads element -16 of b"),
        ("% 4, (pid - ROWS) // 4", "% 2, (pid - ROWS) // 4", "is written by block"),
        ("% 4, (pid - ROWS) // 4", "// 4, (pid - ROWS) % 4", "of b"),
        ("    else:\n        squared(", "    elif pid < 11:\n        squared(", "is never written"),
        ("squared((pid", "pid((pid", "cannot be read"),
    ],
)
def test_several_kernels_in_one_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    (tmp_path / "reference.py").write_text(BESIDE_REFERENCE)
    text = BESIDE.replace(old, new) if old else BESIDE
    assert (text != BESIDE) == bool(old)
    (tmp_path / "kernels.py").write_text(text)
    code = command(["verify", "--kernel", f"{tmp_path}/kernels.py:launch", f"{tmp_path}/reference.py:both", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["graphs"]
    assert (code == 0) == (said == "") == found["passed"], found
    assert said in (found["reason"] or "")
