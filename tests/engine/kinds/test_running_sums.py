"""Running sums: from PyTorch's spellings to kernels that read a row once, and wrong ones that are rejected."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.events import Done
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.drawing.words import expression, symbol
from mugraph.ir.json import block_from_json, block_to_json
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_candidate
from mugraph.ir.text.parser import parse_block, parse_program
from mugraph.ir.text.printer import format_block, format_program
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.pipeline import Options, run
from mugraph.search.direct import DirectSearch
from mugraph.search.kernel_graphs.parts import PartTask
from mugraph.search.run import Search
from mugraph.search.schedules.splits import cuts
from mugraph.search.schedules.tiles import Shape
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS
from mugraph.triton_text.check import check_text
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import Malformed, evaluate_program
from mugraph.verification.execute import execute_block
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, lower_region, randn, record

Function = Callable[..., torch.Tensor]

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
FILE = """\
import torch


# mugraph: x=f32[24, 1100]
def last(x):
    return torch.cumsum(x, dim=-1)


# mugraph: x=f16[6, 70, 40]
def middle(x):
    return x.cumsum(1) * 0.125 + x


# mugraph: x=f32[24, 1100]
def from_the_end(x):
    return torch.flip(torch.cumsum(torch.flip(x, (1,)), dim=1), (1,))


# mugraph: x=f32[24, 1100]
def before(x):
    zeros = torch.zeros_like(x.select(1, 0).unsqueeze(1))
    return torch.cat((zeros, torch.cumsum(x.narrow(1, 0, x.size(1) - 1), dim=1)), dim=1)


# mugraph: x=f32[24, 1100], mask=bool[24, 1100]
def masked(x, mask):
    return torch.cumsum(x * mask, dim=1)


# mugraph: x=f32[24, 1100]
def reversed_rows(x):
    return torch.cumsum(torch.exp(x.flip(1)), 1).exp().neg() * 0.5
"""


def last(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x, -1) * 0.5


def first(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(0) + x


def backwards(x: torch.Tensor) -> torch.Tensor:
    return x.flip(1).cumsum(dim=1).flip(1)


def before(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], 1)), 1)


def before_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(torch.cat((torch.zeros(1, x.shape[1]), x.exp()))[:-1], 0)


def masked(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x * (x > 0), 1)


def from_its_end(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x.flip(1) * 3.0, 1)


FUNCTIONS: list[Function] = [last, first, backwards, before, before_rows, masked, from_its_end]


def program_of(fn: Function, *shape: int) -> TensorProgram:
    return check(fn, {"x": randn(*(shape or (20, 90)))}).program


def looped(program: TensorProgram) -> BlockGraph:
    """The topology with a loop over what the sum runs along."""
    (found,) = [found.block for found in DirectSearch(program).run() if found.block.loops]
    return found


def with_tiles(block: BlockGraph, tile: int, rows: int = 4) -> Schedule:
    shape = Shape(block)
    return Schedule(tuple((axis, rows) for axis in shape.grid_axes), dict.fromkeys(block.loop_axes, tile))


def kernel_of(program: TensorProgram, block: BlockGraph, schedule: Schedule) -> KernelSource:
    return lower_kernels([(block, schedule)], program=program)


def text_passes(program: TensorProgram, source: KernelSource, text: str) -> bool:
    inputs, outputs = [tensor.name for tensor in source.inputs], [tensor.name for tensor in source.outputs]
    return check_text(program, text, f"launch_{source.name}", inputs, outputs, seed=5).passed


def text_of(source: KernelSource) -> str:
    return f"{HEAD}{source.jit}\n\n\n{source.launcher}\n"


def test_functions_get_kernels_that_are_right_in_the_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "sums.py"
    path.write_text(FILE)
    options = Options(target="h100", budget_s=2, compare_with="code", measure=False)
    (done,) = (event for event in run(path, options=options) if isinstance(event, Done))
    assert done.result.errors == ()
    texts: dict[str, str] = {}
    for region in done.result.regions:
        assert region.status == "improved", (region.region.function, region.reason)
        texts[region.region.function] = "".join(source.jit for source in region.sources.values())
    assert texts.keys() == {"last", "middle", "from_the_end", "before", "masked", "reversed_rows"}
    assert all(text.count("tl.cumsum(") == 1 for text in texts.values())
    assert [name for name, text in texts.items() if "reverse=True" in text] == ["from_the_end"]


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_one_sum_and_one_load(fn: Function) -> None:
    """Reversing, shifting and masking leave one running sum of one tensor that is read once."""
    program = program_of(fn)
    kinds = [op.kind for op in program.ops]
    assert sum(kind.scans for kind in kinds) == 1
    assert kinds.count(Kind.LOAD) == 1
    assert (Kind.RUNNING_SUM_BACK in kinds) == (fn is backwards)


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_both_topologies_are_equal_and_so_is_their_text(fn: Function) -> None:
    program = program_of(fn)
    for found in DirectSearch(program).run():
        verdict = verify_topology(program, found.block, seed=0)
        assert verdict.passed, verdict.reason
        for tile in (16, 32) if found.block.loops else (0,):
            schedule = with_tiles(found.block, tile)
            assert check_candidate(found.block, schedule, TARGETS["h100"]) == []
            source = kernel_of(program, found.block, schedule)
            assert text_passes(program, source, text_of(source)), source.jit


def test_a_loop_carries_the_sum_and_reads_each_tile_once() -> None:
    program = program_of(last)
    text = kernel_of(program, looped(program), with_tiles(looped(program), 16)).jit
    assert text.count("tl.load(") == 1
    (carried,) = re.findall(r"(\w+) = tl\.sum", text)
    assert f"{carried}[:, None] + tl.cumsum(" in text
    assert text.index(f"{carried} = tl.zeros(") < text.index("for ")


MUTANTS: dict[str, tuple[Function, str, str]] = {
    "the carried sum is dropped": (last, r"\w+_carried\[:, None\] \+ ", ""),
    "the carried sum is never added to": (last, r"\n +\w+_carried = tl\.sum\([\s\S]*?(?=\n +tl\.store)", ""),
    "the carried sum is added twice": (last, r"_carried = tl\.sum", "_carried += tl.sum"),
    "the carried sum is that of the tile alone": (last, r"(\[None, :\], )x_running(, 0\.0)", r"\1x\2"),
    "the carried sum lacks the last element": (last, r"== (\w+) - 1\)", r"== \1 - 2)"),
    "the carried sum is that before the tile": (last, r"== (\w+) - 1\)", "== 0)"),
    "it starts at one": (last, r"tl\.zeros\(\((.*),\), .*\)", r"tl.full((\1,), 1.0, tl.float32)"),
    "a loop starts one tile late": (last, r"range\(0, ", "range(16, "),
    "the wrong way in a tile": (backwards, ", reverse=True", ""),
    "the wrong way through the tiles": (backwards, r"n0 = .*", "n0 = n_back"),
    "backwards in place of forwards": (last, r"(tl\.cumsum\(.*axis=1)\)", r"\1, reverse=True)"),
    "one place too far": (before, "x_ptr - 1", "x_ptr"),
    "one place too far, all masked": (before, r">= 1", ">= 2"),
    "the other axis": (last, r"(tl\.cumsum\(.*)axis=1", r"\1axis=0"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_texts_are_rejected(name: str) -> None:
    fn, pattern, replacement = MUTANTS[name]
    program = program_of(fn)
    source = kernel_of(program, looped(program), with_tiles(looped(program), 16))
    right = text_of(source)
    wrong, count = re.subn(pattern, replacement, right, flags=re.MULTILINE)
    assert count, source.jit
    assert text_passes(program, source, right)
    assert not text_passes(program, source, wrong), wrong


def test_wrong_graphs_are_rejected() -> None:
    program = program_of(last)
    (rows, columns) = program.outputs["x_running_scaled"].axes
    block = looped(program)
    turned = {Kind.RUNNING_SUM: Kind.RUNNING_SUM_BACK}
    for wrong in (
        [replace(op, kind=turned.get(op.kind, op.kind)) for op in block.ops],
        [replace(op, over=(rows,)) if op.kind.scans else op for op in block.ops],
        [replace(op, kind=Kind.MUL, inputs=("x", "x"), over=()) if op.kind.scans else op for op in block.ops],
    ):
        assert columns in block.loop_axes
        assert not verify_topology(program, replace(block, ops=tuple(wrong)), seed=0).passed


def test_a_block_has_all_that_the_sum_runs_along() -> None:
    program = program_of(last)
    block, (rows, columns) = looped(program), program.outputs["x_running_scaled"].axes
    assert Shape(block).grid_axes == (rows,)
    flat, parted = replace(block, loops=()), Schedule(((rows, 4), (columns, 16)))
    assert check_candidate(flat, parted)
    with pytest.raises(Rejected, match="partitioned over the grid"):
        kernel_of(program, flat, parted)
    with pytest.raises(Malformed, match="each block has a part"):
        execute_block(flat, parted, {"x": np.ones((1, 20, 90))}, FloatArithmetic())


def test_a_loop_goes_one_way() -> None:
    program = program_of(lambda x: torch.cumsum(x, 1) * backwards(x))
    (whole,) = [found.block for found in DirectSearch(program).run()]
    assert not whole.loops
    block = replace(whole, loops=(Loop(program.tensors[0].axes[1]),))
    with pytest.raises(Rejected, match="in both directions"):
        kernel_of(program, block, with_tiles(block, 16))


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_tiles_give_the_program(data: st.DataObject) -> None:
    fn = data.draw(st.sampled_from([last, first, backwards, from_its_end]))
    program = lower_region(record(fn, {"x": randn(20, 90)})).program
    block = looped(program)
    sizes = {axis: data.draw(st.integers(2, 9), axis) for axis in block.sizes}
    program, block = resize(program, sizes), resize_block(block, sizes)
    grid = tuple((axis, data.draw(st.integers(1, 5), axis)) for axis in Shape(block).grid_axes)
    schedule = Schedule(grid, {axis: data.draw(st.integers(1, 10), axis) for axis in block.loop_axes})
    inputs = {t.name: np.random.default_rng(0).normal(size=(2, *t.shape(sizes))) for t in program.tensors}
    expected = evaluate_program(program, inputs, FloatArithmetic())
    found = execute_block(block, schedule, inputs, FloatArithmetic())
    for tensor, value in expected.items():
        np.testing.assert_allclose(found[tensor], value, rtol=1e-10, atol=1e-12)


LAWS: list[tuple[Function, Function]] = [
    (backwards, lambda x: x.sum(1, keepdim=True) - torch.cumsum(x, 1) + x),
    (last, lambda x: torch.cumsum(x * 0.5, 1)),
    (before, lambda x: torch.cumsum(x, 1) - x),
    (lambda x: torch.cumsum(x, 1)[:, -1] * 2.0, lambda x: x.sum(1) * 2.0),
    (lambda x: torch.cumsum(x, 1)[:, :7] * 2.0, lambda x: torch.cumsum(x[:, :7] * 2.0, 1)),
    (lambda x: torch.cumsum(x, 1).flip(1), lambda x: backwards(x.flip(1))),
    (lambda x: x.flip(1)[:, 2:] * 2.0, lambda x: x[:, :-2].flip(1) * 2.0),
]


@pytest.mark.parametrize("number", range(len(LAWS)))
def test_laws(number: int) -> None:
    """Each side is lowered, and computes what PyTorch does; both are one function."""
    one, other = LAWS[number]
    x = randn(5, 12)
    check(one, {"x": x})
    check(other, {"x": x})
    torch.testing.assert_close(one(x.double()), other(x.double()))


def test_what_goes_out_of_it() -> None:
    """A constant factor stands behind a sum, wherever the user has it; both spellings are one program."""
    inside = program_of(lambda x: torch.cumsum(x * 0.5, -1))
    assert [op.kind for op in inside.ops] == [op.kind for op in program_of(last).ops]


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda x: torch.cumsum(x, 1)[:, 3:] * 2, "does not begin with it"),
        (lambda x: torch.cumsum(x.view(60), 0) * 2, "several axes"),
        (lambda x: torch.cumsum(torch.cat((x, -x), 1).view(5, 2, 12), 1) * 2, "pieces of a concatenation"),
        (lambda x: x.flip(1)[:, :5] * 2, "read backwards"),
    ],
)
def test_refusals(fn: Function, why: str) -> None:
    with pytest.raises(NotLowerable, match=why):
        lower_region(record(fn, {"x": randn(5, 12)}))


def test_beside_reductions_and_products() -> None:
    def nucleus(x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(torch.softmax(x, -1), -1)

    def area(x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, 1).sum(1)

    def projected(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x @ w, 0)

    x, w = randn(20, 90), randn(90, 40)
    programs = [check(fn, {"x": x}).program for fn in (nucleus, area)]
    for program in (*programs, check(projected, {"x": x, "w": w}).program):
        blocks = [found.block for found in Search(program, Limits(max_block_ops=8)).run()]
        assert blocks
        assert any(op.kind.scans for block in blocks for op in block.ops)
        for block in blocks:
            verdict = verify_topology(program, block, seed=0)
            assert verdict.passed, verdict.reason
            along = {axis for op in block.ops if op.kind.scans for axis in op.over}
            assert not [cut for cut in cuts(block) if cut.axis in along]
    program = programs[1]
    block = next(found.block for found in Search(program, Limits(max_block_ops=4)).run() if found.block.loops)
    source = kernel_of(program, block, with_tiles(block, 16))
    assert "_carried = tl.sum(" in source.jit
    assert text_passes(program, source, text_of(source))


def test_a_part_of_a_kernel_graph_has_the_loop_too() -> None:
    found = PartTask(program_of(last, 64, 40_000), TARGETS["h100"], Limits(max_block_ops=4)).run()
    assert found.candidates[0].block.loops


def test_rows_with_maxima_of_their_own_are_not_added_up() -> None:
    """exp(x) relative to each row's maximum may run along the row, and not from row to row."""

    def along(x: torch.Tensor) -> torch.Tensor:
        e = x.exp()
        return torch.cumsum(e, 1) / e.sum(1, keepdim=True)

    def across(x: torch.Tensor) -> torch.Tensor:
        e = x.exp()
        return torch.cumsum(e, 0) / torch.cumsum(e.sum(1, keepdim=True), 0)

    for fn, is_safe in ((along, True), (across, False)):
        program = program_of(fn)
        found = Search(program, Limits(max_block_ops=8)).run()
        topology = next(one.block for one in found if not one.block.loops)
        schedule = Schedule(tuple((axis, 4) for axis in Shape(topology).grid_axes))
        if is_safe:
            source = kernel_of(program, topology, schedule)
            assert "exp2(" in source.jit
            assert text_passes(program, source, text_of(source))
        else:
            with pytest.raises(Rejected, match="different maxima"):
                kernel_of(program, topology, schedule)


def test_forms() -> None:
    program, block = program_of(backwards), looped(program_of(backwards))
    assert parse_program(format_program(program)) == program
    assert parse_block(format_block(block)) == block
    assert block_from_json(block_to_json(block)) == block
    (op,) = [op for op in block.ops if op.kind.scans]
    assert expression(op, {}) == "running sum along n, from its end, of x"
    assert symbol(op, {}) == "running Σ n from the end"
    read = program_of(from_its_end)
    assert "window n over 1 reverse" in format_program(read)
    assert parse_program(format_program(read)) == read


@pytest.mark.parametrize("fn", [first, backwards, before, from_its_end])
def test_compiles(fn: Function) -> None:
    """Tiles of several elements a thread, in several rows, are what a pass of Triton's has made invalid."""
    program = program_of(fn, 40, 5000)
    for rows, tile in ((1, 16), (4, 16), (4, 64)):
        source = kernel_of(program, looped(program), with_tiles(looped(program), tile, rows))
        assert ".target sm_90" in compile_for(source, 90).ptx
