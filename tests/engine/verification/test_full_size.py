"""At full size: slices are what they are slices of, and what small sizes do not tell apart is told apart there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.verification.full_size import verify_full_size
from mugraph.verification.samples import JOINT, WHOLE, samples
from mugraph.verification.verifier import verify_topology
from mugraph.verification.work import work

from tests.engine.verification.convolutions import graphs as convolution
from tests.engine.verification.full_size_schedules import SCHEDULES
from tests.engine.verification.graphs import CASES, Builder, attention, gated_mlp, tensor
from tests.engine.verification.masked_programs import changed, looped, program, windowed
from tests.engine.verification.slices import slices_of, values_of


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_slices_of_a_masked_program(data: st.DataObject) -> None:
    diagonal, width = data.draw(st.integers(0, 7)), data.draw(st.integers(1, 9))
    window = Op("window", Kind.MASK, axes=("s", "t"), value=float(width), rows=("t",), columns=("s",))
    sizes = {"s": 7, "t": 8, "d": 2, "e": 3}
    own = windowed(program(diagonal), window)
    assert isinstance(own, TensorProgram)
    own = replace(own, sizes=sizes)
    slices = slices_of(own, data)
    assert {"s", "e"} <= slices.keys()
    assert "t" not in slices
    values_of(own, slices)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_slices_of_a_convolution(data: st.DataObject) -> None:
    """Their windows begin in the pad, between, or end beyond the last place."""
    own, _ = convolution()
    slices = slices_of(own, data)
    assert {"n", "o", "p", "q"} <= slices.keys()
    values_of(own, slices)


@pytest.mark.parametrize("name", CASES)
def test_right_graphs_pass_and_cost_little(name: str) -> None:
    case, schedule = CASES[name](), SCHEDULES[name]
    verdict = verify_full_size(case.program, [(case.block, schedule)], seed=1)
    assert verdict.passed, verdict.reason
    assert "full size" in (verdict.indexing or "")


@pytest.mark.parametrize("name", CASES)
def test_samples_cover_first_last_and_every_axis(name: str) -> None:
    case, schedule = CASES[name](), SCHEDULES[name]
    kernels = [(case.block, schedule)]
    chosen = samples(case.program, kernels, np.random.default_rng(0))
    full = case.program.sizes
    assert all(any(run.sizes[axis] == full[axis] for run in chosen.runs) for axis in full)
    if chosen.is_whole:
        assert work(case.program, kernels, full) <= WHOLE
        return
    for run in chosen.runs:
        cut = {axis: count for axis, (_, count) in run.slices.items()}
        assert work(case.program, kernels, {**run.sizes, **cut}) <= JOINT
    sliced = {axis for run in chosen.runs for axis in run.slices}
    for axis in sliced:
        assert any(run.slices[axis][0] == 0 for run in chosen.runs)
        assert any(sum(run.slices[axis]) == full[axis] for run in chosen.runs)


def test_a_hidden_layer_that_is_too_much_at_once() -> None:
    """(x w) v with 11,008 hidden elements: each output needs all of w."""
    sizes = {"m": 16, "k": 4096, "f": 11008, "n": 4096}
    x, w, v, o = (tensor(*one, sizes) for one in (("x", "m k"), ("w", "k f"), ("v", "f n"), ("o", "m n")))
    p = Builder()
    p.load("xv", x), p.load("wv", w), p.load("vv", v)
    p.reduce("hidden", Kind.DOT, "xv", "wv", over="k"), p.reduce("out", Kind.DOT, "hidden", "vv", over="f")
    own = TensorProgram("ffn", sizes, (x, w, v), tuple(p.ops), {"out": o})
    h = tensor("h", "m f", sizes)
    first, second = Builder(), Builder()
    first.load("xv", x), first.load("wv", w), first.reduce("part", Kind.DOT, "xv", "wv", over="k")
    first.accum("hidden", "part", "k"), first.store("hidden", h)
    second.load("hv", h), second.load("vv", v), second.reduce("part", Kind.DOT, "hv", "vv", over="f")
    second.accum("out", "part", "f"), second.store("out", o)
    inner, outer = ({axis: sizes[axis] for axis in axes} for axes in ("mkf", "mfn"))
    kernels = [
        (BlockGraph("one", inner, (x, w, h), tuple(first.ops), (Loop("k"),)), Schedule((("f", 64),), {"k": 128})),
        (BlockGraph("two", outer, (h, v, o), tuple(second.ops), (Loop("f"),)), Schedule((("n", 64),), {"f": 128})),
    ]
    verdict = verify_full_size(own, kernels, seed=1)
    assert verdict.passed, verdict.reason
    assert "each axis at its full size in one of them" in (verdict.indexing or "")
    runs = samples(own, kernels, np.random.default_rng(0)).runs
    assert any(run.sizes["f"] == 11008 for run in runs)
    assert any(run.sizes["k"] == 4096 for run in runs)


def test_masks_that_small_sizes_do_not_tell_apart() -> None:
    """Two of the program's masks exchanged, whose diagonals are one at every small size."""
    window = Op("window", Kind.MASK, axes=("s", "t"), value=101.0, rows=("s",), columns=("t",))
    own, block = windowed(program(100), window), windowed(looped(100), window)
    assert isinstance(own, TensorProgram)
    assert isinstance(block, BlockGraph)
    own = changed(own, "length", inputs=("in_window",))  # type: ignore[arg-type, assignment]
    block = changed(block, "part", inputs=("in_window",))
    schedule = Schedule((("s", 64),), {"t": 64})
    assert verify_full_size(own, [(block, schedule)], seed=1).passed
    wrong = changed(changed(block, "window", value=100.0), "mask", value=101.0)
    assert verify_topology(own, wrong, seed=1).passed, "then no full size would be needed"
    assert "differs" in (verify_full_size(own, [(wrong, schedule)], seed=1).reason or "")


def test_two_parts_of_one_tensor() -> None:
    """x @ x.T: rows are sliced, columns, which a softmax sums, are not; both are one piece of memory."""
    sizes = {"i": 2048, "j": 2048, "k": 64}
    x = Tensor("x", (("i",), ("k",)), contiguous_strides((("i",), ("k",)), sizes), "f16", "x")
    y = replace(x, name="y", dims=(("j",), ("k",)))
    o = tensor("o", "i k", sizes)
    p, b = Builder(), Builder()
    p.load("q", x), p.load("v", y), p.reduce("s", Kind.DOT, "q", "v", over="k"), p.ew("e", Kind.EXP, "s")
    p.reduce("out", Kind.DOT, "e", "v", over="j")
    own = TensorProgram("self", sizes, (x, y), tuple(p.ops), {"out": o})
    b.load("q", x), b.load("v", y), b.reduce("s", Kind.DOT, "q", "v", over="k"), b.ew("e", Kind.EXP, "s")
    b.reduce("part", Kind.DOT, "e", "v", over="j"), b.accum("out", "part", "j"), b.store("out", o)
    block = BlockGraph("self", sizes, (x, y, o), tuple(b.ops), (Loop("j"),))
    schedule = Schedule((("i", 64),), {"j": 64})
    chosen = samples(own, [(block, schedule)], np.random.default_rng(0))
    assert all("i" in run.slices and "j" not in run.slices for run in chosen.runs)
    assert verify_full_size(own, [(block, schedule)], seed=1).passed


def test_every_case_is_sampled_somewhere() -> None:
    assert work(attention().program, [], attention().program.sizes) > WHOLE
    assert work(gated_mlp().program, [], gated_mlp().program.sizes) > WHOLE
