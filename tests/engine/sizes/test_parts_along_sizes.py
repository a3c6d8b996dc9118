"""Rows that are joined to a tensor of any length, and parts of one along the axis whose size varies: read inside of the
kernel, proved for all sizes, right at sizes that no test has drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.ir.text.parser import parse_program
from mugraph.ir.text.printer import format_program
from mugraph.pipeline import Options, run_trace
from mugraph.sizes.proved import varying_of
from mugraph.sizes.table import at_sizes
from mugraph.trace.tracer import trace_file
from mugraph.triton_text.check import check_text
from mugraph.triton_text.ranges.check import check_ranges
from mugraph.tune.device import detect, resolve
from mugraph.units.ranged import ranged_units

from tests.engine.sizes.decoding import run

CODE = """\
import torch
import torch.nn.functional as F


# mugraph: t=2..300, x=f32[3, t, 64]
def steps(x):
    d = x[:, 1:] - x[:, :-1]
    return (d * d).mean(-1)


# mugraph: t=1..200, prompt=f32[3, 7, 64], x=f32[3, t, 64], w=f32[64]
def prompted(prompt, x, w):
    return F.rms_norm(torch.cat((prompt, x), dim=1), (64,), w)


# mugraph: s=1..250, q=f32[2, 2, 64], cache=f32[2, s, 64], k=f32[2, 3, 64], stored=f32[2, s, 32], v=f32[2, 3, 32]
def decode(q, cache, k, stored, v):
    keys, values = torch.cat((cache, k), dim=1), torch.cat((stored, v), dim=1)
    return torch.softmax(q @ keys.mT * 0.125, dim=-1) @ values


# mugraph: s=1..100, t=1..60, x=f16[2, s, 64], y=f16[2, t, 64]
def both(x, y):
    return F.rms_norm(torch.cat((x, y), dim=-2), (64,))
"""
RUN = """\
import sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import code_, kernels
torch.manual_seed(0)
for n in {sizes}:
    shapes = dict({shapes})
    given = {{name: torch.randn(*shape) for name, shape in shapes.items()}}
    wanted = code_.{name}(*(given[name] for name in code_.{name}.__code__.co_varnames[: len(given)]))
    got = kernels.launch_{kernel}({inputs})
    assert got.shape == wanted.shape, (n, got.shape)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
print("right")
"""
SHAPES = {
    "steps": "x=(3, n, 64)",
    "prompted": "prompt=(3, 7, 64), x=(3, n, 64), w=(64,)",
    "decode": "q=(2, 2, 64), cache=(2, n, 64), k=(2, 3, 64), stored=(2, n, 32), v=(2, 3, 32)",
}
Found = dict[str, tuple[TensorProgram, KernelSource, str]]
"""Function -> its program, what was found for it, and the arguments of its launcher."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    (folder / "code_.py").write_text(CODE)
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> Found:
    device = detect()
    options = Options(target="h100", budget_s=4.0, measure=False)
    trace = trace_file(folder / "code_.py")
    trace = type(trace)(**{**vars(trace), "regions": tuple(one for one in trace.regions if one.function in SHAPES)})
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


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_read_inside_of_the_kernel(found: Found, name: str) -> None:
    program, source, _ = found[name]
    assert all(kernel.library is None for kernel in source.every)
    assert any(tensor.windows for tensor in program.tensors)
    assert parse_program(format_program(program)) == program
    verdict = check_ranges(program, source, varying_of(program))
    assert verdict.passed, verdict.reason


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_right_at_other_sizes(found: Found, folder: Path, name: str) -> None:
    _, source, given = found[name]
    sizes = [2, 3, 8, 41, 200] if name == "steps" else [1, 2, 5, 29, 64, 187]
    shapes = SHAPES[name]
    text = RUN.format(folder=str(folder), sizes=sizes, shapes=shapes, name=name, kernel=source.name, inputs=given)
    run(text, source, folder)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("steps", " + 1) * ", ") * "),
        ("steps", " + 1) * ", " + 2) * "),
        ("steps", "x_ptr + 64 +", "x_ptr +"),
        ("steps", "x_ptr + 64 +", "x_ptr + 128 +"),
        ("prompted", " - 7", " - 6"),
        ("prompted", " - 7", " - 8"),
        ("prompted", "< 7)", "< 8)"),
        ("prompted", ">= 7)", ">= 6)"),
        ("decode", " - 3", " - 2"),
        ("decode", " - 3", " - 4"),
        ("decode", "shape[1] + 3", "shape[1] + 4"),
    ],
)
def test_another_seam_is_refused(found: Found, name: str, old: str, new: str) -> None:
    """By z3 where something outside of a tensor is read, by what the text computes where another place is."""
    program, source, _ = found[name]
    text = source.standalone()
    assert old in text, text
    changed = text.replace(old, new, 1)
    if not check_ranges(program, source, varying_of(program), changed).passed:
        return
    (axis,) = program.least
    names = [[one.name for one in tensors] for tensors in (source.inputs, source.outputs)]
    small, _ = at_sizes(program, [], {**program.sizes, axis: 33})
    assert not check_text(small, changed, f"launch_{source.name}", *names).passed


def test_lengths_that_no_axis_has_are_left_to_pytorch(folder: Path) -> None:
    """Where the seam of two lengths that vary is, no axis says: they are joined before."""
    (region,) = (one for one in trace_file(folder / "code_.py").regions if one.function == "both")
    units, reasons = ranged_units(region)
    assert [unit.program.least for unit in units if isinstance(unit, SearchUnit)]
    assert reasons == ("s and t cannot have ranges: where x is read from depends on more than one size",)
