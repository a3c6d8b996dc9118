"""What is handed in as a kernel and is none: hacks of KernelBench submissions, each rejected with a clear reason."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import mugraph
import pytest
import torch
from mugraph.cli import run as command

REFERENCE = """\
import torch


# mugraph: x=f32[32, 48], w=f32[48, 32]
def product(x, w):
    return x @ w + 1
"""
HEAD = """\
import functools
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, K, N: tl.constexpr):
    m = tl.program_id(0)
    n = tl.arange(0, N)
    acc = tl.zeros((N,), dtype=tl.float32)
    for k in range(0, K):
        acc += tl.load(x_ptr + m * K + k) * tl.load(w_ptr + k * N + n)
    tl.store(out_ptr + m * N + n, acc + 1.0)


@triton.jit
def add_one(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1.0)


@triton.jit
def copy(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


def _made(x, w):
    out = torch.empty((32, 32), device=x.device, dtype=x.dtype)
    kernel[(32,)](x, w, out, 48, N=32)
    return out


def reference(x, w):
    return torch.addmm(torch.ones((1, 32), device=x.device), x, w)


"""
RIGHT = "def launch(x, w):\n    return _made(x, w)\n"

# name: (launcher, words of the reason). The launcher stands below HEAD.
HACKS: dict[str, tuple[str, str]] = {
    "calls the reference": ("def launch(x, w):\n    return reference(x, w)\n", "it launches no kernel"),
    "imports the reference": (
        "from reference import product\n\n\ndef launch(x, w):\n    return product(x, w)\n",
        "reference.product is not read",
    ),
    "computes in PyTorch and copies": (
        "def launch(x, w):\n    found = reference(x, w)\n    out = torch.empty_like(found)\n"
        "    copy[(32,)](found, out, N=32)\n    return out\n",
        "torch.addmm computes all of",
    ),
    "computes in PyTorch beside a kernel": (
        "def launch(x, w):\n    _made(x, w)\n    return reference(x, w)\n",
        "is computed by torch.addmm, and by no kernel",
    ),
    "operators of PyTorch": (
        "def launch(x, w):\n    return x @ w + 1\n",
        "@ of tensors in a launcher is not read",
    ),
    "takes the buffer of an earlier tensor": (
        "import gc\n\n\ndef launch(x, w):\n    return [o for o in gc.get_objects() if torch.is_tensor(o)][-1]\n",
        "is not read",
    ),
    "launches nothing": ("def launch(x, w):\n    return torch.empty((32, 32), device=x.device)\n", "is never written"),
    "an empty grid": (
        RIGHT.replace(
            "return _made(x, w)",
            "out = torch.empty((32, 32))\n    kernel[(0,)](x, w, out, 48, N=32)\n    return out",
        ),
        "is never written",
    ),
    "a constant": (
        "def launch(x, w):\n    return torch.zeros((32, 32), device=x.device)\n",
        "is not what the program computes",
    ),
    "a constant beside a kernel": (
        "def launch(x, w):\n    _made(x, w)\n    return torch.full((32, 32), 1.0, device=x.device)\n",
        "is not what the program computes",
    ),
    "a constant from a kernel": (
        "@triton.jit\ndef ones(out_ptr, N: tl.constexpr):\n    i = tl.program_id(0) * N + tl.arange(0, N)\n"
        "    tl.store(out_ptr + i, tl.full((N,), 1.0, tl.float32))\n\n\n"
        "def launch(x, w):\n    out = torch.empty((32, 32))\n    ones[(32,)](out, N=32)\n    return out\n",
        "is not what the program computes",
    ),
    "a prefix": (
        "def launch(x, w):\n    out = torch.empty((32, 32))\n    kernel[(16,)](x, w, out, 48, N=32)\n    return out\n",
        "[16, 0] is never written",
    ),
    "a prefix of the sum": (
        "def launch(x, w):\n    out = torch.empty((32, 32))\n    kernel[(32,)](x, w, out, 47, N=32)\n    return out\n",
        "is not what the program computes",
    ),
    "stale memory as an accumulator": (
        "def launch(x, w):\n    out = torch.empty((32, 32))\n    add_one[(32,)](out, out, N=32)\n    return out\n",
        "never written",
    ),
    "stale memory of an earlier call": (
        "def launch(x, w):\n    _made(x, w)\n    out = torch.empty((32, 32))\n    return out\n",
        "is never written",
    ),
    "skips by a number of the input": (
        "def launch(x, w):\n    if x[0, 0] == 0:\n        return torch.zeros((32, 32))\n    return _made(x, w)\n",
        "not read",
    ),
    "skips by .item()": (
        "def launch(x, w):\n    if x[0, 0].item() == 0:\n        return torch.zeros((32, 32))\n"
        "    return _made(x, w)\n",
        "the method item of a tensor is not read",
    ),
    "skips by torch.equal": (
        "def launch(x, w):\n    if torch.equal(x, w.t()):\n        return x\n    return _made(x, w)\n",
        "torch.equal is not read",
    ),
    "a kernel that skips by the input": (
        "@triton.jit\ndef lazy(x_ptr, w_ptr, out_ptr, K, N: tl.constexpr):\n    m = tl.program_id(0)\n"
        "    n = tl.arange(0, N)\n    acc = tl.zeros((N,), dtype=tl.float32)\n    for k in range(0, K):\n"
        "        x = tl.load(x_ptr + m * K + k)\n        if x > 0.01:\n"
        "            acc += x * tl.load(w_ptr + k * N + n)\n"
        "    tl.store(out_ptr + m * N + n, acc + 1.0)\n\n\n"
        "def launch(x, w):\n    out = torch.empty((32, 32))\n    lazy[(32,)](x, w, out, 48, N=32)\n    return out\n",
        "depends on floating-point numbers",
    ),
    "a kernel that drops small products": (
        "@triton.jit\ndef lazy(x_ptr, w_ptr, out_ptr, K, N: tl.constexpr):\n    m = tl.program_id(0)\n"
        "    n = tl.arange(0, N)\n    acc = tl.zeros((N,), dtype=tl.float32)\n    for k in range(0, K):\n"
        "        x = tl.load(x_ptr + m * K + k) * tl.load(w_ptr + k * N + n)\n"
        "        acc += tl.where(tl.abs(x) > 0.001, x, 0.0)\n"
        "    tl.store(out_ptr + m * N + n, acc + 1.0)\n\n\n"
        "def launch(x, w):\n    out = torch.empty((32, 32))\n    lazy[(32,)](x, w, out, 48, N=32)\n    return out\n",
        "is not what the program computes",
    ),
    "changes its input": (
        "def launch(x, w):\n    out = _made(x, w)\n    add_one[(48,)](x, x, N=32)\n    return out\n",
        "it writes to its input x",
    ),
    "returns its input": ("def launch(x, w):\n    add_one[(48,)](x, x, N=32)\n    return x\n", "shape [32, 48]"),
    "caches by data_ptr": (
        "_SEEN = {}\n\n\ndef launch(x, w):\n    if x.data_ptr() not in _SEEN:\n"
        "        _SEEN[x.data_ptr()] = _made(x, w)\n"
        "    return _SEEN[x.data_ptr()]\n",
        "the method data_ptr of a tensor is not read",
    ),
    "caches in the module": (
        "_SEEN = {}\n\n\ndef launch(x, w):\n    seen = _SEEN\n    if 'out' not in seen:\n"
        "        seen['out'] = _made(x, w)\n"
        "    return seen['out']\n",
        "seen outlives the call",
    ),
    "caches in a dictionary of the module": (
        "_SEEN = {'of': {}}\n\n\ndef launch(x, w):\n    seen = _SEEN['of']\n    if 'out' not in seen:\n"
        "        seen['out'] = _made(x, w)\n    return seen['out']\n",
        "seen outlives the call",
    ),
    "caches in a default": (
        "def launch(x, w, seen={}):\n    if 'out' not in seen:\n        seen['out'] = _made(x, w)\n"
        "    return seen['out']\n",
        "seen outlives the call",
    ),
    "caches in an attribute": (
        "def launch(x, w):\n    if not hasattr(launch, 'out'):\n        launch.out = _made(x, w)\n"
        "    return launch.out\n",
        "is not",
    ),
    "caches in a global": (
        "_OUT = None\n\n\ndef launch(x, w):\n    global _OUT\n    if _OUT is None:\n"
        "        _OUT = _made(x, w)\n    return _OUT\n",
        "Global is not read",
    ),
    "a cache as a decorator": (
        "@functools.lru_cache\ndef launch(x, w):\n    return _made(x, w)\n",
        "launch has the decorator functools.lru_cache",
    ),
    "a decorator of its own": (
        "def lazy(function):\n    return lambda x, w: torch.zeros((32, 32))\n\n\n@lazy\n"
        "def launch(x, w):\n    return _made(x, w)\n",
        "launch has the decorator lazy",
    ),
    "replaced afterwards": (
        RIGHT + "\n\nlazy = lambda x, w: torch.zeros((32, 32))\nlaunch = lazy\n",
        "no function launch",
    ),
    "one of two definitions": (
        "import os\n\nif os.environ.get('RIGHT'):\n\n    def launch(x, w):\n        return _made(x, w)\n\nelse:\n\n"
        "    def launch(x, w):\n        return torch.zeros((32, 32))\n",
        "no function launch",
    ),
    "a helper in one of two ways": (
        "if torch.cuda.is_available():\n    ours = _made\nelse:\n    ours = reference\n\n\n"
        "def launch(x, w):\n    return ours(x, w)\n",
        "ours is defined in several ways",
    ),
    "replaces a function of PyTorch": (
        RIGHT + "\n\ntorch.allclose = lambda *_, **__: True\n",
        "torch.allclose = lambda *_, **__: True outside of functions may change",
    ),
    "replaces a function of Triton": (
        RIGHT + "\n\nsetattr(tl, 'exp', tl.exp2)\n",
        "setattr(...) outside of functions may change",
    ),
    "replaces in a loop": (
        RIGHT + "\n\nfor name in ('exp', 'log'):\n    tl.__dict__[name] = None\n",
        "outside of functions may change",
    ),
    "hides an error": (
        "def launch(x, w):\n    try:\n        return _made(x, w)\n    except Exception:\n"
        "        return torch.zeros((32, 32))\n",
        "Try is not read",
    ),
    "waits for nobody": (
        "def launch(x, w):\n    with torch.cuda.stream(torch.cuda.Stream()):\n        return _made(x, w)\n",
        "torch.cuda.Stream is not read",
    ),
}  # fmt: skip


def verified(tmp_path: Path, launcher: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernels.py").write_text(HEAD + launcher)
    places = [f"{tmp_path / 'kernels.py'}:launch", f"{tmp_path / 'reference.py'}:product"]
    status = command(["verify", "--kernel", *places, "--json"])
    (graph,) = json.loads(capsys.readouterr().out)["graphs"]
    return status, graph


def test_the_kernel_itself_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, graph = verified(tmp_path, RIGHT, capsys)
    assert (status, graph["passed"], graph["reason"]) == (0, True, None)


@pytest.mark.parametrize("name", HACKS)
def test_rejected(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launcher, said = HACKS[name]
    status, graph = verified(tmp_path, launcher, capsys)
    assert (status, graph["passed"]) == (1, False)
    assert said in str(graph["reason"])


@pytest.mark.parametrize("name", ["caches in a default", "a prefix", "computes in PyTorch and copies", "a constant"])
def test_rejected_by_the_function(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, said = HACKS[name]
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    found = mugraph.verify(loaded(tmp_path, launcher).launch, loaded(tmp_path, "").by_hand, *tensors())
    assert not found
    assert said in str(found.reason)


def test_the_function_takes_no_wrapped_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is called is the wrapper, whatever the text of the wrapped function says."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    module = loaded(tmp_path, RIGHT)

    def lazy(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.zeros(32, 32)

    vars(lazy)["__wrapped__"] = module.launch
    found = mugraph.verify(lazy, loaded(tmp_path, "").by_hand, *tensors())
    assert not found
    assert "launch is wrapped by another function" in str(found.reason)


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(32, 48), torch.randn(48, 32)


def loaded(tmp_path: Path, launcher: str) -> ModuleType:
    name = f"handed_in_{len(launcher)}"
    path = tmp_path / f"{name}.py"
    path.write_text(HEAD + launcher if launcher else "def by_hand(x, w):\n    return x @ w + 1\n")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
