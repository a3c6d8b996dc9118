"""Programs that differ in sizes and names alone: one search, and the topologies that each would have had."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import cast

import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.renaming import canonical
from mugraph.search.alike import Alike
from mugraph.search.run import Search
from mugraph.search.topologies.limits import Found, Limits

from tests.engine.search import workloads
from tests.support.clock import slow_clock

PROGRAMS: tuple[tuple[TensorProgram, TensorProgram], ...] = (
    (workloads.lora(), workloads.lora(m=64, h=512, n=96, r=8)),
    (workloads.gated_mlp(), workloads.gated_mlp(m=1, h=64, n=48)),
    (workloads.attention(), workloads.attention(q=16, kv=64)),
    (workloads.gemm_chain(), workloads.gemm_chain(batch=3, m=16)),
)


def found(alike: Alike, program: TensorProgram, limits: Limits | None = None) -> list[BlockGraph]:
    with slow_clock():
        limits = limits or Limits()
        search = alike.known(program, limits) or alike.keeping(program, limits, Search(program, limits))
        return [one.block for one in search.run()]


@pytest.mark.parametrize(("first", "second"), PROGRAMS, ids=lambda program: program.name)
def test_at_other_sizes_the_same_is_found(first: TensorProgram, second: TensorProgram) -> None:
    alike = Alike()
    found(alike, first)
    blocks = found(alike, second)
    assert (alike.searched, alike.recalled) == (1, 1)
    assert blocks == found(Alike(), second)
    assert all(block.sizes == second.sizes for block in blocks)


def test_under_other_names_the_same_is_found_but_for_names() -> None:
    program = workloads.lora()
    renamed = replace(canonical(program)[0], name="other")
    alike = Alike()
    found(alike, program)
    found(alike, renamed)  # its axes have other names, and the search puts them in order by name
    assert (alike.searched, alike.recalled) == (2, 0)
    values = replace(
        program,
        name="other",
        tensors=tuple(
            replace(tensor, name=f"{tensor.name}_1", source=tensor.source and f"{tensor.source}_1")
            for tensor in program.tensors
        ),
        ops=tuple(replace(op, tensor=f"{op.tensor}_1") if op.tensor else op for op in program.ops),
    )
    blocks = found(alike, values)
    assert (alike.searched, alike.recalled) == (2, 1)
    assert blocks == found(Alike(), values)


def scaled(program: TensorProgram) -> TensorProgram:
    """With other constants."""
    return replace(program, ops=tuple(replace(op, value=op.value * 2) if op.value else op for op in program.ops))


def in_single_precision(program: TensorProgram) -> TensorProgram:
    return replace(program, tensors=tuple(replace(tensor, dtype="f32") for tensor in program.tensors))


@pytest.mark.parametrize("change", [scaled, in_single_precision], ids=lambda change: change.__name__)
def test_what_differs_in_more_is_searched(change: Callable[[TensorProgram], TensorProgram]) -> None:
    program = workloads.rmsnorm_linear()
    other = change(program)
    assert other != program
    alike = Alike()
    found(alike, program)
    assert found(alike, other) == found(Alike(), other)
    assert alike.recalled == 0


def totals(row: int) -> TensorProgram:
    b = workloads.Builder("totals", m=64, n=row)
    return b.program(b.sum("total", b.input("x", "m", "n"), "n"), "m")


def test_axes_too_short_for_loops_are_another_search() -> None:
    """Rows are looped over where a schedule can cut them."""
    limits, alike = Limits(uncut=16), Alike()
    assert any(block.loops for block in found(alike, totals(4096), limits))
    assert not any(block.loops for block in found(alike, totals(8), limits))
    assert alike.recalled == 0


def test_other_limits_are_another_search() -> None:
    alike = Alike()
    every = found(alike, workloads.lora())
    few = found(alike, workloads.lora(m=64), Limits(max_topologies=2))
    assert alike.recalled == 0
    assert len(few) < len(every)


def test_what_was_cut_short_is_not_taken_for_all() -> None:
    """A search that is left in the middle, or cancelled, is made again."""
    program, alike = workloads.lora(), Alike()
    first = alike.keeping(program, Limits(), Search(program))
    with contextlib.closing(cast("Generator[Found]", first.run())) as run:
        next(run)
    cancelled = alike.keeping(program, Limits(), Search(program, None, lambda: True))
    list(cancelled.run())
    assert cancelled.stats.ended_by == "cancelled"
    assert found(alike, program) == found(Alike(), program)
    assert alike.recalled == 0
