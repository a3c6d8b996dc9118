"""A file that its own package imports, as most packages' __init__ does: it is run once, as one module."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from mugraph.ir.region import Region, Trace
from mugraph.trace.picture import Picture
from mugraph.trace.request import Request
from mugraph.trace.syntax.package import package_of
from mugraph.trace.tracer import trace_file

MODEL = """\
import torch
from torch import nn

from .helpers import Base, doubled

RUNS = doubled.__globals__.setdefault("RUNS", [])
RUNS.append(__name__)
assert len(RUNS) == 1, "it is run twice"


class Norm(Base):
    def __init__(self, width=32):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def scaled(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def forward(self, x):
        return self.scaled(x) * self.weight


def turned(x, w):
    return x @ w


# mugraph: x=f32[4, 32], w=f32[32, 32]
def layer(x, w):
    y = turned(x, w)
    return doubled(y).relu()


# mugraph: x=f32[4, 32]
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.linear = nn.Linear(32, 32)

    def forward(self, x):
        return x + self.linear(self.norm(x))
"""
HELPERS = """\
from torch import nn


class Base(nn.Module):
    pass


def doubled(x):
    return x + x
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    package = tmp_path / "decoders"
    package.mkdir()
    (package / "__init__.py").write_text("from .model import Layer\n\n__all__ = ['Layer']\n")
    (package / "helpers.py").write_text(HELPERS)
    (package / "model.py").write_text(MODEL)
    return package / "model.py"


def found(trace: Trace) -> dict[str, Region]:
    assert trace.errors == ()
    return {region.function: region for region in trace.regions if region.status is None}


def test_functions_and_methods_are_inlined(model: Path) -> None:
    regions = found(trace_file(model))
    assert len(regions["layer"].calls) == 3
    assert "turned" in regions["layer"].ran
    assert {"Norm", "Layer"} & set(regions["Layer.forward"].ran) == {"Norm"}
    assert regions["Layer.forward"].calls[-1].target == "Tensor.add"


def test_the_text_that_is_traced_may_be_newer_than_the_file(model: Path) -> None:
    newer = MODEL.replace("return x @ w", "return (x @ w) * 2.0")
    regions = found(trace_file(model, source=newer))
    assert len(regions["layer"].calls) == 4
    assert model.read_text() == MODEL


ABSOLUTE = MODEL.replace("from .helpers", "from decoders.helpers")


def project(folder: Path, text: str, *marks: str) -> Path:
    """A package in a project whose own folder has an `__init__.py`."""
    package = folder / "project" / "decoders"
    package.mkdir(parents=True)
    for one in (folder / "project", package):
        (one / "__init__.py").write_text("")
    for mark in marks:
        (folder / "project" / mark).write_text("")
    (package / "helpers.py").write_text(HELPERS)
    (package / "model.py").write_text(text)
    return package / "model.py"


def test_a_projects_own_folder_is_no_package(tmp_path: Path) -> None:
    path = project(tmp_path, ABSOLUTE, "pyproject.toml")
    assert package_of(path) == (path.parents[1], "decoders.model", "decoders")
    assert len(found(trace_file(path))["layer"].calls) == 3


@pytest.mark.parametrize("text", [MODEL.replace("from .helpers", "from ..decoders.helpers"), MODEL])
def test_it_is_one_for_a_file_that_climbs_to_it_or_where_nothing_says_project(tmp_path: Path, text: str) -> None:
    path = project(tmp_path, text, *(["setup.py"] if text != MODEL else []))
    assert package_of(path) == (tmp_path, "project.decoders.model", "project.decoders")
    assert len(found(trace_file(path))["layer"].calls) == 3


def test_the_name_that_a_run_has_imported_it_by_decides(tmp_path: Path) -> None:
    path = project(tmp_path, ABSOLUTE)
    assert package_of(path, "decoders.model") == (path.parents[1], "decoders.model", "decoders")
    assert package_of(path.parent / "__init__.py", "decoders") == (path.parents[1], "decoders", "decoders")
    assert package_of(path, "__main__") == package_of(path)
    picture = Picture(None, {}, {}, 0, [], "decoders.model")
    session = Request(str(path), pictures={"layer": picture})
    assert session.imported_as == "decoders.model"
    assert Request(str(path), pictures={"layer": replace(picture, of_session=True)}).imported_as is None


OF_PACKAGE = """\
import torch

{imported}


# mugraph: x=f32[4, 32], w=f32[32, 32]
def layer(x, w):
    return doubled(x @ w).relu()
"""


@pytest.mark.parametrize(
    "imported", ["from .helpers import doubled", "from decoders.helpers import doubled", "from .helpers import *"]
)
def test_a_packages_own_file(tmp_path: Path, imported: str) -> None:
    """It imports the package's other modules, and these import it."""
    package = tmp_path / "decoders"
    package.mkdir()
    (package / "helpers.py").write_text(f"import decoders\n\nassert decoders.__path__\n{HELPERS}")
    text = OF_PACKAGE.format(imported=imported)
    (package / "__init__.py").write_text(text)
    region = found(trace_file(package / "__init__.py"))["layer"]
    assert [call.target for call in region.calls] == ["Tensor.matmul", "Tensor.add", "Tensor.relu"]
