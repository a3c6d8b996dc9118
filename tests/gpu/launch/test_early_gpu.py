"""Kernels that start while the kernel before them ends give, bit for bit, what they give one after the other: many
times over, as called and in graphs, with the allocator's memory going from one to the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mugraph.codegen.early import WAIT
from mugraph.edit.module.entry import on_tensors
from mugraph.research.early import FORMS, NONE, Chain, chain
from mugraph.research.on_device import small_inputs
from mugraph.tune.device import detect, resolve

from tests.support.modules import imported

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() < (9, 0), reason="no GPU that can"
    ),
    pytest.mark.timeout(600),
]

CALLS = 200
PROGRAMS = ("attention", "norms_2", "projections", "norms_4")
Call = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]


@pytest.fixture(scope="module", params=PROGRAMS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    one = chain(request.param, tmp_path_factory.mktemp("chains"), resolve("auto", detect()), 3.0)
    assert any(kernel.early for source in one.ways["loading"].values() for kernel in source.kernels)
    assert WAIT not in one.texts[NONE]
    return one


@contextlib.contextmanager
def called(one: Chain, way: str, folder: Path) -> Generator[tuple[ModuleType, Call]]:
    path = folder / f"{one.name}_{way}.py"
    path.write_text(one.texts[way])
    with imported(path, path.stem) as module:
        yield module, getattr(module, on_tensors(one.plan))


def drawn(one: Chain, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(seed)
    return [
        (torch.randn(spec.shape, device="cuda", generator=generator) * spec.scale).half()
        for spec in small_inputs(one.plan)
    ]


def bits(result: torch.Tensor | tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    results = result if isinstance(result, tuple) else (result,)
    return [tensor.clone().view(torch.int16) for tensor in results]


def disturb(seed: int) -> None:
    """Memory of the sizes that kernels hand over, full of NaN, given back at once."""
    held = [torch.full((size + 8 * (seed % 5),), float("nan"), device="cuda") for size in (64, 1024, 4096, 131072)]
    del held


@pytest.mark.parametrize("form", FORMS)
def test_as_called(form: str, found: Chain, tmp_path: Path) -> None:
    with called(found, NONE, tmp_path) as (_, usual), called(found, form, tmp_path) as (module, early):
        assert WAIT in Path(str(module.__file__)).read_text()
        given = [drawn(found, seed) for seed in range(4)]
        expected = [bits(usual(*tensors)) for tensors in given]
        torch.cuda.synchronize()
        for number in range(CALLS):
            disturb(number)
            at = number % len(given)
            result = bits(early(*given[at]))
            assert all(torch.equal(a, b) for a, b in zip(result, expected[at], strict=True)), number


@pytest.mark.parametrize("form", FORMS)
def test_one_call_after_another(form: str, found: Chain, tmp_path: Path) -> None:
    """Nothing of PyTorch's is between the calls."""
    with called(found, NONE, tmp_path) as (_, usual), called(found, form, tmp_path) as (_, early):
        given = [drawn(found, seed) for seed in range(4)]
        expected = [bits(usual(*tensors)) for tensors in given]
        for _ in range(3):
            bits(early(*given[0]))
        torch.cuda.synchronize()
        results = [early(*given[number % 4]) for number in range(CALLS)]
        for number, result in enumerate(results):
            assert all(torch.equal(a, b) for a, b in zip(bits(result), expected[number % 4], strict=True)), number


@pytest.mark.parametrize("form", FORMS)
def test_in_a_graph(form: str, found: Chain, tmp_path: Path) -> None:
    """What a replay computes is used at once by the next one."""
    with called(found, NONE, tmp_path) as (_, usual), called(found, form, tmp_path) as (_, early):
        inputs = drawn(found, 9)
        for _ in range(3):
            early(*inputs)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = [early(*inputs) for _ in range(4)]
        for number in range(CALLS):
            for tensor, other in zip(inputs, drawn(found, number % 3), strict=True):
                tensor.copy_(other)
            disturb(number)
            graph.replay()
            expected = bits(usual(*inputs))
            for result in results:
                assert all(torch.equal(a, b) for a, b in zip(bits(result), expected, strict=True)), number
