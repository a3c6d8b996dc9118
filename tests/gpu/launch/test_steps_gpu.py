"""A region of several steps that is written anew without the views that its kernel alone reads, on a GPU: right as it
is called, in graphs and on streams, whatever lies before and behind."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

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
def turned_kernel(first_ptr, second_ptr, angle_ptr, out_ptr, N: tl.constexpr):
    row, offs = tl.program_id(0), tl.arange(0, N)
    first, second = tl.load(first_ptr + row * 2 * N + offs), tl.load(second_ptr + row * 2 * N + offs)
    tl.store(out_ptr + row * N + offs, first * tl.load(angle_ptr + row * 2 * N + offs) - second)


@triton.jit
def joined_kernel(x_ptr, product_ptr, out_ptr, N: tl.constexpr):
    places = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + places, tl.load(x_ptr + places) + tl.load(product_ptr + places))


def launch_turned(first, second, angle):
    out = torch.empty((64, 32), device=first.device, dtype=torch.float32)
    turned_kernel[(64, 1, 1)](
        first, second, angle, out,
        N=32, num_warps=1, num_stages=2,
    )
    return out


def launch_joined(x, weight):
    product = torch.empty((64, 32), device=x.device, dtype=torch.float32)
    out = torch.empty((64, 32), device=x.device, dtype=torch.float32)
    torch.mm(x, weight, out=product)
    joined_kernel[(64, 1, 1)](
        x, product, out,
        N=32, num_warps=1, num_stages=2,
    )
    return out


def _turning_on_tensors(x: torch.Tensor, weight: torch.Tensor, table: torch.Tensor, square: torch.Tensor):
    '''Where kernels fit.'''
    value = torch.mm(x, weight).view(64, 2, 32)
    first = value[:, 1]
    second = value[:, 0]
    angle = table[:, 32:]
    turned = _turned(_laid_out(first, (64, 1)), _laid_out(second, (64, 1)), angle)
    return _joined(turned, square)


_SOURCE, _CAPABILITY, _RAN, _REGIONS, _CALLED_FUNCTIONS, _OUTSIDE_NAMES = "none.py", (0, 0), {}, {}, {}, {}
_BUILTINS, _OWN, _PATHS, _CASES = frozenset([]), [], {}, {}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    from mugraph.edit.module.runtime import RUNTIME

    path = tmp_path_factory.mktemp("steps") / "steps_on_a_gpu.py"
    operators = [
        f'_{one} = _operator("mugraph_steps_gpu::{one}", "launch_{one}", lambda {given}: x.new_empty(64, 32))'
        for one, given in (("turned", "x, second, angle"), ("joined", "x, weight"))
    ]
    path.write_text("\n\n".join([TEXT, RUNTIME, *operators]) + "\n")
    with imported(path, "steps_on_a_gpu") as module:
        yield module


def given(seed: int) -> tuple[torch.Tensor, ...]:
    random = torch.Generator("cuda").manual_seed(seed)
    sizes = (64, 48), (48, 64), (64, 64), (32, 32)
    return tuple(torch.randn(size, device="cuda", generator=random) for size in sizes)


def expected(x: torch.Tensor, weight: torch.Tensor, table: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    second, first = (x @ weight).chunk(2, dim=1)
    turned = first * table[:, 32:] - second
    return turned + turned @ square


def right(module: ModuleType, seed: int) -> None:
    tensors = given(seed)
    torch.testing.assert_close(module._turning_run(*tensors), expected(*tensors), rtol=1e-4, atol=1e-4)


def test_it_is_written_anew_and_right(module: ModuleType) -> None:
    for seed in range(6):
        right(module, seed)
    assert module._turning_run.__name__ == "_turning_on_tensors"
    assert module._turning_run is not module._turning_on_tensors
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        right(module, 7)
    tensors = given(8)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = module._turning_run(*tensors)
    for tensor, new in zip(tensors, given(9), strict=True):
        tensor.copy_(new)
    graph.replay()
    torch.testing.assert_close(result, expected(*tensors), rtol=1e-4, atol=1e-4)
    behind = torch.randn(64 * 48 + 1, device="cuda")[1:].view(64, 48)  # no kernel reads it
    _, *others = given(10)
    tensors = behind, *others
    torch.testing.assert_close(module._turning_run(*tensors), expected(*tensors), rtol=1e-4, atol=1e-4)
    odd = torch.randn(64 * 64 + 1, device="cuda")[1:].view(64, 64)  # whose second half one reads
    x, weight, _, square = given(11)
    tensors = x, weight, odd, square
    torch.testing.assert_close(module._turning_run(*tensors), expected(*tensors), rtol=1e-4, atol=1e-4)


def test_profilers_see_the_kernels(module: ModuleType) -> None:
    for seed in range(6):
        right(module, seed)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        module._turning_run(*given(3))
        torch.cuda.synchronize()
    names = [one.key for one in profile.key_averages()]
    assert {"turned_kernel", "joined_kernel"} <= {*names}
