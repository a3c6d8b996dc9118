"""A kernel module that is imported before the file that it serves."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
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


TURNED = """
from torch import nn
from torch.nn import functional as F
from einops import rearrange


# mugraph: x=f32[4, 8, 2]
class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 8)

    def forward(self, x):
        x = rearrange(x, "b c n -> b n c")
        return F.silu(self.gate(x)) * x
"""


@pytest.fixture
def kernels_first(tmp_path, names, monkeypatch) -> ModuleType:
    """The kernel module of such a file, imported where neither the file nor einops are; it may run here."""
    from mugraph.research.launching import applied

    path = tmp_path / "turned_later.py"
    path.write_text(TURNED)
    assert applied(path, "h100")
    monkeypatch.syspath_prepend(str(tmp_path))
    names += [path.stem, f"{path.stem}_mugraph"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "einops"]:
        monkeypatch.delitem(sys.modules, name)
    kernels = importlib.import_module(f"{path.stem}_mugraph")
    assert "einops.einops.rearrange" in kernels._OUTSIDE_NAMES.values()
    monkeypatch.setattr(kernels, "_tested_gpu", lambda kind, index: True)
    monkeypatch.setattr(kernels, "_right_here", lambda *_: True)
    return kernels


def asked_of(kernels: ModuleType, file: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """The guard, of what a run of the file passes it."""
    [guard] = [name for name in vars(kernels) if name.endswith("_fits") and not name.startswith("_")]
    fits, given = getattr(kernels, guard), []
    monkeypatch.setattr(kernels, guard, lambda *these: given.append(these))
    with torch.no_grad():
        file.Turned().eval()(torch.randn(4, 8, 2))
    return torch.no_grad()(lambda: fits(*given[0]))


def test_a_library_that_the_file_imports_after_it(kernels_first, monkeypatch) -> None:
    """What sorts imports may put the kernels first. What such a library has is known once the file is there."""
    file = importlib.import_module("turned_later")
    fits = asked_of(kernels_first, file, monkeypatch)
    assert fits()
    monkeypatch.setattr(file, "rearrange", lambda x, _: x.mT.contiguous())
    assert not fits()


def test_what_is_not_the_librarys_own_is_not_taken_for_it(kernels_first, monkeypatch) -> None:
    """Something has put a function of its own into the library before the file was there."""

    def rearrange(x: torch.Tensor, _: str) -> torch.Tensor:
        return x.mT

    monkeypatch.setattr(importlib.import_module("einops"), "rearrange", rearrange)
    monkeypatch.setattr(sys.modules["einops.einops"], "rearrange", rearrange)
    assert not asked_of(kernels_first, importlib.import_module("turned_later"), monkeypatch)()
