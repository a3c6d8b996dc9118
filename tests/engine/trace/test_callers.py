"""Functions that nothing says the shapes of have those with which another file of the project calls them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mugraph.ir.region import Region, Trace
from mugraph.trace.syntax import callers
from mugraph.trace.syntax.callers import Callers, callers_of
from mugraph.trace.syntax.imported_files import imported_files
from mugraph.trace.tracer import trace_file

ROTATED = """
import torch

def turned(t):
    first, second = t.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)

def rotated(t, cosine, sine):
    return t * cosine + turned(t) * sine
"""
PARTS = """
import torch
from torch import nn
from {dot}angles import rotated

class Gain(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, h):
        return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5) * self.gain

class Part(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = Gain(size)
        self.out = nn.Linear(size, size, bias=False)
        self.calls = 0

    def forward(self, h, cosine, sine):
        self.calls += 1
        made = self.out(self.gain(h))
        print(self.calls)
        return rotated(made, cosine, sine)

class Unused(nn.Module):
    def forward(self, h):
        return torch.softmax(h, -1)
"""
WHOLE = """
import torch
from {dot}parts import Part

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(Part({size}) for _ in range(2))

    def forward(self, h, cosine, sine):
        for part in self.parts:
            h = part(h, cosine, sine)
        return h

def get_inputs():
    return [torch.rand(6, {size}) for _ in range(3)]
"""


def _write(folder: Path, dot: str = "", size: int = 32) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "angles.py").write_text(ROTATED)
    (folder / "parts.py").write_text(PARTS.format(dot=dot))
    (folder / "whole.py").write_text(WHOLE.format(dot=dot, size=size))
    return folder


def _found(trace: Trace) -> list[tuple[str, str, tuple[int, ...]]]:
    return [
        (region.function, region.text, region.values[region.live_ins[0].value].shape)
        for region in trace.regions
        if region.status is None
    ]


@pytest.mark.parametrize("is_package", [False, True])
def test_a_files_parts_are_called_from_another_file(tmp_path: Path, is_package: bool) -> None:
    folder = _write(tmp_path / "net", "." if is_package else "")
    if is_package:
        (folder / "__init__.py").touch()
    found = trace_file(folder / "parts.py", check=True)
    assert (found.errors, found.shapes_from) == ((), (str(folder / "whole.py"),))
    assert _found(found) == [
        ("Part.forward", "made = self.out(self.gain(h))", (6, 32)),
        ("Part.forward", "rotated(made, cosine, sine)", (6, 32)),
    ]
    assert [region.function for region in found.regions if region.status == "needs-shapes"] == ["Unused.forward"]
    helper = trace_file(folder / "angles.py", check=True)  # whole.py imports it through parts.py
    assert [function for function, _, _ in _found(helper)] == ["rotated"]
    whole = trace_file(folder / "whole.py")
    assert list(whole.elsewhere) == [str(folder / "parts.py")], "what angles.py does is part of a region of parts.py"
    assert [name.partition(",")[0] for name in whole.elsewhere[str(folder / "parts.py")]] == ["Part.forward"] * 2


def test_what_is_said_of_a_function_itself_comes_first(tmp_path: Path) -> None:
    folder = _write(tmp_path / "net")
    text = (folder / "parts.py").read_text().replace("class Gain", "# mugraph: h=f16[4, 16], init(size=16)\nclass Gain")
    found = trace_file(folder / "parts.py", source=text)
    assert {(function, shape) for function, _, shape in _found(found)} == {
        ("Gain.forward", (4, 16)),
        ("Part.forward", (6, 32)),
    }
    assert trace_file(folder / "parts.py", source=text, qualname="Gain").shapes_from == ()


def test_which_files_run_can_be_said(tmp_path: Path) -> None:
    folder = _write(tmp_path / "net")
    (folder / "another.py").write_text(WHOLE.format(dot="", size=48))
    shapes = {str(path.name): _shapes(folder, path) for path in (folder / "another.py", folder / "whole.py")}
    assert shapes == {"another.py": {(6, 48)}, "whole.py": {(6, 32)}}
    (folder / "apart.py").write_text("# mugraph: h=f32[3]\ndef apart(h):\n    return h * 2\n")
    found = trace_file(folder / "parts.py", callers=Callers((folder / "apart.py",), each=True))
    assert found.notices == ("the run of apart.py calls nothing of parts.py",)


def _shapes(folder: Path, caller: Path) -> set[tuple[int, ...]]:
    return {shape for _, _, shape in _found(trace_file(folder / "parts.py", callers=Callers((caller,), each=True)))}


def test_a_caller_that_ends_the_process_takes_nothing_away(tmp_path: Path) -> None:
    folder = _write(tmp_path / "net")
    (folder / "whole.py").write_text("import os, parts\nos._exit(3)\n# mugraph: h=f32[3]\ndef f(h): return h\n")
    text = (folder / "parts.py").read_text().replace("class Gain", "# mugraph: h=f16[4, 16], init(size=16)\nclass Gain")
    found = trace_file(folder / "parts.py", source=text)
    assert found.errors == ()
    assert [function for function, _, _ in _found(found)] == ["Gain.forward"]
    assert found.notices[-1].startswith("how whole.py would call it is not known: parts.py ended the process")
    (folder / "whole.py").write_text("import parts, nowhere_to_be_found\n# mugraph: h=f32[3]\ndef f(h): return h\n")
    (said,) = trace_file(folder / "parts.py").notices
    assert said.startswith("whole.py does not say how parts.py is called: whole.py cannot be imported: ModuleNotFound")


RANGED = """
import torch
from parts import Gain

# mugraph: rows=2..64, h=f16[rows, 32]
class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = Gain(32)

    def forward(self, h):
        print("called")
        return self.gain(h)
"""


def test_sizes_in_ranges_come_along(tmp_path: Path) -> None:
    folder = _write(tmp_path / "net")
    (folder / "whole.py").write_text(RANGED)
    found = trace_file(folder / "parts.py")
    (region,) = [one for one in found.regions if one.function == "Gain.forward"]
    assert _ranges(region) == {"rows": (2, 64)}


def _ranges(region: Region) -> dict[str, Any]:
    assert region.dynamic is not None
    return {one.name: (one.least, one.largest) for one in region.dynamic.ranges}


def test_files_are_looked_for_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    package = _write(tmp_path / "net", ".")
    (package / "__init__.py").touch()
    scripts = tmp_path / "tests"
    scripts.mkdir()
    (scripts / "test_it.py").write_text("from net.parts import Part\n# mugraph: h=f32[3]\n")
    (tmp_path / "run.py").write_text("import net.whole\n# mugraph: h=f32[3]\n")
    (tmp_path / "other.py").write_text("import parts\n# mugraph: h=f32[3]\n")
    assert callers_of(package / "parts.py") == [package / "whole.py", tmp_path / "run.py"]
    assert callers_of(package / "whole.py") == [tmp_path / "run.py"]


def test_a_large_project_is_parsed_once_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files import each other in a ring, and a chain leads from one that says shapes to the file in question."""
    (tmp_path / "pyproject.toml").touch()
    many = 60
    for number in range(many):
        following = f"import part_{(number + 1) % many}\nimport part_{(number * 7 + 3) % many}\n"
        (tmp_path / f"part_{number}.py").write_text(following)
    parsed: list[Path] = []

    def counted(path: Path, text: str) -> Iterator[Path]:
        parsed.append(path)
        return imported_files(path, text)

    monkeypatch.setattr(callers, "imported_files", counted)
    assert callers_of(tmp_path / "part_9.py") == []
    assert parsed == []
    (tmp_path / "far.py").write_text("import near\nimport part_8\n\n# mugraph: x=f32[4]\ndef f(x): ...\n")
    (tmp_path / "near.py").write_text("from part_9 import f\n\ndef get_inputs(): ...\n")
    (tmp_path / "alone.py").write_text("import numpy\n\ndef get_inputs(): ...\n")
    assert callers_of(tmp_path / "part_9.py") == [tmp_path / "near.py", tmp_path / "far.py"]
    assert len(parsed) == len(set(parsed)) == many + 3
