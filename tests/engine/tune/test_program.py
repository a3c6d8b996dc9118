"""What an applied program calls, with the user's own objects: here with kernel modules made by hand, on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from mugraph.recording.launch import record
from mugraph.recording.memory import pictured
from mugraph.tune.messages import DIFFERS, Applied
from mugraph.tune.program import NotCalled, entered
from mugraph.tune.timing import called_us

MODEL = """\
import torch
from torch import nn
import layer_mugraph as kernels


# mugraph: x=f16[2, 8]
class Layer(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.float16) * 3)

    def forward(self, x):
        y = x + 1
        if kernels.scaled_fits(self, y):
            return kernels.scaled(self, y)
        else:
            return y * self.weight
"""
BESIDE = {"factor.txt": "2"}
KERNELS = """\
import pathlib
asked = []
factor = int(pathlib.Path(__file__).with_name("factor.txt").read_text())


def scaled_fits(self, y):
    asked.append(type(self).__name__)
    return FITS


def scaled(self, y):
    return y * self.weight * factor
"""


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a program's run leaves behind is forgotten."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield
    for name in sys.modules.keys() - known:
        del sys.modules[name]


def applied(folder: Path, text: str = MODEL, fits: str = "y.shape == (2, 8)") -> Applied:
    kernels = KERNELS.replace("FITS", fits)
    path = folder / "layer.py"
    return Applied(str(path), text, "layer_mugraph", kernels, "Layer.forward", "scaled_fits", "scaled", BESIDE)


def test_the_guard_is_called_with_the_objects_of_the_program(tmp_path: Path) -> None:
    call = entered(applied(tmp_path), tmp_path, "cpu").call
    result = call()
    assert isinstance(result, torch.Tensor)
    assert result.shape == (2, 8)
    before = len(sys.modules["layer_mugraph"].asked)
    call()
    assert len(sys.modules["layer_mugraph"].asked) == before + 1
    assert sys.modules["layer_mugraph"].asked[-1] == "Layer"


@pytest.mark.parametrize(("sizes", "rows"), [(None, 64), ({"b": 1}, 1), ({"b": 7}, 7)])
def test_a_range_is_called_at_the_size_that_is_timed(sizes: dict[str, int] | None, rows: int, tmp_path: Path) -> None:
    text = MODEL.replace("# mugraph: x=f16[2, 8]", "# mugraph: b=1..64, x=f16[b, 8]")
    program = replace(applied(tmp_path, text, "1 <= y.shape[0] <= 64"), sizes=sizes)
    result = entered(program, tmp_path, "cpu").call()
    assert isinstance(result, torch.Tensor)
    assert result.shape == (rows, 8)


RECORDED = """\
import torch
from torch import nn
import layer_mugraph as kernels


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.factor = None

    def forward(self, x):
        y = x + 1
        if kernels.scaled_fits(self, y):
            return kernels.scaled(self, y)
        else:
            return y * self.weight


if __name__ == "__main__":
    layer = Layer(8).to(torch.bfloat16)
    layer.factor = 5
    with torch.no_grad():
        layer(torch.ones(8, 2, dtype=torch.bfloat16).t())
"""


def test_a_recorded_call_is_made_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its object has what was set after it was made, its tensors their strides; no constructor runs."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "layer.py").write_text(RECORDED)
    (tmp_path / "layer_mugraph.py").write_text("def scaled_fits(self, y): return False\n")
    assert record([sys.executable, str(tmp_path / "layer.py")]).status == 0
    fits = "(self.factor, self.weight.dtype, y.stride()) == (5, y.dtype, (1, 2))"
    known = replace(applied(tmp_path, RECORDED, fits), pictures=pictured(tmp_path / "layer.py", RECORDED))
    assert isinstance(entered(known, tmp_path, "cpu").call(), torch.Tensor)


def test_a_guard_that_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotCalled, match=r"guard of scaled refuses the call that it was made for \(.+\)$"):
        entered(applied(tmp_path, fits="False"), tmp_path, "cpu")


def test_so_is_which_of_its_checks_says_no(tmp_path: Path) -> None:
    with pytest.raises(NotCalled, match=r"refuses the call that it was made for \(.*y.*float16.*\)$"):
        entered(applied(tmp_path, fits="y.dtype is __import__('torch').float32"), tmp_path, "cpu")


def test_so_is_what_it_says_no_to_later(tmp_path: Path) -> None:
    """It was taken once, and is not any more."""
    call = entered(applied(tmp_path, fits="len(asked) < 100"), tmp_path, "cpu").call
    call()
    sys.modules["layer_mugraph"].asked += ["Layer"] * 100
    with pytest.raises(NotCalled, match=r"refuses the call that it was made for \(.*asked.*\)$"):
        call()


def test_so_is_what_a_module_says_of_itself(tmp_path: Path) -> None:
    damaged = applied(tmp_path, fits="False")
    text = "import warnings\nwarnings.warn(f'{__name__}: the kernels are not used: damaged')\n"
    with pytest.raises(NotCalled, match=r"\(the kernels are not used: damaged\)$"):
        entered(replace(damaged, module_text=text + damaged.module_text), tmp_path, "cpu")


def test_of_many_calls_that_which_is_taken(tmp_path: Path) -> None:
    """A block of each stage of a network is called for another size, and the kernels are made for one of them."""
    text = MODEL.replace("        y = x + 1\n", "        y = x + 1 if x.shape[0] == 1 else self(x[:1]) + x + 1\n")
    assert "self(x[:1])" in text
    call = entered(applied(tmp_path, text), tmp_path, "cpu").call
    assert cast("torch.Tensor", call()).shape == (2, 8)


def test_what_the_guard_says_is_told(tmp_path: Path) -> None:
    """Its kernels are tried at their first use."""
    warned = "__import__('warnings').warn('scaled: its kernel is not used: WRONG')"
    with pytest.raises(NotCalled, match=r"refuses the call that it was made for \(its kernel is not used: WRONG\)"):
        entered(applied(tmp_path, fits=warned), tmp_path, "cpu")


@pytest.mark.parametrize(("factor", "passes"), [("1", True), ("1.0001", False)])
def test_it_is_compared_on_the_tensors_that_the_program_has(factor: str, passes: bool, tmp_path: Path) -> None:
    """The weight is 3 there, whatever random numbers would be."""
    text = MODEL.replace("f16", "f32").replace("float16", "float32")
    known = applied(tmp_path, text)
    several = f"""

def scaled(self, y):
    return _scaled_on_tensors(y, self.weight)


def _scaled_on_tensors(y, weight):
    return y * weight * {factor}
"""
    known = replace(known, module_text=known.module_text.split("def scaled(")[0] + several)
    found, seen = entered(known, tmp_path, "cpu"), []

    def reference(y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        seen.append(weight)
        return y * weight

    said = found.differs(reference)
    assert all(bool((weight == 3).all()) for weight in seen)
    assert [weight.dtype for weight in seen] == [torch.float32, torch.float64]
    assert (said is None) == passes
    assert said is None or (said.startswith(DIFFERS) and said.endswith("on the program's own tensors"))
    assert cast("torch.Tensor", found.call()).shape == (2, 8)


def test_code_that_never_comes_to_the_region_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotCalled, match="no run of it reaches the region"):
        entered(applied(tmp_path, MODEL.replace("if kernels", "if x is None and kernels")), tmp_path, "cpu")


def test_code_that_raises_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotCalled, match="ValueError: no such width"):
        entered(applied(tmp_path, MODEL.replace("y = x + 1", 'raise ValueError("no such width")')), tmp_path, "cpu")


def test_a_region_that_another_entry_runs_is_found(tmp_path: Path) -> None:
    text = MODEL.replace("# mugraph: x=f16[2, 8]\n", "").replace(
        "class Layer", "# mugraph: x=f16[2, 8]\ndef run(x):\n    return Layer()(x)\n\n\nclass Layer"
    )
    assert isinstance(entered(applied(tmp_path, text), tmp_path, "cpu").call(), torch.Tensor)


def test_a_call_is_timed_until_the_device_has_done_it() -> None:
    """A stand-in for the device: calls are queued, and waited for once before and once after."""
    done: list[str] = []
    us = called_us(lambda: done.append("call"), lambda: done.append("wait"), 3)
    assert done == ["wait", "call", "call", "call", "wait"]
    assert us >= 0
