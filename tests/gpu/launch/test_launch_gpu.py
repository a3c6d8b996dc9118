"""Kernels launched without Triton's binder, on a GPU: in graphs, on streams, from threads, on several devices; and
whoever watches Triton's launches sees them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.support.modules import imported

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(300),
]

TEXT = """
import torch
import triton
import triton.language as tl


@triton.jit
def doubled_kernel(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < N) * 2, mask=offs < N)


@triton.jit
def shifted_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < size) + 1, mask=offs < size)


def launch_doubled(x):
    out = torch.empty((4096,), device=x.device, dtype=torch.float32)
    doubled_kernel[(4, 1, 1)](
        x, out,
        N=4096, BLOCK=1024,
        num_warps=4, num_stages=2,
    )
    return out


def launch_shifted(x):
    size = x.numel()
    out = torch.empty((size,), device=x.device, dtype=torch.float32)
    shifted_kernel[(triton.cdiv(size, 1024), 1, 1)](
        x, out, size,
        BLOCK=1024,
        num_warps=4, num_stages=2,
    )
    return out


_SOURCE, _CAPABILITY, _RAN, _REGIONS, _CALLED_FUNCTIONS, _OUTSIDE_NAMES = "none.py", (0, 0), {}, {}, {}, {}
_BUILTINS, _OWN, _PATHS, _CASES = frozenset([]), [], {}, {}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A module with the shared runtime and two kernels: one of a fixed size, one that is given its size."""
    from mugraph.edit.module.runtime import RUNTIME

    name = "launched_on_a_gpu"
    path = tmp_path_factory.mktemp("kernels") / f"{name}.py"
    operators = [
        f'_{one} = _operator("mugraph_test::{one}", "launch_{one}", lambda x: x.new_empty(x.shape))'
        for one in ("doubled", "shifted")
    ]
    path.write_text("\n\n".join([TEXT, RUNTIME, *operators]) + "\n")
    with imported(path, name) as module:
        yield module


@pytest.fixture(autouse=True)
def _anew(kernels: ModuleType) -> None:
    """Nothing is prepared before a test."""
    for one in (kernels._doubled, kernels._shifted):
        one.prepared.clear()
        one.tried.clear()
        one.now.clear()


@pytest.fixture
def ordinary(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Launches by Triton itself."""
    log: list[Any] = []
    run = type(kernels.doubled_kernel.jit).run

    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        log.append(self)
        return run(self, *arguments, **options)

    monkeypatch.setattr(type(kernels.doubled_kernel.jit), "run", noted)
    monkeypatch.setattr(kernels, "_usual_run", noted)
    return log


def x_of(device: int = 0, size: int = 4096) -> torch.Tensor:
    return torch.arange(size, dtype=torch.float32, device=f"cuda:{device}")


def right(call: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, expected: torch.Tensor) -> None:
    for _ in range(3):
        torch.testing.assert_close(call(x), expected, rtol=0, atol=0)


def test_triton_is_asked_once(kernels: ModuleType, ordinary: list[Any]) -> None:
    kernels.doubled_kernel.clear()
    right(kernels._doubled, x_of(), x_of() * 2)
    assert len(ordinary) == 1
    assert list(kernels._doubled.prepared) == [0]


def test_sizes(kernels: ModuleType, ordinary: list[Any]) -> None:
    """Each kind of size is compiled; every size is right."""
    kernels.shifted_kernel.clear()
    for size in (1, 16, 17, 1000, 1024, 1025, 2048, 4097):
        right(kernels._shifted, x_of(size=size), x_of(size=size) + 1)
    again = len(ordinary)
    right(kernels._shifted, x_of(size=1001), x_of(size=1001) + 1)
    assert len(ordinary) == again


def test_misaligned(kernels: ModuleType, ordinary: list[Any]) -> None:
    right(kernels._doubled, x_of(), x_of() * 2)
    before = len(ordinary)
    x = x_of(size=4097)[1:]
    right(kernels._doubled, x, x * 2)
    assert len(ordinary) == before + 1  # Triton compiles it once for such addresses


def test_another_type(kernels: ModuleType) -> None:
    """Who passes the guard by gets what Triton compiles for it."""
    right(kernels.launch_doubled, x_of(), x_of() * 2)
    x = x_of().half()
    right(kernels.launch_doubled, x, x.float() * 2)


def test_streams(kernels: ModuleType) -> None:
    """It is launched on the stream that is current: it waits for what that one still has to do."""
    kernels._doubled(x_of())
    x, stream = torch.zeros(4096, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(3)
        out = kernels._doubled(x)
    elsewhere = torch.ones(8, device="cuda") + 1  # the default stream goes on meanwhile
    stream.synchronize()
    torch.cuda.synchronize()
    assert elsewhere[0] == 2
    assert (out == 6).all()


def test_a_graph(kernels: ModuleType) -> None:
    x = x_of()
    kernels._doubled(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernels._doubled(kernels._doubled(x))
    for factor in (1.0, 5.0):
        x.copy_(x_of() * factor)
        graph.replay()
        torch.testing.assert_close(out, x_of() * factor * 4, rtol=0, atol=0)


def test_threads(kernels: ModuleType) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        x = x_of() + number
        with torch.cuda.stream(torch.cuda.Stream()):
            x = x_of() + number
            for _ in range(50):
                if not torch.equal(kernels._doubled(x), x * 2):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []


def test_hooks(kernels: ModuleType) -> None:
    """A profiler's hooks are called, and get the kernel's name."""
    from triton import knobs

    right(kernels._doubled, x_of(), x_of() * 2)
    seen: list[str] = []

    def entered(metadata: Any) -> None:
        seen.append(metadata.get()["name"])

    knobs.runtime.launch_enter_hook.add(entered)
    try:
        right(kernels._doubled, x_of(), x_of() * 2)
    finally:
        knobs.runtime.launch_enter_hook.remove(entered)
    right(kernels._doubled, x_of(), x_of() * 2)
    assert seen == ["doubled_kernel"] * 3


def test_torchs_profiler_sees_it(kernels: ModuleType) -> None:
    kernels._doubled(x_of())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        kernels._doubled(x_of())
        torch.cuda.synchronize()
    assert any("doubled_kernel" in event.key for event in profile.key_averages())


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled(kernels: ModuleType, mode: str) -> None:
    torch.compiler.reset()
    run = torch.compile(lambda x: kernels._doubled(x + 1) - 1, fullgraph=True, mode=mode)
    for factor in (1.0, 2.0, 3.0):
        x = x_of() * factor
        torch.testing.assert_close(run(x).clone(), (x + 1) * 2 - 1, rtol=0, atol=0)


def test_exported(kernels: ModuleType) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return kernels._doubled(x) + 1

    program = torch.export.export(Model(), (x_of(),))
    assert "mugraph_test.doubled" in program.graph_module.code
    right(program.module(), x_of(), x_of() * 2 + 1)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_two_devices(kernels: ModuleType) -> None:
    """Each has what was compiled for it; a tensor of another device than the current one is right too."""
    for current in (0, 1, 0):
        with torch.cuda.device(current):
            for device in (0, 1):
                right(kernels._doubled, x_of(device), x_of(device) * 2)
    with torch.cuda.device(1):
        x = x_of(1)
        kernels._doubled(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = kernels._doubled(x)
        x.fill_(3)
        graph.replay()
        assert (out == 6).all()
