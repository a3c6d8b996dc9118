"""`mugraph record` around real programs: what they do stays what it was, and what they called is remembered."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mugraph.recording.memory import pictured, recorded, recorded_shapes
from mugraph.trace.tracer import trace_file

from .conftest import Record

PYTHON = sys.executable

MODEL = '''
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class Config:
    dim: int = 8
    heads: int = 2
    act: type = nn.ReLU

class Block(nn.Module):
    """Doc."""
    def __init__(self, config, dtype=torch.float32, *, scale):
        super().__init__()
        self.lin = nn.Linear(config.dim, config.dim, dtype=dtype)
        self.act = config.act()
        self.scale = scale

    def forward(self, x, mask=None, causal=True):
        return scaled(self.act(self.lin(x)), self.scale)

def scaled(x, factor):
    return x * factor

def cached(x, cache):
    return x + cache.value

class Cache:
    value = 1.0
'''
SCRIPT = """
import sys, os
from pkg.model import Block, Cache, Config, cached
import torch

def main_only(x):
    return x.sum()

block = Block(Config(16, act=torch.nn.GELU), scale=2)
with torch.no_grad():
    for _ in range(3):
        block(torch.zeros(4, 16))
    block(torch.zeros(2, 16), causal=False)
    main_only(torch.ones(5, dtype=torch.int64))
    cached(torch.zeros(3), Cache())
print("out", *sys.argv[1:], __name__, __spec__, __package__, os.path.basename(__file__), os.path.basename(sys.path[0]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "app" / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text(MODEL)
    (package / "__main__.py").write_text("from pkg import run\nprint(__name__, __package__)\nrun.go()\n")
    (package / "run.py").write_text(
        "import torch\nfrom pkg.model import scaled\ndef go(): print(scaled(torch.ones(7, 2).half(), 3).shape)\n"
    )
    (tmp_path / "app" / "script.py").write_text(SCRIPT)
    return tmp_path / "app"


def test_a_script(project: Path, record: Record):
    script = project / "script.py"
    alone = subprocess.run([PYTHON, str(script), "--lr", "1"], capture_output=True, text=True)
    run = record(PYTHON, str(script), "--lr", "1")
    assert (run.returncode, run.stdout) == (0, alone.stdout), run.stderr
    assert "Block.forward with 2 sets of shapes" in run.stderr
    assert "of the run" in run.stderr

    model = project / "pkg" / "model.py"
    sets = recorded(model)
    assert set(sets) == {"Block.forward", "scaled", "cached"}
    often, once = sorted(sets["Block.forward"], key=lambda one: -one.calls)  # the first call may take longest
    assert (often.arguments, often.calls) == ({"x": "f32[4, 16]"}, 3)
    assert often.init == {"config": "Config(dim=16, act=nn.GELU)", "scale": "2"}
    assert (once.arguments, once.calls) == ({"x": "f32[2, 16]", "causal": "False"}, 1)
    assert often.devices == ["cpu"]
    assert not often.gradients
    assert sets["cached"][0].opaque == {"cache": "Cache"}, "no comment could describe it; its picture has it"
    assert sets["cached"][0].usable
    assert recorded(script)["main_only"][0].arguments == {"x": "i64[5]"}

    for pictures in ({}, pictured(model, MODEL)):
        trace = trace_file(model, recorded_shapes=recorded_shapes(model, MODEL), pictures=pictures)
        assert trace.errors == ()
        by_function = {region.function: region.status for region in trace.regions}
        assert by_function["Block.forward"] is None, "built and traced as the program did"


def test_a_module_of_a_package(project: Path, record: Record):
    run = record(PYTHON, "-m", "pkg", PYTHONPATH=str(project))
    assert (run.returncode, run.stdout) == (0, "__main__ pkg\ntorch.Size([7, 2])\n"), run.stderr
    assert recorded(project / "pkg" / "model.py")["scaled"][0].arguments == {"x": "f16[7, 2]", "factor": "3"}


def test_pytest(project: Path, record: Record):
    (project / "test_it.py").write_text(
        "import torch\nfrom pkg.model import scaled\n"
        "def test_it():\n    assert scaled(torch.ones(3, 2), 2).sum() == 12\n"
    )
    run = record(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(project), PYTHONPATH=str(project))
    assert run.returncode == 0, run.stdout
    assert recorded(project / "pkg" / "model.py")["scaled"][0].arguments == {"x": "f32[3, 2]", "factor": "2"}


@pytest.mark.parametrize(
    ("ending", "status"),
    [("raise SystemExit(7)", 7), ("1 / 0", 1), ("os._exit(5)", 5), ("os.kill(os.getpid(), 9)", 137)],
)
def test_however_it_ends(tmp_path: Path, record: Record, ending: str, status: int):
    script = tmp_path / "ends.py"
    script.write_text(
        f"import os, torch\ndef f(x): return x\nf(torch.zeros(2, 3))\nprint('out', flush=True)\n{ending}\n"
    )
    run = record(PYTHON, "ends.py")
    assert (run.returncode, run.stdout) == (status, "out\n")
    assert recorded(script)["f"][0].arguments == {"x": "f32[2, 3]"}
    if "/" in ending:
        assert "line 5, in <module>" in run.stderr, "tracebacks keep their lines"


def test_processes_that_the_program_starts(tmp_path: Path, record: Record):
    """By fork, by multiprocessing's spawn, by a shell."""
    (tmp_path / "work.py").write_text("def f(x):\n    return x\ndef g(x):\n    return x\ndef h(x):\n    return x\n")
    (tmp_path / "one.py").write_text("import torch, work\nwork.h(torch.zeros(3))\n")
    (tmp_path / "many.py").write_text(
        "import os, torch, work, multiprocessing, subprocess, sys\n"
        "def there(n): work.g(torch.zeros(n))\n"
        "if __name__ == '__main__':\n"
        "    work.f(torch.zeros(1))\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        work.f(torch.zeros(1)); work.f(torch.zeros(2)); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "    child = multiprocessing.get_context('spawn').Process(target=there, args=(5,))\n"
        "    child.start(); child.join(); assert child.exitcode == 0\n"
        "    subprocess.run(f'{sys.executable} one.py', shell=True, check=True)\n"
    )
    run = record(PYTHON, "many.py")
    assert run.returncode == 0, run.stderr
    sets = recorded(tmp_path / "work.py")
    assert sorted(one.arguments["x"] for one in sets["f"]) == ["f32[1]", "f32[2]"]
    assert [one.arguments for one in sets["g"]] == [{"x": "f32[5]"}]
    assert [one.arguments for one in sets["h"]] == [{"x": "f32[3]"}]


def test_pytorchs_own_tracers_see_what_they_would_see(tmp_path: Path, record: Record):
    script = tmp_path / "tracers.py"
    script.write_text(
        "import torch\n"
        "class M(torch.nn.Module):\n"
        "    def __init__(self, d: int):\n"
        "        super().__init__(); self.l = torch.nn.Linear(d, d)\n"
        "    def forward(self, x):\n"
        "        return act(self.l(x))\n"
        "def act(x):\n"
        "    return torch.relu(x) * x.shape[0]\n"
        "m, x = M(4).eval(), torch.ones(2, 4)\n"
        "print(torch.jit.script(m)(x).shape)\n"
        "print(torch.jit.trace(m, x).graph)\n"
        "print(torch.fx.symbolic_trace(act).graph)\n"
        "for strict in (False, True):\n"
        "    print(torch.export.export(m, (x,), strict=strict).graph)\n"
        "    sizes = {'x': {0: torch.export.Dim('b')}}\n"
        "    print(torch.export.export(m, (x,), strict=strict, dynamic_shapes=sizes).graph)\n"
        "print(torch.func.vmap(act)(x), torch.func.grad(lambda x: act(x).sum())(x))\n"
        "print(torch.compile(m)(x).shape)\n"
    )
    alone = subprocess.run([PYTHON, str(script)], capture_output=True, text=True, env=_eager())
    run = record(PYTHON, str(script))
    assert run.returncode == alone.returncode == 0, run.stderr
    without = re.compile(r"/.*?/")  # folders in what the graphs say of their origin
    assert without.sub("", run.stdout) == without.sub("", alone.stdout)
    assert "Warning" not in run.stderr or "Warning" in alone.stderr
    assert recorded(script)["M.forward"][0].arguments == {"x": "f32[2, 4]"}


def _eager() -> dict[str, str]:
    return {**os.environ, "TORCH_COMPILE_DISABLE": "1"}


def test_what_is_compiled_runs_as_it_is_written(tmp_path: Path, record: Record):
    """A whole graph too; but what the environment says of it counts."""
    (tmp_path / "compiled.py").write_text(
        "import torch\n"
        "def act(x):\n"
        "    return torch.relu(x)\n"
        "graphs = []\n"
        "run = torch.compile(act, fullgraph=True, backend=lambda graph, _: graphs.append(graph) or graph)\n"
        "for _ in range(3): run(torch.ones(2, 4))\n"
        "print(len(graphs))\n"
    )
    run = record(PYTHON, "compiled.py")
    assert (run.returncode, run.stdout) == (0, "0\n"), run.stderr
    assert recorded(tmp_path / "compiled.py")["act"][0].calls == 3
    run = record(PYTHON, "compiled.py", TORCH_COMPILE_DISABLE="0")
    assert (run.returncode, run.stdout) == (0, "1\n"), run.stderr


def test_values_of_tensors_are_never_kept(tmp_path: Path, record: Record):
    (tmp_path / "secret.py").write_text(
        "import torch\ndef f(x, y): return x\nf(torch.full((3,), 271828.0), [torch.tensor(314159)])\n"
    )
    assert record(PYTHON, "secret.py").returncode == 0
    kept = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert b"f32[3]" in kept
    assert b"271828" not in kept
    assert b"314159" not in kept


def test_the_help_says_what_is_kept_of_masks():
    said = subprocess.run([PYTHON, "-m", "mugraph.cli", "record", "--help"], capture_output=True, text=True)
    assert "causal mask" in " ".join(said.stdout.split())


def test_a_signal_goes_to_the_program(tmp_path: Path):
    (tmp_path / "waits.py").write_text(
        "import signal, sys, time, torch\n"
        "def f(x): return x\n"
        "f(torch.zeros(2))\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    command = [PYTHON, "-m", "mugraph.cli", "record", "--", PYTHON, "waits.py"]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGTERM)
    assert run.wait(10) == 9
    assert recorded(tmp_path / "waits.py")["f"][0].arguments == {"x": "f32[2]"}


def test_wrong_usage_is_one_sentence(record: Record):
    for run in (record(), record("no-such-command")):
        assert run.returncode == 2
        assert run.stdout == ""
        assert re.fullmatch(r"mugraph: .*\n", run.stderr)


def test_a_program_that_is_not_watched_says_so(tmp_path: Path, record: Record):
    (tmp_path / "plain.py").write_text("print('hello')\n")
    run = record(PYTHON, "-I", "plain.py")
    assert (run.returncode, run.stdout) == (0, "hello\n")
    assert "no function" in run.stderr


def test_the_environments_own_sitecustomize_still_runs(tmp_path: Path, record: Record):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.custom = 42\n")
    (tmp_path / "plain.py").write_text(
        "import sys, sitecustomize\nprint(custom, any('mugraph_rec' in m for m in sys.path))\n"
    )
    run = record(PYTHON, "plain.py", PYTHONPATH=str(tmp_path / "site"))
    assert run.stdout == "42 False\n", run.stderr


def test_recordings_are_json_that_a_damaged_file_does_not_break(tmp_path: Path, record: Record):
    (tmp_path / "one.py").write_text("import torch\ndef f(x): return x\nf(torch.zeros(2))\n")
    assert record(PYTHON, "one.py").returncode == 0
    [file] = (tmp_path / "cache" / "recordings").iterdir()
    assert json.loads(file.read_text())["path"] == os.path.realpath(tmp_path / "one.py")
    file.write_text('{"path": 3')
    assert recorded(tmp_path / "one.py") == {}
    began = time.monotonic()
    assert recorded_shapes(tmp_path / "other.py", "x = 1") == {}
    assert time.monotonic() - began < 1
