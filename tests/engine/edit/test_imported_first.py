"""A kernel module that is imported before the file that it serves."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch


@pytest.fixture
def names() -> Iterator[list[str]]:
    """Of modules that are forgotten afterwards."""
    found: list[str] = []
    yield found
    for name in found:
        sys.modules.pop(name, None)


def test_its_first_call_may_be_compiled(gated_file, maker, part, on_this_machine, names, monkeypatch) -> None:
    """Its test reads a name of the file more than once, so before all else: a compiler cannot follow the search for
    the file."""
    from mugraph.edit.apply import apply_files

    text = f"{gated_file.read_text()}\n\nSCALE = 0.5\n"
    gated_file = gated_file.with_name("imported_last.py")  # compilers remember modules by name
    gated_file.write_text(text)
    guards = ("_here['SCALE'] == 0.5", "_here['SCALE'] > 0")
    apply_files(gated_file, [maker.plan(text, part, guards=guards)], maker.kernels)
    [module] = gated_file.parent.glob("*_mugraph.py")
    monkeypatch.syspath_prepend(str(gated_file.parent))
    names += [module.stem, gated_file.stem]
    kernels = importlib.import_module(module.stem)
    model = importlib.import_module(gated_file.stem).Gated().eval()
    log = on_this_machine(kernels)
    torch.compiler.reset()
    x = torch.randn(4, 8)
    with torch.no_grad():
        compiled = torch.compile(model, fullgraph=True, backend="eager")(x)
        torch.testing.assert_close(compiled, torch.nn.functional.silu(x @ model.w) * model.u + 1)
    assert log == ["gate"]


def test_the_file_takes_the_place_of_a_module_of_its_name(
    gated_file, maker, part, on_this_machine, names, monkeypatch
) -> None:
    """Then there are as many modules as before."""
    from mugraph.edit.apply import apply_files

    text = gated_file.read_text()
    gated_file = gated_file.with_name("another.py")
    gated_file.write_text(text)
    apply_files(gated_file, [maker.plan(text, part)], maker.kernels)
    [module] = gated_file.parent.glob("*_mugraph.py")
    monkeypatch.syspath_prepend(str(gated_file.parent))
    names += [module.stem, gated_file.stem]
    monkeypatch.setitem(sys.modules, gated_file.stem, ModuleType(gated_file.stem))
    kernels = importlib.import_module(module.stem)
    log = on_this_machine(kernels)
    file = importlib.util.spec_from_file_location(gated_file.stem, gated_file)
    assert file is not None
    assert file.loader is not None
    sys.modules[gated_file.stem] = again = importlib.util.module_from_spec(file)
    file.loader.exec_module(again)
    with torch.no_grad():
        again.Gated().eval()(torch.randn(4, 8))
    assert log == ["gate"]
