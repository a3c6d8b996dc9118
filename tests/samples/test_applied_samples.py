"""Every sample with its kernels applied, on a machine without a GPU: the edited file is the program it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mugraph.edit.revert import revert_file
from torch import nn

from tests.samples.applied import AppliedSample, Target, fits, targets

pytestmark = pytest.mark.timeout(600)


def small(size: int) -> int:
    """Another size, with the same ones equal and the same ones dividing each other."""
    return size // 16 if size > 64 else size


@pytest.fixture(scope="session")
def functions(sample: AppliedSample) -> list[Target]:
    found = targets(sample)
    assert found, f"nothing of {sample.path.name} was replaced"
    return found


@pytest.fixture
def fitting(sample: AppliedSample, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every device counts as the one the kernels were made for, and a launch is only noted: tensors without memory
    can go the kernels' way."""
    launched: list[str] = []

    class Launch:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getitem__(self, grid: tuple[int, ...]) -> object:
            return lambda *arguments, **options: launched.append(self.name)

    monkeypatch.setattr(sample.kernels, "_tested_gpu", lambda kind, index: True)
    monkeypatch.setattr(sample.kernels, "_fitted", {})  # what is found to fit here does nowhere else
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind=None: False)  # no such question about "meta"
    for name in kernel_functions(sample.kernels):
        monkeypatch.setattr(sample.kernels, name, Launch(name))
    yield launched
    torch.compiler.reset()


def kernel_functions(kernels: ModuleType) -> list[str]:
    """The @triton.jit functions of a kernel module, or what stands in their place to launch them."""
    from triton.runtime.jit import KernelInterface

    return [name for name, value in vars(kernels).items() if isinstance(value, KernelInterface | kernels._Kernel)]


def reduced(target: Target, *, grad: bool = False) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn([small(size) for size in tensor.shape], generator=generator)
        .to(tensor.dtype)
        .requires_grad_(grad)
        for name, tensor in target.parameters.items()
    }


def both(target: Target, sample: AppliedSample) -> tuple:
    """The original and the edited callable, small, with the same parameters."""
    torch.manual_seed(0)
    original, edited = target.make(sample.original, small), target.make(sample.edited, small)
    if isinstance(original, nn.Module) and isinstance(edited, nn.Module):
        edited.load_state_dict(original.state_dict())
    return original, edited


def test_other_shapes_and_gradients_are_the_originals(sample, functions, fitting):
    for target in functions:
        original, edited = both(target, sample)
        with torch.no_grad():
            given = reduced(target)
            torch.testing.assert_close(edited(**given), original(**given), rtol=0, atol=0, msg=target.name)
        mine, other = reduced(target, grad=True), reduced(target, grad=True)
        edited(**mine).sum().backward()
        original(**other).sum().backward()
        for name in mine:
            torch.testing.assert_close(mine[name].grad, other[name].grad, rtol=0, atol=0, equal_nan=True)
    assert fitting == []


def test_on_a_cpu_nothing_fits(sample, functions):
    for target in functions:
        with torch.device("meta"), torch.no_grad():
            edited = target.make(sample.edited)
        assert not fits(sample, target, edited, target.parameters)


def test_the_kernels_way_gives_the_same_kind_of_tensor(sample, functions, fitting):
    """At the shapes the kernels were made for, with nothing but the launches left out."""
    for target in functions:
        with torch.device("meta"), torch.no_grad():
            original, edited = target.make(sample.original), target.make(sample.edited)
            expected = original(**target.parameters)
            fitting.clear()
            got = edited(**target.parameters)
        assert len(fitting) == target.launches > 0, target.name
        assert (got.shape, got.stride(), got.dtype) == (expected.shape, expected.stride(), expected.dtype)


def test_what_the_kernels_were_not_made_for_does_not_fit(sample, functions, fitting):
    for target in functions:
        with torch.device("meta"):
            edited = target.make(sample.edited)
            wanted = {name: tensor.clone().requires_grad_() for name, tensor in target.parameters.items()}
            wide = {name: tensor.float() for name, tensor in target.parameters.items()}
        with torch.no_grad():
            assert fits(sample, target, edited, target.parameters)
            assert fits(sample, target, edited, wanted)
        assert not fits(sample, target, edited, wanted)
        with torch.no_grad():
            fitting.clear()
            if isinstance(edited, nn.Module):
                for module in edited.children():
                    module.register_forward_hook(lambda module, inputs, output: None)
                if list(edited.children()):
                    edited(**target.parameters)
            else:
                edited(**wide)
        assert fitting == [], target.name


def test_compiles_without_a_graph_break(sample, functions):
    for target in functions:
        torch.compiler.reset()
        original, edited = both(target, sample)
        given = reduced(target)
        compiled = torch.compile(edited, fullgraph=True, backend="eager")
        with torch.no_grad():
            torch.testing.assert_close(compiled(**given), original(**given), rtol=0, atol=0)


def test_the_kernels_compile_into_the_graph(sample, functions, fitting):
    for target in functions:
        torch.compiler.reset()
        graphs: list[torch.fx.GraphModule] = []

        def backend(graph: torch.fx.GraphModule, inputs: object, graphs: list = graphs) -> torch.fx.GraphModule:
            graphs.append(graph)
            return graph

        with torch.device("meta"), torch.no_grad():
            edited, expected = target.make(sample.edited), target.make(sample.original)(**target.parameters)
            got = torch.compile(edited, fullgraph=True, backend=backend)(**target.parameters)
        assert operators(graphs) == sorted(target.kernel_names), target.name
        assert got.shape == expected.shape


def operators(graphs: list[torch.fx.GraphModule]) -> list[str]:
    """Names of the kernels that a graph calls, without the hash behind them."""
    called = [str(node.target) for graph in graphs for node in graph.graph.nodes if node.op == "call_function"]
    return sorted(name.split(".")[1].rpartition("_")[0] for name in called if name.startswith("mugraph."))


def test_modules_export(sample, functions):
    for target in functions:
        original, edited = both(target, sample)
        if not isinstance(edited, nn.Module):
            continue
        given = reduced(target)
        with torch.no_grad():
            exported = torch.export.export(edited, (), given)
            torch.testing.assert_close(exported.module()(**given), original(**given), rtol=0, atol=0)


def test_modules_export_with_their_kernels(sample, functions, fitting):
    for target in functions:
        with torch.device("meta"), torch.no_grad():
            edited = target.make(sample.edited)
            if isinstance(edited, nn.Module):
                exported = torch.export.export(edited, (), target.parameters)
                assert operators([exported.graph_module]) == sorted(target.kernel_names)


def test_reverts_to_the_byte(sample, tmp_path: Path):
    module = Path(sample.kernels.__file__ or "")
    here, beside = tmp_path / sample.path.name, tmp_path / module.name
    here.write_bytes(sample.path.read_bytes())
    beside.write_bytes(module.read_bytes())
    assert here.read_bytes() != sample.before
    assert revert_file(here).regions == len(sample.plans)
    assert here.read_bytes() == sample.before
    assert list(tmp_path.iterdir()) == [here]
