"""`python -m mugraph.research.combining [NAME ...] [--json FILE]`, on a GPU: what it gains that the last block of a
group combines what all of it have stored (codegen/last_block.py), where a reduction is split across the grid.

Each program is searched without measuring. Its split reductions that the cost model has first, which need not be what
it has first of all, are timed in one interleaved run, replayed as a CUDA graph and as called: as two kernels ("one
after the other"), as one launch in each of its forms ("combined in the same launch"), and both with kernels that start
while the one before them ends. A form whose text or results are wrong is not timed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from mugraph.codegen.lower import lower_kernels
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.ir.block import Candidate
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.optimizer.nodes import node_of
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.research.candidates import ranked
from mugraph.research.early import medians, searched
from mugraph.research.on_device import OnDevice, is_right, small_inputs
from mugraph.solve.ahead import kernels_of_module
from mugraph.solve.launch_verdict import verified_as_one
from mugraph.solve.one_launch import with_steps
from mugraph.solve.overlapping import COMBINED, USUAL, Way, ways_of
from mugraph.solve.testing import output_names
from mugraph.solve.tools import Tools
from mugraph.solve.writing import kernels_of, named
from mugraph.targets import Target
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import detect, resolve
from mugraph.tune.measure import CALLED, METHOD, Measurer
from mugraph.tune.messages import Subject
from mugraph.verification.float_test import FloatTester

BUDGET_S = 3.0
MOST = 3
"""Split reductions of one program, at most."""
_PRODUCT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[{rows}, 4096], g=f16[4096], w=f16[6144, 4096]
def rmsnorm_linear(x, g, w):
    return F.linear(F.rms_norm(x, (4096,), g, 1e-6), w)
"""
PROGRAMS: Mapping[str, str] = {
    "rmsnorm_linear_1": _PRODUCT.format(rows=1),
    "rmsnorm_linear_16": _PRODUCT.format(rows=16),
    "gated_mlp_1": """\
import torch
import torch.nn.functional as F


# mugraph: x=f16[1, 4096], w1=f16[4096, 4096], w2=f16[4096, 4096]
def gated_mlp(x, w1, w2):
    return F.silu(F.linear(x, w1)) * F.linear(x, w2)
""",
    "gqa_decode": """\
import torch
import torch.nn.functional as F


# mugraph: q=f16[2, 8, 128], k=f16[2, 8192, 128], v=f16[2, 8192, 128]
def decode(q, k, v):
    return F.softmax(q @ k.transpose(1, 2) * 128**-0.5, dim=-1) @ v
""",
    "long_row": """\
import torch


# mugraph: x=f32[1, 1048576]
def norm(x):
    return x.pow(2).sum(-1).sqrt()
""",
}


class Row(msgspec.Struct):
    """One split reduction, in words of its schedules. Microseconds of a call by how its kernels are launched, None
    where that could not be run; wrong: why forms were not timed; right: whether the results are those of the code."""

    program: str
    pair: str
    device_us: dict[str, float | None]
    called_us: dict[str, float | None]
    wrong: dict[str, str]
    right: dict[str, bool]


class Found(OnDevice, kw_only=True):
    rows: list[Row]


@dataclass(frozen=True)
class Pair:
    """A split reduction, in all ways in which its kernels may be launched."""

    program: str
    words: str
    ways: Mapping[str, Way]
    path: Path

    @property
    def plan(self) -> RegionPlan:
        return self.ways[USUAL].plan

    def subject(self, name: str, target: Target) -> Subject:
        """With the runtime that calls have: the counters of a launch are then none of its time."""
        way = self.ways[name]
        text = module_text([way.plan], way.sources, original_path=self.path, target=target, alone=True)
        return Subject(name, text, on_tensors(way.plan))


def pairs(name: str, folder: Path, target: Target, budget_s: float = BUDGET_S, most: int = MOST) -> Iterator[Pair]:
    """The split reductions of a program that may be one launch, the best by estimate first. Raises ValueError where its
    region is not one search unit."""
    path = folder / f"{name}.py"
    path.write_text(PROGRAMS[name], encoding="utf-8")
    result = searched(path, target, budget_s)
    steps = [] if result.plan is None else [step for step in result.plan.steps if isinstance(step, KernelStep)]
    if result.plan is None or len(steps) != 1:
        raise ValueError(f"{name}: its region is not one search unit ({result.reason})")
    (step,) = steps
    with FloatTester() as tester:
        found = ranked(step.unit.program, Tools(target, tester), budget_s)
    count = 0
    for candidate in found:
        usual = _as_plan(result.plan, step, candidate, target)
        ways = ways_of(usual, target, early=True) if usual is not None else {}
        if COMBINED in ways:
            yield Pair(name, _words(candidate), ways, path)
            count += 1
        if count == most:
            return


def _as_plan(plan: RegionPlan, step: KernelStep, candidate: Candidate, target: Target) -> Way | None:
    """The plan with a candidate's kernels in the place of those of its only step."""
    candidate = named(candidate, step.kernel.name)
    kernels, program = kernels_of(candidate), step.unit.program
    if len(kernels) != 2:
        return None
    try:
        source: KernelSource = lower_kernels(kernels, target=target, outputs=output_names(program), program=program)
    except Rejected:
        return None
    first, *then = (node_of(*kernel) for kernel in kernels)
    own = replace(step, kernel=first, then=tuple(then), one_launch=(), combined=())
    return Way(with_steps(plan, [own if one is step else one for one in plan.steps]), {first.name: source})


def _words(candidate: Candidate) -> str:
    said = [" ".join(f"{axis}/{tile}" for axis, tile in schedule.grid) for _, schedule in kernels_of(candidate)]
    warps = ", ".join(f"{schedule.num_warps} warps" for _, schedule in kernels_of(candidate))
    return f"{' then '.join(said)}; {warps}"


def measured(found: Pair, target: Target, measurer: Measurer, pool: CompilePool, tester: FloatTester) -> Row:
    wrong: dict[str, str] = {}
    for name, way in found.ways.items():
        for step in way.plan.steps:
            if isinstance(step, KernelStep) and step.combined:
                own = step.kernel.name
                verdict = verified_as_one(step, way.sources[own], way.made_of[own], tester, target)
                wrong |= {} if verdict.passed else {name: verdict.reason or ""}
    subjects = [found.subject(name, target) for name in found.ways if name not in wrong]
    for one in subjects:
        pool.ask([*kernels_of_module(one.source, found.ways[one.name].sources.values())])
    for one in subjects:
        pool.compile([*kernels_of_module(one.source, found.ways[one.name].sources.values())])
    right = {one.name: is_right(one, found.plan, measurer) for one in subjects}
    times = measurer.compare_called(subjects, small_inputs(found.plan), "", None)
    return Row(found.program, found.words, medians(times.device), medians(times.called), wrong, right)


def table(rows: Sequence[Row]) -> str:
    """As text: a line for each way of each split reduction."""
    lines = [["program", "launched", "device", "called", "right"]]
    for row in rows:
        lines.append([row.program, row.pair, "", "", ""])
        for name in [*row.device_us, *row.wrong]:
            times = [us.get(name) for us in (row.device_us, row.called_us)]
            said = ["" if us is None else f"{us:.2f}" for us in times]
            agrees = "yes" if row.right.get(name) else "NO"
            lines.append(["", name, *said, f"WRONG: {row.wrong[name]}" if name in row.wrong else agrees])
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]) - 1)]
    return "\n".join("  ".join([*map(str.ljust, line, widths), line[-1]]).rstrip() for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.combining")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--seconds", type=float, default=BUDGET_S, help="of search for a program")
    parser.add_argument("--most", type=int, default=MOST, help="split reductions of a program")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - PROGRAMS.keys():
        parser.error(f"no program is called {', '.join(sorted(unknown))}")
    device = detect()
    if device.kind != "gpu":
        print(device.note or "there is no GPU here to measure on", file=sys.stderr)
        return 1
    target, rows = resolve("auto", device), list[Row]()
    with (
        tempfile.TemporaryDirectory() as folder,
        Measurer() as measurer,
        CompilePool() as pool,
        FloatTester(device="cuda") as tester,
    ):
        measurer.begin()
        pool.begin()
        for name in given.names or PROGRAMS:
            try:
                for pair in pairs(name, Path(folder), target, given.seconds, given.most):
                    rows.append(measured(pair, target, measurer, pool, tester))
            except ValueError as error:
                print(error, file=sys.stderr)
        hello = measurer.hello()
    found = Found(device=hello.device, versions=hello.versions, device_method=METHOD, called_method=CALLED, rows=rows)
    print(f"{found.device}, {', '.join(f'{name} {version}' for name, version in found.versions.items())}; microseconds")
    print(table(rows))
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
