"""Kernels written into one file leave those of another, which take over its functions, in force."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

import pytest
from mugraph.edit.apply import apply_files

ORIGINAL = """\
    def forward(self, x):
        y = x * 2  # twice
        return self.act(
            y + 1
        )
"""
EDITED = """\
    def forward(self, x):
        if mugraph_kernels.mlp_fits(self, x):  # mugraph: 3fa9c21b04
            y = mugraph_kernels.mlp(self, x)
        else:
            y = x * 2  # twice
        return self.act(
            (
                mugraph_kernels.mlp_2(y)  # mugraph: 7fa9c21b04
                if mugraph_kernels.mlp_2_fits(y)
                else y + 1
            )
        )
"""


@pytest.fixture
def kernels(gated_file: Path, maker: Any, source: str, part: str, load: Callable[[Path], Any]) -> ModuleType:
    """A kernel module, whose guards are asked."""
    apply_files(gated_file, [maker.plan(source, part)], maker.kernels)
    load(gated_file)
    return sys.modules["gated_model_mugraph"]


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FunctionType]:
    """Mlp.forward of a file with this text. names: what it imports."""

    def made(body: str, decorator: str = "", **names: object) -> FunctionType:
        path = tmp_path / "mlp.py"
        imports = "".join(f"import made_{name} as {name}\n" for name in names)
        path.write_text(f"{imports}class Mlp:\n{decorator}{body}")
        for name, value in names.items():
            monkeypatch.setitem(sys.modules, f"made_{name}", cast("ModuleType", value))
        module = ModuleType("mlp")
        monkeypatch.setitem(sys.modules, "mlp", module)
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
        return vars(vars(module)["Mlp"])["forward"]

    return made


def is_known(kernels: Any, function: FunctionType, text: str) -> bool:
    return kernels._meet(function, kernels._Code("Mlp.forward", text=text)) is not kernels._NEVER


def test_edited_after_it_was_analysed_and_reverted_after(kernels: ModuleType, running: Callable[..., FunctionType]):
    assert is_known(kernels, running(ORIGINAL), ORIGINAL)
    assert is_known(kernels, running(EDITED, mugraph_kernels=kernels), ORIGINAL)
    assert is_known(kernels, running(ORIGINAL), EDITED)
    assert is_known(kernels, running(EDITED, "    @same\n", mugraph_kernels=kernels, same=lambda one: one), ORIGINAL)


def test_what_is_no_edit_of_ours(kernels: ModuleType, running: Callable[..., FunctionType]):
    assert not is_known(kernels, running(EDITED, mugraph_kernels=ModuleType("kernels")), ORIGINAL), "another's module"
    assert not is_known(kernels, running(EDITED.replace("y + 1", "y + 2"), mugraph_kernels=kernels), ORIGINAL)
    assert not is_known(kernels, running(EDITED.replace("x * 2", "x * 3"), mugraph_kernels=kernels), ORIGINAL)
    assert not is_known(kernels, running(EDITED.replace("mlp_fits", "mlp_suits"), mugraph_kernels=kernels), ORIGINAL)
    assert not is_known(kernels, running(ORIGINAL.replace("y + 1", "y + 2")), EDITED)


def test_a_file_that_was_changed_since_it_was_imported(
    kernels: ModuleType, running: Callable[..., FunctionType], tmp_path: Path
):
    function = running(EDITED.replace("y + 1", "y + 2"), mugraph_kernels=kernels)
    (tmp_path / "mlp.py").write_text(f"class Mlp:\n{EDITED}")
    assert not is_known(kernels, function, ORIGINAL)
