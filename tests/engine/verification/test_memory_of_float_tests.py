"""A float test holds the inputs, what eager PyTorch makes of them and what two runs of the kernel do. In float64 it
holds no more than some pieces, whatever the size of the tensors."""

from __future__ import annotations

import base64
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from mugraph.ir.program import TensorProgram
from mugraph.ir.text import parse_program
from mugraph.verification import float_child, float_inputs, scenario_run, unchanged
from mugraph.verification.pieces import pieces
from mugraph.verification.scenario_run import ScenarioRun
from mugraph.verification.unchanged import Unchanged

from tests.engine.verification.in_child import every_scenario
from tests.support.live_memory import LiveMemory

ROWS = """\
program rows
  axes b=512, n=512
  tensor x f32[b, n]
  x[b, n] = load(x)
  squares[b, n] = mul(x, x)
  sum[b] = sum(squares, over=n)
  root[b] = sqrt(sum)
  y[b, n] = div(x, root)
  output y -> y f32[b, n]
"""
WHOLE = """\
program whole
  axes n=262144
  tensor x f32[n]
  x[n] = load(x)
  squares[n] = mul(x, x)
  sum[] = sum(squares, over=n)
  root[] = sqrt(sum)
  y[n] = div(x, root)
  output y -> y f32[n]
"""
SCANNED = """\
program scanned
  axes n=4096
  tensor x f32[n]
  x[n] = load(x)
  y[n] = running_sum(x, over=n)
  output y -> y f32[n]
"""
LAUNCHER = """
import torch

def launch(x):
    norms = torch.linalg.vector_norm(x.view(512, 512), dim=-1, keepdim=True)
    norms = norms if x.dim() > 1 else torch.linalg.vector_norm(norms)
    return torch.div(x, norms, out=torch.empty_like(x))
"""
FULL = """
import torch

def launch(x):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB.")
"""
TENSOR = 4 << 18
PROGRAMS = {"rows": ROWS, "all of it": WHOLE}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the tensors had gigabytes."""
    for module in (float_child, scenario_run):
        monkeypatch.setattr(module, "PIECE", 1 << 11)
    monkeypatch.setattr(float_inputs, "pieces", partial(pieces, large=1 << 12))
    monkeypatch.setattr(float_inputs, "LARGE", 1 << 12)
    monkeypatch.setattr(unchanged, "COPIED", 1 << 10)
    monkeypatch.setattr(unchanged, "PART", 1 << 12)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_is_that_of_the_tensors_and_of_pieces(name: str, tmp_path: Path) -> None:
    program = parse_program(PROGRAMS[name])
    launch = float_child._load(LAUNCHER, "launch", tmp_path, 1)  # pyright: ignore[reportPrivateUsage]
    for scenario in ("normal", "rows", "cancellation", "ends"):
        generator = torch.Generator().manual_seed(0)
        with LiveMemory() as memory:
            drawn = float_inputs.make_inputs(program, scenario, generator)
        assert drawn is not None
        # The numbers and where they are placed, and then what eager PyTorch makes of them.
        assert memory.most_bytes < 3.3 * TENSOR, scenario
        run = ScenarioRun(program, launch, ["x"], ["y"], scenario, drawn, {})
        with LiveMemory() as memory:
            found = run.judged(True, generator)
        assert found.passed, found.reason
        assert memory.most_bytes < 2.3 * TENSOR, "of two runs"


def request(program: TensorProgram, text: str) -> dict[str, Any]:
    return {
        "number": 1,
        "module": text,
        "launcher": "launch",
        "program": base64.b64encode(pickle.dumps(program)).decode(),
        "inputs": ["x"],
        "outputs": ["y"],
        "seed": 0,
        "shapes": {},
    }


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("text", "said"),
    [(ROWS, "piece by piece"), (SCANNED, "all of it at once, as it has no axis")],
    ids=["rows", "scan"],
)
def test_too_little_memory_is_a_reason_that_says_how_it_is_compared(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match=r"9\.00 GiB more were asked for") as error:
        every_scenario(request(parse_program(text), FULL), tmp_path)
    assert said in str(error.value)


@pytest.mark.usefixtures("small_pieces")
def test_a_kernel_that_writes_to_a_large_input_is_seen(tmp_path: Path) -> None:
    writes = LAUNCHER.replace("    return", "    x[-1, 5] += 1e-6\n    return")
    (found,) = every_scenario(request(parse_program(ROWS), writes), tmp_path)
    assert "writes to its inputs" in (found.reason or "")


@pytest.mark.parametrize("size", [1 << 10, (1 << 14) + 3, (1 << 14) + 4])
@pytest.mark.usefixtures("small_pieces")
def test_each_bit_counts(size: int) -> None:
    memory = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    for place in {0, min(4095, size - 1), min(4096, size - 1), size - 1}:
        for bit in (1, 128):
            before = Unchanged([memory])
            assert before.holds
            memory[place] ^= bit
            assert not before.holds
            memory[place] ^= bit
            assert before.holds


@pytest.mark.usefixtures("small_pieces")
def test_what_changes_places_is_another() -> None:
    memory = torch.arange(1 << 14, dtype=torch.int64).view(torch.uint8)
    before = Unchanged([memory])
    memory.copy_(memory.view(torch.int64).flip(0).view(torch.uint8))
    assert not before.holds
