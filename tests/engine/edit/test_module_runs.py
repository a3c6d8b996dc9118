"""The edited file gives the original's results, wherever and however it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mugraph.edit.apply import apply_files

GUARDS = (
    "type(self).__qualname__ == 'Gated'",
    "not self._forward_hooks",
    "not self._forward_pre_hooks",
    "not self.training",
    "self.scale == 1.0",
)


@pytest.fixture
def edited(gated_file, maker, source, part, load):
    plan = maker.plan(source, part, guards=GUARDS)
    apply_files(gated_file, [plan], maker.kernels)
    return load(gated_file)


@pytest.fixture
def original(source):
    namespace = {"__name__": "original"}
    exec(compile(source, "original", "exec"), namespace)
    return namespace["Gated"]().eval()


@pytest.fixture
def x():
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(1))


def counting(graphs):
    def backend(graph, inputs):
        graphs.append(graph.code)
        return graph

    return backend


def test_without_gpu_the_original_runs(edited, original, x):
    model = edited.model.Gated().eval()
    assert not edited.kernels.gated_fits(model, x)
    torch.testing.assert_close(model(x), original(x), rtol=0, atol=0)


def test_reference_is_the_original(edited, original, x):
    reference = edited.kernels._gated_reference(x, original.w, original.u)
    torch.testing.assert_close(reference + 1, original(x))


def test_kernel_runs_where_it_fits(edited, original, x, on_this_machine):
    log = on_this_machine(edited.kernels)
    with torch.no_grad():
        torch.testing.assert_close(edited.model.Gated().eval()(x), original(x))
    assert log == ["gate"]


@pytest.mark.parametrize(
    "case",
    ["shape", "dtype", "strides", "grad", "training", "constant", "hook", "autocast", "subclass", "vmap", "forward_ad"],
)
def test_anything_else_falls_back(case, edited, original, x, on_this_machine):
    log = on_this_machine(edited.kernels)
    model = edited.model.Gated().eval()
    if case == "shape":
        original.u = model.u = torch.nn.Parameter(torch.randn(16))
    elif case == "dtype":
        model, original, x = model.double(), original.double(), x.double()
    elif case == "strides":
        x = x.t().contiguous().t()
    elif case == "training":
        model.train()
    elif case == "constant":
        model.scale = 2.0
    elif case == "hook":
        model.register_forward_pre_hook(lambda module, inputs: None)
    elif case == "subclass":
        x = x.as_subclass(type("Tagged", (torch.Tensor,), {}))
    with torch.enable_grad() if case == "grad" else torch.no_grad():
        if case == "autocast":
            with torch.autocast("cpu", torch.bfloat16):
                got, expected = model(x), original(x)
        elif case == "vmap":
            got, expected = torch.vmap(model)(torch.stack([x, x])), torch.vmap(original)(torch.stack([x, x]))
        elif case == "forward_ad":
            with torch.autograd.forward_ad.dual_level():
                dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
                got, expected = (torch.autograd.forward_ad.unpack_dual(f(dual)).tangent for f in (model, original))
        else:
            got, expected = model(x), original(x)
        torch.testing.assert_close(got, expected)
    assert log == []


def test_gradients_are_the_originals(edited, original, x, on_this_machine):
    on_this_machine(edited.kernels)
    model = edited.model.Gated().eval()
    model(x).sum().backward()
    original(x).sum().backward()
    torch.testing.assert_close(model.w.grad, original.w.grad)


@pytest.mark.parametrize("fits", [False, True])
def test_compiles_without_a_graph_break(fits, edited, original, x, on_this_machine):
    log = on_this_machine(edited.kernels) if fits else []
    graphs: list[str] = []
    torch.compiler.reset()
    compiled = torch.compile(edited.model.Gated().eval(), fullgraph=True, backend=counting(graphs))
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), original(x))
        assert log == (["gate"] if fits else [])
        longer = torch.randn(1, 8)
        torch.testing.assert_close(compiled(longer), original(longer))  # other shapes: the original, in a second graph
    torch.testing.assert_close(compiled(x), original(x))  # gradients wanted: the original
    assert log == (["gate"] if fits else [])
    assert [("mugraph.gate_" in code) for code in graphs] == [fits, False, False]


def for_any_number_of_rows(model: torch.nn.Module) -> torch.nn.Module:
    """The program's own addend has four rows, and so would everything."""
    model.u = torch.nn.Parameter(torch.ones(1, 16))
    return model.eval()


@pytest.mark.parametrize("how", ["dynamic", "marked"])
def test_compiled_for_any_size_is_kept_so(how, edited, original, x, on_this_machine):
    on_this_machine(edited.kernels)
    model, original = for_any_number_of_rows(edited.model.Gated()), for_any_number_of_rows(original)
    graphs: list[str] = []
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend=counting(graphs), dynamic=how == "dynamic" or None)
    first = x.clone()
    if how == "marked":
        torch._dynamo.mark_dynamic(first, 0)
    with torch.no_grad():
        for given in (first, torch.randn(3, 8), torch.randn(7, 8)):
            torch.testing.assert_close(compiled(given), original(given))
    assert len(graphs) == 1


@pytest.mark.parametrize("strict", [False, True])
def test_exports_for_any_number_of_rows(strict, edited, original, x, on_this_machine):
    on_this_machine(edited.kernels)
    model, original = for_any_number_of_rows(edited.model.Gated()), for_any_number_of_rows(original)
    rows = torch.export.Dim("rows", min=2, max=64)
    with torch.no_grad():
        exported = torch.export.export(model, (x,), dynamic_shapes=({0: rows},), strict=strict)
        for given in (x, torch.randn(7, 8)):
            torch.testing.assert_close(exported.module()(given), original(given))


def test_compiles_under_functionalisation(edited, original, x, on_this_machine):
    log = on_this_machine(edited.kernels)
    torch.compiler.reset()
    compiled = torch.compile(edited.model.Gated().eval(), fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), original(x))
    assert log == ["gate"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("fits", [False, True])
def test_exports(fits, strict, edited, original, x, on_this_machine):
    if fits:
        on_this_machine(edited.kernels)
    with torch.no_grad():
        exported = torch.export.export(edited.model.Gated().eval(), (x,), strict=strict)
        torch.testing.assert_close(exported.module()(x), original(x))
    assert ("mugraph.gate_" in exported.graph_module.code) == fits


def test_operator_keeps_pytorchs_rules(edited, x, on_this_machine):
    on_this_machine(edited.kernels)
    inputs = (torch.randn(4, 16), torch.randn(4, 16))
    torch.library.opcheck(edited.kernels._gate.operator, inputs, test_utils=("test_schema", "test_faketensor"))


def test_a_watching_mode_sees_the_original(edited, x, on_this_machine):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    on_this_machine(edited.kernels)
    with torch.no_grad(), Watch():
        edited.model.Gated().eval()(x)
    assert any("silu" in name for name in seen)
    assert not any(name.startswith("mugraph.") for name in seen)


def test_without_triton_the_module_imports(gated_file, edited):
    script = (
        "import sys; sys.modules['triton'] = None\n"
        "import torch, gated_model, gated_model_mugraph as kernels\n"
        "m = gated_model.Gated().eval(); x = torch.ones(4, 8)\n"
        "assert not kernels._TRITON and not kernels.gated_fits(m, x)\n"
        "assert m(x).shape == (4, 16)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=gated_file.parent, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_kernel_itself_in_tritons_interpreter(gated_file, edited, tmp_path: Path):
    script = (
        "import torch, gated_model, gated_model_mugraph as kernels\n"
        "m = gated_model.Gated().eval(); x = torch.randn(4, 8)\n"
        "with torch.no_grad():\n"
        "    expected = m(x)\n"
        "    kernels._tested_gpu = lambda kind, index: True\n"
        "    assert kernels.gated_fits(m, x)\n"
        "    torch.testing.assert_close(m(x), expected)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=gated_file.parent,
        env={"TRITON_INTERPRET": "1", "HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_running_the_module_says_there_is_no_gpu(gated_file, edited):
    if torch.cuda.is_available():
        expected = "largest difference" if torch.cuda.get_device_capability() == (9, 0) else "not made for this GPU"
    else:
        expected = "There is no GPU here"
    run = subprocess.run(
        [sys.executable, "gated_model_mugraph.py"], cwd=gated_file.parent, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert expected in run.stdout
