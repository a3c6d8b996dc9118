"""Programs whose sizes vary, with what a search finds for them, and kernels run in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.split_schedules import split_candidates
from mugraph.search.topologies.limits import Limits
from mugraph.sizes.table import SizeTable
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.ranged import ranged_units

TARGET = TARGETS["h200"]
DECODE = """\
import torch


# mugraph: {sizes}, q=f16[2, 4, 64], keys=f16[2, {keys}, 64], values=f16[2, {keys}, 64]
def decode(q, keys, values):
    scores = torch.einsum("bqd,bnd->bqn", q, keys) * 0.25
    return torch.einsum("bqn,bnd->bqd", torch.softmax(scores, dim=-1), values)
"""


RUN = """\
import sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import kernels
torch.manual_seed(0)
for n in {sizes}:
    q, keys, values = (torch.randn(2, rows, 64, dtype=torch.float16) for rows in (4, n, n))
    keys[:, n // 2] *= 8  # most of what counts is in one of the parts
    got = kernels.launch_decode(q, keys, values)
    scores = q.double() @ keys.double().mT * 0.25
    torch.testing.assert_close(got.double(), torch.softmax(scores, -1) @ values.double(), rtol=2e-3, atol=2e-3)
print("right")
"""


@dataclass(frozen=True)
class Made:
    """blocks: topologies of one kernel. candidates: those that are split, the best first"""

    program: TensorProgram
    blocks: list[BlockGraph]
    candidates: list[Candidate]
    table: SizeTable

    @property
    def kernels(self) -> list[tuple[BlockGraph, Schedule]]:
        return [(kernel.block, kernel.schedule) for kernel in self.candidates[0].kernels]

    @property
    def axis(self) -> str:
        (axis,) = self.program.least
        return axis


def made_of(text: str, folder: Path) -> Made:
    path = folder / "code.py"
    path.write_text(text)
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in ranged_units(region)[0] if isinstance(unit, SearchUnit)]
    blocks = [found.block for found in Search(unit.program, Limits(seconds=5)).run()]
    candidates = split_candidates(blocks, TARGET, varying=unit.program.least)
    outputs = [tensor.name for tensor in unit.program.outputs.values()]
    return Made(unit.program, blocks, candidates, SizeTable(unit.program, TARGET, outputs))


def run(command: str, source: KernelSource, folder: Path) -> None:
    (folder / "kernels.py").write_text(source.standalone())
    around = {**os.environ, "TRITON_INTERPRET": "1"}
    ran = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False, env=around)
    assert ran.stdout.strip() == "right", ran.stderr[-2000:]
