"""Rows at an index whose length varies: the kernel reads them at the index, proved for all of its lengths."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.ir.kernel import KernelSource
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.limits import Limits
from mugraph.sizes.proved import varying_of
from mugraph.sizes.table import SizeTable
from mugraph.sizes.text import text_checked
from mugraph.trace.tracer import trace_file
from mugraph.triton_text.ranges.check import check_ranges
from mugraph.units.ranged import ranged_units

from tests.engine.sizes.decoding import TARGET, Made, run

CODES = {
    "embedding": ("t=1..64", "i=i64[t], table=f16[100, 64], w=f16[64, 32]", "F.embedding(i, table) @ w"),
    "experts": ("n=1..8", "i=i64[n], x=f16[n, 1, 64], table=f16[16, 64, 32]", "torch.bmm(x, table[i])"),
    "two": ("t=1..40", "i=i32[t, 2], x=f16[t, 48], table=f16[9, 32, 48]", 'torch.einsum("ti,taoi->tao", x, table[i])'),
}
CODE = """\
import torch
import torch.nn.functional as F


# mugraph: {sizes}, {arguments}
def looked_up({names}):
    return {code}
"""
RUN = """\
import re, sys
import torch
from mugraph.verification.interpreter import patch_interpreter
patch_interpreter()
sys.path.insert(0, {folder!r})
import code, kernels
assert code.__file__.startswith({folder!r})
torch.manual_seed(0)
name, least, largest = {size!r}
types = dict(f16=torch.float16, f32=torch.float32, i64=torch.int64, i32=torch.int32)
for size in sorted({{1, 2, 3, 5, largest // 2 + 1, largest - 1, largest}}):
    given = {{}}
    rows = int(re.search(r"table=f\\d+\\[(\\d+)", {arguments!r})[1])
    for own, kind, shape in re.findall(r"(\\w+)=(\\w+)\\[([^]]*)\\]", {arguments!r}):
        shape = eval(f"({{shape}},)", {{name: size}})
        least = -rows if {wraps} else 0
        drawn = torch.randint(least, rows, shape) if own == "i" else torch.randn(shape)
        given[own] = drawn.to(types[kind])
    got = kernels.launch_{kernel}({inputs})
    torch.testing.assert_close(got, code.looked_up(**given), rtol=2e-3, atol=2e-2)
print("right")
"""


@pytest.fixture(scope="module", params=CODES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(name)
    sizes, arguments, code = CODES[name]
    names = ", ".join(one.split("=")[0].strip() for one in arguments.split("], "))
    (folder / "code.py").write_text(CODE.format(sizes=sizes, arguments=arguments, code=code, names=names))
    return folder


@pytest.fixture(scope="module")
def made(folder: Path) -> Made:
    (region,) = trace_file(folder / "code.py").regions
    units, _ = ranged_units(region)
    (unit,) = (one for one in units if isinstance(one, SearchUnit))
    assert any(tensor.looked_up for tensor in unit.program.tensors)
    blocks = [found.block for found in Search(unit.program, Limits(seconds=5)).run()]
    candidates = kernel_candidates(blocks, TARGET, varying=unit.program.least)
    outputs = [tensor.name for tensor in unit.program.outputs.values()]
    return Made(unit.program, blocks, candidates, SizeTable(unit.program, TARGET, outputs))


@pytest.fixture(scope="module")
def source(made: Made) -> KernelSource:
    return made.table.source(made.kernels)


def test_it_is_right_and_proved_for_all_lengths(made: Made, source: KernelSource) -> None:
    text = text_checked(made.program, source, made.kernels)
    assert text.passed, text.reason
    assert text.proved_claims
    assert "_row" in source.jit


def test_it_is_right_at_other_lengths(name: str, source: KernelSource, folder: Path) -> None:
    size, ends = CODES[name][0].split("=")
    least, largest = map(int, ends.split(".."))
    inputs = ", ".join(f"given[{tensor.source!r}]" for tensor in source.inputs)
    command = RUN.format(
        folder=str(folder), size=(size, least, largest), arguments=CODES[name][1], kernel=source.name, inputs=inputs,
        wraps="F.embedding" not in CODES[name][2],
    )  # fmt: skip
    run(command, source, folder)


def changes(text: str, size: str, rows: int) -> list[tuple[str, str]]:
    """Texts that read other rows at some sizes, or more than which row of the index."""
    last, least = f", 0), {rows - 1})", "_row = tl.minimum(tl.maximum("
    assert last in text
    assert least in text
    return [
        (last, f", 0), {rows})"),
        (last, f", 0), tl.minimum({rows - 1}, {size} + {rows - 2}))"),  # right but at the least size
        (last, f", 0), tl.minimum({rows - 1}, {size} * {rows}))"),  # right at all sizes, which is not looked into
        (last, f", {size} // 1000), {rows - 1})"),
        (last, f", -1), {rows - 1})"),
        (last, f", 0), {rows - 1}) * (1 + {size} // 1000)"),
        (last, f", 0) + {size} // 7 - {size} // 7 + {size} % 5 // 4, {rows - 1})"),
    ]


def test_other_rows_are_refused(made: Made, source: KernelSource) -> None:
    text, (axis,) = source.standalone(), [*made.program.least]
    (rows,) = {one.rows for tensor in made.program.tensors for one in tensor.looked_up.values()}
    passed = check_ranges(made.program, source, varying_of(made.program), text)
    assert passed.passed, passed.reason
    size = axis.upper() if f"{axis.upper()}," in text.split("):")[0] else ""
    for old, new in changes(text, size or "tl.num_programs(0)", rows):
        if size or "num_programs" not in new:
            found = check_ranges(made.program, source, varying_of(made.program), text.replace(old, new))
            assert not found.passed, new


def test_another_place_of_the_index_is_refused(made: Made, source: KernelSource) -> None:
    text = source.standalone()
    (index,) = {one.name for tensor in made.program.tensors for one in tensor.indices}
    places = [line for line in text.splitlines() if f"tl.load({index}_ptr + " in line]
    assert places
    for line in places:
        for new in (f"tl.load({index}_ptr + 0 * ", f"tl.load({index}_ptr + 1 + "):
            changed = text.replace(line, line.replace(f"tl.load({index}_ptr + ", new))
            assert not check_ranges(made.program, source, varying_of(made.program), changed).passed, changed
