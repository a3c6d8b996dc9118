"""How many parts a container has is asked once, and again when its parts change: a guard that is asked in C says True
without looking. The tensors of a region of several steps are then given by C as well."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mugraph.edit.module.straight import lasting
from mugraph.ir.ran import Ran
from torch import nn

X = (4, 32)
TEXT = """
import torch
from torch import nn


# mugraph: x=f32[4, 32]
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(32, 32), nn.SiLU())])

    def forward(self, x):
        x = self.layers(x).cumprod(-1)
        for block in self.blocks:
            x = block(x)
        return x
"""


@pytest.fixture
def loaded(written, load_with_c):
    return load_with_c(written)


def asked(loaded):
    """A model whose answer is known, by the name of its first region, and what that was asked of."""
    model, given = loaded.model.Stack().eval(), []
    guards = {f"{one}_fits": vars(loaded.kernels)[f"{one}_fits"] for one in loaded.kernels._PATHS}
    name = next(one for one in loaded.kernels._PATHS if f"_{one}_on_tensors" in vars(loaded.kernels))
    fits = guards[f"{name}_fits"]
    vars(loaded.kernels).update(dict.fromkeys(guards, lambda *_: False))
    vars(loaded.kernels)[f"{name}_fits"] = lambda *these: given.append(these)
    try:
        with torch.no_grad():
            model(torch.randn(X))
    finally:
        vars(loaded.kernels).update(guards)
    with torch.no_grad():
        assert [fits(*given[0]) for _ in range(8)] == [True] * 8
    return model, name, fits, given[0]


def test_nothing_is_left_to_be_asked_in_python(loaded) -> None:
    _, name, _, given = asked(loaded)
    with torch.no_grad():
        assert vars(loaded.kernels)[f"_{name}_known"](*given)
    tree = ast.parse(Path(loaded.kernels.__file__).read_text())
    test = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == f"_{name}_fits")
    at_once = next(one for one in ast.walk(test) if isinstance(one, ast.If))
    assert ast.unparse(at_once.body[0]) == "return True"


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.layers.append(nn.SiLU()),
        lambda model: model.layers.insert(0, nn.SiLU()),
        lambda model: model.layers.__delitem__(3),
        lambda model: model.layers.__setitem__(1, nn.GELU()),
        lambda model: model.layers._modules.update({"4": nn.SiLU()}),
        lambda model: setattr(model, "layers", nn.Sequential(*model.layers[:3])),
    ],
)
def test_other_parts_are_noticed(change: Callable[[nn.Module], object], loaded) -> None:
    model, name, fits, given = asked(loaded)
    change(model)
    with torch.no_grad():
        assert not vars(loaded.kernels)[f"_{name}_known"](*given)
        assert [fits(*given) for _ in range(4)] == [False] * 4


def test_another_part_of_the_same_kind_is_read(loaded) -> None:
    model, name, fits, given = asked(loaded)
    model.layers[0] = nn.Linear(32, 32).eval()
    with torch.no_grad():
        assert not vars(loaded.kernels)[f"_{name}_known"](*given)
        assert [fits(*given) for _ in range(8)] == [True] * 8


def test_tensors_are_given_where_a_region_has_several_steps(loaded) -> None:
    model, name, _, given = asked(loaded)
    tensors = vars(loaded.kernels)[f"_{name}_given"](*given)
    assert all(isinstance(one, torch.Tensor) for one in tensors)
    assert any(one is model.layers[0].weight for one in tensors)
    model.layers[0] = nn.Linear(32, 32).eval()
    assert vars(loaded.kernels)[f"_{name}_given"](*given) is None


@pytest.mark.parametrize(
    ("guard", "kind", "lasts"),
    [
        ("len(self.layers) == 4", "torch.nn.modules.container", True),
        ("len(self.other) == 4", "torch.nn.modules.container", False),
        ("len(self.layers) == 4", "", False),  # a class of the user's may count in its own way
        ("len(self.layers) == self.count", "torch.nn.modules.container", False),
    ],
)
def test_whose_length_lasts(guard: str, kind: str, lasts: bool) -> None:
    assert lasting(guard, {"self.layers": Ran(library=kind, is_module=True)}) == lasts
