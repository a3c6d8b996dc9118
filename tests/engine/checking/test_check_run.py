"""`mugraph check --run` around real programs whose file has a generated module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mugraph.checking.kept import last_check
from mugraph.edit.apply import apply_files
from mugraph.edit.revert import revert_file
from mugraph.edit.source.record import read_record
from mugraph.worker.kernel_checks import check_kernels

from tests.engine.edit.conftest import PART, SOURCE, Maker, gate_source

PYTHON = sys.executable
Check = Callable[..., "subprocess.CompletedProcess[str]"]

BEGIN = """
import os, subprocess, sys
import torch
from torch.nn import functional
import gated_model
import gated_model_mugraph as kernels

def here(module):
    module._tested_gpu = lambda kind, index: True
    module.launch_gate = lambda product, u: functional.silu(product) * u

def run(rows=4, calls=1):
    model = gated_model.Gated()
    with torch.no_grad():
        model.u = model.u if rows == 4 else torch.nn.Parameter(model.u[0])
        for _ in range(calls):
            model(torch.ones(rows, 8))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "gated_model.py"
    path.write_text(SOURCE)
    apply_files(path, [Maker({}).plan(SOURCE, PART, guards=("self.scale == 1.0",))], {"gate": gate_source()})
    return tmp_path


@pytest.fixture
def check(project: Path) -> Check:
    def run(*arguments: str, program: str = "") -> subprocess.CompletedProcess[str]:
        (project / "program.py").write_text(BEGIN + program)
        whole = [PYTHON, "-m", "mugraph.cli", "check", *arguments]
        return subprocess.run(whole, cwd=project, capture_output=True, text=True, env={**os.environ}, timeout=120)

    return run


def regions(run: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(run.stdout)["regions"]


def test_calls_of_all_processes_with_why_and_the_status(project: Path, check: Check):
    """By fork, by a worker of a DataLoader that ends without ceremony, by a program of its own."""
    program = """
import multiprocessing
def there(): run(2, 4); os._exit(0)
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 3
    def __getitem__(self, at): run(3); return at
if __name__ == "__main__":
    if sys.argv[1:] == ["again"]:
        run(4, 7); sys.exit()
    here(kernels)
    run(4, 5); run(2, 1)
    child = multiprocessing.get_context("fork").Process(target=there); child.start(); child.join()
    list(torch.utils.data.DataLoader(Rows(), num_workers=2, multiprocessing_context="fork"))
    gated_model.Gated()(torch.ones(4, 8))
    subprocess.run([sys.executable, __file__, "again"], check=True)
    print("out"); sys.exit(3)
"""
    run = check("--run", "--json", "--", PYTHON, "program.py", program=program)
    assert run.returncode == 3, run.stderr
    assert "out\n" in run.stderr, "what the program prints is not in the document"
    assert regions(run) == [
        {
            "function": "Gated.forward",
            "calls": 21,
            "taken": 5,
            "refused": [
                {"why": "no NVIDIA GPU here", "calls": 7},
                {"why": "x has 2 rows, the kernel is for 4", "calls": 5},
                {"why": "x has 3 rows, the kernel is for 4", "calls": 3},
                {"why": "a gradient is wanted", "calls": 1},
            ],
            "other_sizes": 0,
        }
    ]
    record = read_record(project / "gated_model_mugraph.py")
    assert record is not None
    path, words = project / "gated_model.py", "taken 5 of 21 calls in the last check; first refused: no NVIDIA GPU here"
    assert last_check(path)[record.regions[0].id].words == words
    assert [check.runs for check in check_kernels(path, path.read_text())] == [words], "for the editor"


def test_several_kernels_for_the_same_code_are_one_region(tmp_path: Path, check: Check):
    """What the first one refuses and the second takes is taken."""
    path = tmp_path / "gated_model.py"
    revert_file(path)
    guards = {"gate": "self.scale == 1.0", "other_gate": "self.scale == 2.0"}
    plans = [
        Maker({}).plan(SOURCE, PART, name=f"gated_{kernel}", guards=(guard,), kernel=kernel)
        for kernel, guard in guards.items()
    ]
    apply_files(path, plans, {kernel: gate_source(kernel) for kernel in guards})
    program = """
here(kernels)
kernels.launch_other_gate = lambda product, u: functional.silu(product) * u
model = gated_model.Gated()
with torch.no_grad():
    for model.scale in (1.0, 2.0, 2.0, 3.0):
        model(torch.ones(4, 8))
"""
    (region,) = regions(check("--run", "--json", "--", PYTHON, "program.py", program=program))
    assert (region["calls"], region["taken"]) == (4, 3)
    assert [one["calls"] for one in region["refused"]] == [1]


def test_the_program_computes_what_it_computes(check: Check):
    """Scripted, traced and compiled ones too; its output stays its own."""
    program = """
here(kernels)
model, x = gated_model.Gated(), torch.ones(4, 8)
with torch.no_grad():
    before = model(x)
    scripted = torch.jit.script(model)(x)
    traced = torch.jit.trace(model, x)(x)
    compiled = torch.compile(model, backend="eager", fullgraph=True)(x)
    exported = torch.export.export(model, (x,), strict=True).module()(x)
print([torch.allclose(one, before) for one in (scripted, traced, compiled, exported)], kernels.gated_fits.__name__)
print(sorted(name for name in vars(gated_model) if "mugraph" in name))
"""
    run = check("--run", "--", PYTHON, "program.py", program=program)
    assert (run.returncode, run.stdout) == (0, "[True, True, True, True] gated_fits\n['mugraph_kernels']\n"), run.stderr
    assert "gated_model.py: Gated.forward: its kernel took " in run.stderr
    assert "torch.jit traces it" in run.stderr


def test_a_compiled_program_runs_compiled_if_its_environment_says_so(check: Check, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "0")
    program = """
here(kernels)
graphs = []
with torch.no_grad():
    torch.compile(gated_model.Gated(), fullgraph=True, backend=lambda graph, _: graphs.append(graph) or graph)(
        torch.ones(4, 8)
    )
print("mugraph.gate" in graphs[0].code, "silu" in graphs[0].code)
"""
    run = check("--run", "--", PYTHON, "program.py", program=program)
    assert (run.returncode, run.stdout) == (0, "True False\n"), run.stderr


def test_a_command_after_which_json_is_asked_for(check: Check):
    """As the contract writes it; what stands before the dashes makes it the program's."""
    run = check("--run", "--", PYTHON, "program.py", "--json", program="print(sys.argv[1:])")
    assert run.stdout.startswith("{")
    assert "[]" in run.stderr
    run = check("--run", "--json", "--", PYTHON, "program.py", "--json", program="print(sys.argv[1:])")
    assert "['--json']" in run.stderr


def test_calls_of_other_sizes(check: Check):
    """Counted apart; and none is taken because the check was made as if its sizes were the kernel's."""
    program = """
here(kernels)
for rows in (4, 2, 4, 3, 3, 2):
    model = gated_model.Gated()
    with torch.no_grad():
        model.u = torch.nn.Parameter(torch.ones(rows, 16))
        model(torch.ones(rows, 8))
        model(torch.ones(rows, 8).half().float())
        if rows == 2:
            model.scale = 2.0
            model(torch.ones(rows, 8))
"""
    run = check("--run", "--json", "--", PYTHON, "program.py", program=program)
    [region] = regions(run)
    assert (region["calls"], region["taken"], region["other_sizes"]) == (14, 4, 8), run.stderr
    assert sum(one["calls"] for one in region["refused"]) == 10
    run = check("--run", "--", PYTHON, "program.py", program=program)
    said = "8 of 14 calls had other sizes, and nothing else that differs (x.shape[0] 2 to 3"
    assert said in run.stderr, run.stderr


def test_regions_that_are_never_called(check: Check):
    run = check("--run", "--json", "--", PYTHON, "program.py")
    assert regions(run) == [{"function": "Gated.forward", "calls": 0, "taken": 0, "refused": [], "other_sizes": 0}]


def test_without_a_generated_module(project: Path, check: Check):
    """One that only has its name is none."""
    (project / "own_mugraph.py").write_text("def own_fits(x): return False\n")
    run = check("--run", "--json", "--", PYTHON, "-c", "import own_mugraph; own_mugraph.own_fits(1)")
    assert (run.returncode, regions(run)) == (0, [])
    assert "the program imported no generated kernel module" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--run"], "what shall be run? write, for example: mugraph check --run -- python train.py"),
        (["--run", "--", "no-such-command"], "there is no command no-such-command"),
        (["--run", "python", "-q"], "No such option: -q"),
    ],
)
def test_a_bad_command_line(check: Check, arguments: list[str], sentence: str):
    run = check(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"mugraph: {sentence}")
    assert run.stderr.count("\n") == 1
