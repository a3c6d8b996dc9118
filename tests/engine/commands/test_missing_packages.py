"""A package that is missing is named, with what to install, by every command; `mugraph doctor` answers without it."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from mugraph.dependencies import PACKAGES, required
from packaging.requirements import Requirement

from tests.support.bare_python import BarePython

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="made of symbolic links")
TEXT = """\
import torch


# mugraph: x=f16[8, 64]
def product(x):
    return x @ x.T
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))


def test_the_table_is_that_of_the_distribution():
    stated = [one for one in map(Requirement, requires("mugraph") or []) if "extra" not in str(one.marker)]
    assert set(PACKAGES.values()) == {one.name for one in stated}
    here = {one.name: one.specifier for one in stated if one.marker is None or one.marker.evaluate()}
    known = required()
    assert known is not None
    assert {name: Requirement(f"{name}{versions}").specifier for name, versions in known.items()} == here


@pytest.mark.parametrize(
    "without",
    [
        ("torch",),
        ("typer",),
        ("rich", "triton"),
        ("msgspec", "packaging", "psutil", "numpy"),
        ("sqlalchemy", "igraph", "z3", "z3_solver"),
        ("mugraph",),
        ("mugraph", "packaging", "watchdog", "pygls"),
    ],
    ids="-".join,
)
def test_doctor_answers(tmp_path: Path, without: tuple[str, ...]):
    python = BarePython(tmp_path / "python", without)
    packages = {PACKAGES[name] for name in without if name in PACKAGES}
    said = python.run("-m", "mugraph", "doctor", "--json")
    assert said.stderr == ""
    assert said.returncode == (1 if packages else 0)
    found = {finding["what"]: finding for finding in json.loads(said.stdout)["findings"]}
    assert {what for what, finding in found.items() if finding["state"] == "problem"} == packages
    for name in packages:
        assert re.match(rf"pip install '?{name}", found[name]["advice"])
    assert ("metadata" in found.get("mugraph", {"found": ""})["found"]) == ("mugraph" in without)


def test_doctor_answers_in_plain_text(tmp_path: Path):
    said = BarePython(tmp_path / "python", ("rich", "typer")).run("-m", "mugraph", "doctor")
    assert (said.stderr, said.returncode) == ("", 1)
    assert "problem  rich: not installed\n         -> pip install 'rich" in said.stdout


@pytest.mark.parametrize(
    ("without", "commands"),
    [
        ("torch", ["optimize model.py", "optimize model.py --json", "verify --ugraph g.json model.py", "bench"]),
        ("triton", ["optimize model.py", "bench"]),
        ("typer", ["optimize model.py", "revert model.py", "record -- true", "server --stdio"]),
        ("msgspec", ["revert model.py", "record -- true"]),
        ("sqlalchemy", ["optimize model.py"]),
        ("pygls", ["server --stdio"]),
        ("psutil", ["server --stdio"]),
    ],
)
def test_commands_name_it(tmp_path: Path, without: str, commands: list[str]):
    python = BarePython(tmp_path / "python", (without,))
    (tmp_path / "model.py").write_text(TEXT)
    (tmp_path / "g.json").write_text("[]")
    for command in commands:
        said = python.run("-m", "mugraph", *command.split(), folder=tmp_path)
        name = PACKAGES[without]
        assert said.returncode == 1, command
        assert said.stdout == ""
        assert re.fullmatch(rf"mugraph: {name} is not installed in \S+, .*: pip install '{name}.*'\n", said.stderr)


def test_what_only_drawings_need_is_named_where_one_is_asked_for(tmp_path: Path):
    """A region is searched without it."""
    python = BarePython(tmp_path / "python", ("igraph",))
    (tmp_path / "model.py").write_text(TEXT)
    said = python.run("-m", "mugraph", "optimize", "model.py", folder=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    code = """
import sys
from types import SimpleNamespace
from pathlib import Path
from mugraph.events import Done
from mugraph.pipeline import Options, run
from mugraph.protocol.messages import Draw
from mugraph.worker.answers import NoAnswer, answer
*_, done = run(Path(sys.argv[1]), options=Options(target="h100", budget_s=1.0, measure=False))
assert isinstance(done, Done)
known = SimpleNamespace(results={"key": done.result.regions[0]})
try:
    answer(Draw(1, "file:///model.py", "key", "svg"), known, None)
except NoAnswer as why:
    print(why)
"""
    drawn = python.run("-c", code, str(tmp_path / "model.py"), folder=tmp_path)
    assert re.fullmatch(r"igraph is not installed in \S+, .*: pip install 'igraph.*'\n", drawn.stdout), drawn.stderr


def test_the_engine_names_it(tmp_path: Path):
    """Its last words are what the server explains."""
    said = BarePython(tmp_path / "python", ("msgspec",)).run("-m", "mugraph.worker")
    assert said.returncode == 1
    assert said.stderr.count("\n") == 1
    assert "msgspec is not installed" in said.stderr


def test_a_package_that_the_users_file_imports(tmp_path: Path):
    """Nothing is known of the distribution's name, so the Python is named that lacks it."""
    python = BarePython(tmp_path / "python", ("einops",))
    (tmp_path / "model.py").write_text(f"import einops\n{TEXT}")
    said = python.run("-m", "mugraph", "optimize", "model.py", folder=tmp_path)
    assert said.returncode == 1
    (line,) = said.stderr.splitlines()
    assert "No module named 'einops' (line 1)" in line
    assert str(python.path) in line


def test_a_sample_annotated_for_jaxtyping_is_traced_without_it(tmp_path: Path):
    python = BarePython(tmp_path / "python", ("jaxtyping",))
    sample = Path(__file__).parents[3] / "samples" / "mha.py"
    code = "import sys, pathlib; from mugraph.trace.tracer import trace_file"
    code += "; t = trace_file(pathlib.Path(sys.argv[1])); print([one.status for one in t.regions], t.errors)"
    assert python.run("-c", code, str(sample)).stdout == "[None, None] ()\n"
