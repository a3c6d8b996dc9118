"""Functions of a file with ranges of sizes, solved; and what was found for them run beside them at any sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from mugraph.events import Done
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_program
from mugraph.pipeline import Options, run_trace
from mugraph.sizes.proved import varying_of
from mugraph.sizes.table import at_sizes
from mugraph.trace.tracer import trace_file
from mugraph.triton_text.check import check_text
from mugraph.triton_text.ranges.check import check_ranges
from mugraph.tune.device import detect, resolve

from tests.engine.sizes.decoding import run
from tests.support.clock import FILE_S

_RUN = """\
import sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import {module}, kernels
torch.manual_seed(0)
for {names} in {sizes}:
    shapes = dict({shapes})
    given = {{name: torch.randn(*shape) for name, shape in shapes.items()}}
    wanted = {module}.{name}(*(given[name] for name in {module}.{name}.__code__.co_varnames[: len(given)]))
    got = kernels.launch_{kernel}({inputs})
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
print("right")
"""
Solved = tuple[TensorProgram, KernelSource, str]
Found = dict[str, Solved]
"""Function -> its program, what was found for it, and the arguments of its launcher."""


def solved(path: Path, functions: Collection[str], budget_s: float = 4.0) -> Found:
    """Of functions of one search unit each. budget_s: for the search of each, which ends before where it is complete"""
    device = detect()
    options = Options(target="h100", budget_s=budget_s, file_budget_s=FILE_S, measure=False)
    trace = trace_file(path)
    trace = replace(trace, regions=tuple(one for one in trace.regions if one.function in functions))
    events = run_trace(trace, device, resolve("h100", device), options, None)
    result = next(event.result for event in events if isinstance(event, Done))
    made: Found = {}
    for one in result.regions:
        (unit,) = one.units
        assert unit.solution is not None, one.region.function
        names = {live_in.value: live_in.expression for live_in in one.region.live_ins}
        source = unit.solution.source
        given = ", ".join(f"given[{names[unit.unit.inputs[tensor.name]]!r}]" for tensor in source.inputs)
        made[one.region.function] = unit.unit.program, source, given
    return made


def assert_joined_inside(solved: Solved) -> None:
    """Are tensors whose lengths vary joined inside of its kernels, proved for all sizes?"""
    program, source, _ = solved
    assert all(kernel.library is None for kernel in source.every)
    assert any(tensor.measures for tensor in program.tensors)
    assert not check_program(program)
    verdict = check_ranges(program, source, varying_of(program))
    assert verdict.passed, verdict.reason


def run_beside(path: Path, name: str, found: Found, shapes: str, sizes: str, names: str) -> None:
    """In Triton's interpreter. shapes: of the arguments, as `x=(3, n, 64)`, where `names` are each of `sizes`"""
    _, source, given = found[name]
    text = _RUN.format(
        folder=str(path.parent),
        module=path.stem,
        names=names,
        sizes=sizes,
        shapes=shapes,
        name=name,
        kernel=source.name,
        inputs=given,
    )
    run(text, source, path.parent)


def is_refused(solved: Solved, old: str, new: str, sizes: Mapping[str, int]) -> bool:
    """Is the text wrong with `new` in place of `old`: for z3, or at these sizes for what it computes?"""
    program, source, _ = solved
    text = source.standalone()
    assert old in text, text
    changed = text.replace(old, new, 1)
    if not check_ranges(program, source, varying_of(program), changed).passed:
        return True
    small, _ = at_sizes(program, [], {**program.sizes, **sizes})
    inputs, outputs = ([one.name for one in tensors] for tensors in (source.inputs, source.outputs))
    return not check_text(small, changed, f"launch_{source.name}", inputs, outputs).passed


def is_another_seam_refused(solution: Solved, old: str, new: str) -> bool:
    """As `is_refused`, where tensors of 7 elements along one axis are joined to others."""
    (by,) = {axis for tensor in solution[0].tensors for axis in tensor.measures}
    return is_refused(solution, old, new, {by: 7})
