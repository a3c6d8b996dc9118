"""Named topologies of the papers are found by the search, and everything it finds keeps the block graph's contract."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind
from mugraph.search import Limits, NotSearchable, Search, topologies
from mugraph.search.topologies.softmax import is_shift_invariant

from tests.engine.search.workloads import (
    Builder,
    attention,
    gated_mlp,
    gemm_chain,
    lora,
    norm_transformer,
    rmsnorm_gated_mlp,
    rmsnorm_linear,
)  # fmt: skip
from tests.support.tile_evaluator import check_axes, evaluate_block, evaluate_program, random_inputs, small_schedule


def find(program, **limits) -> list[BlockGraph]:
    return [found.block for found in topologies(program, Limits(**limits))]


def expression(block: BlockGraph) -> str:
    """What is stored, written out; operands of commutative operators in alphabetical order."""
    texts: dict[str, str] = {}
    for op in block.ops:
        inputs = [texts[i] for i in op.inputs]
        if op.kind in (Kind.ADD, Kind.MUL, Kind.DOT):
            inputs.sort()
        match op.kind:
            case Kind.LOAD:
                texts[op.name] = op.tensor
            case Kind.CONST:
                texts[op.name] = "eps" if op.value == 1e-6 else "c"
            case Kind.STORE:
                return inputs[0]
            case _:
                over = f"[{','.join(op.over)}]" if op.over else ""
                texts[op.name] = f"{op.fn or op.kind}{over}({', '.join(inputs)})"
    raise AssertionError("nothing is stored")


def looped(program, *axes: str, **limits) -> set[str]:
    return {expression(b) for b in find(program, **limits) if b.loops == tuple(Loop(a) for a in axes)}


SQUARES = "accum[h](sum[h](mul(x, x)))"


@pytest.mark.parametrize("h", [64, 4096])
def test_rmsnorm_matmul_figure_3b(h: int) -> None:
    """Sum of squares and product with the weight accumulate in one loop over h; the division comes after it."""
    plain = looped(rmsnorm_linear(h=h, eps=False, weight=False), "h")
    assert f"div(accum[h](dot[h](w, x)), sqrt(mul({SQUARES}, c)))" in plain
    full = looped(rmsnorm_linear(h=h), "h")
    root = f"sqrt(add(eps, mul({SQUARES}, c)))"
    assert f"div(accum[h](dot[h](mul(g, x), w)), {root})" in full
    assert f"div(accum[h](dot[h](mul(g, w), x)), {root})" in full


def test_rmsnorm_matmul_keeps_tiles_until_after_the_loop() -> None:
    """SUM(ACCUM(x)): the tile is summed once, after the loop."""
    assert any("sum[h](accum[h](mul(x, x)))" in text for text in looped(rmsnorm_linear(), "h"))


def test_the_direct_form_is_found_without_a_loop() -> None:
    texts = {expression(b) for b in find(rmsnorm_linear()) if not b.loops}
    assert "dot[h](mul(div(x, sqrt(add(eps, mul(c, sum[h](mul(x, x)))))), g), w)" in texts


def test_gated_mlp_figure_10b() -> None:
    assert looped(gated_mlp(), "h") == {"mul(accum[h](dot[h](w2, x)), silu(accum[h](dot[h](w1, x))))"}


def test_lora_over_h() -> None:
    found = looped(lora(), "h")
    assert "add(accum[h](dot[h](w, x)), dot[r](accum[h](dot[h](a, x)), b))" in found
    assert "accum[h](dot[h](add(dot[r](a, b), w), x))" in found


def test_lora_over_r_uses_loop_invariant_values_after_the_loop() -> None:
    assert "add(accum[r](dot[r](b, dot[h](a, x))), dot[h](w, x))" in looped(lora(), "r")


def test_attention_flash_form() -> None:
    weights = "exp(mul(c, dot[d](K, Q)))"
    assert f"div(accum[n](dot[n](V, {weights})), accum[n](sum[n]({weights})))" in looped(attention(), "n")


def test_qknorm_attention_first_hits_come_early() -> None:
    search = Search(attention(norm=True), Limits(seconds=4.0, max_topologies=4))
    first = {}
    for found in search.run():
        first.setdefault(found.block.loops, found)
    assert first[()].seconds < 2
    assert first[(Loop("n"),)].seconds < 2


def test_norm_transformer_keeps_its_axis_whole() -> None:
    search = Search(norm_transformer(), Limits(seconds=2.0))
    found = next(iter(search.run()))
    assert found.block.loops == ()
    assert found.seconds < 2


def test_gemm_chain_nests_its_loops() -> None:
    nests = {b.loops for b in find(gemm_chain())}
    assert (Loop("n", (Loop("k"),)),) in nests  # deep: the inner product in every iteration of the outer
    assert (Loop("n"),) in nests


@pytest.mark.parametrize(
    "program",
    [
        rmsnorm_linear(m=4, h=8, n=4),
        gated_mlp(m=4, h=8, n=4),
        lora(m=4, h=8, n=4, r=4),
        attention(2, 4, 8, 4),
        attention(2, 4, 8, 4, norm=True),
        norm_transformer(m=4, d=8),
        rmsnorm_gated_mlp(m=4, h=8, n=4),
        gemm_chain(2, 4, 8, 4, 4),
    ],
    ids=lambda program: program.name,
)
def test_every_topology_computes_the_program_tile_by_tile(program) -> None:
    inputs = random_inputs(program, 7)
    expected = evaluate_program(program, inputs)
    blocks = find(program, seconds=3.0, max_topologies=24)
    assert blocks
    assert len({block.ops for block in blocks}) == len(blocks)
    for block in blocks:
        check_axes(block)
        assert [t.name for t in block.outputs] == ["out"]
        assert block.tensor("out") == next(iter(program.outputs.values()))
        result = evaluate_block(block, small_schedule(block), inputs)
        np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_values_of_the_program_keep_their_names() -> None:
    block = next(b for b in find(gated_mlp()) if b.loops)
    kinds = {op.name: op.kind for op in block.ops}
    assert kinds["up"] is kinds["value"] is Kind.ACCUM
    assert kinds["y"] is Kind.MUL
    assert kinds["gate"] is Kind.UNARY


def test_precision_marks_follow_the_program() -> None:
    program = gated_mlp()
    marked = tuple(op if op.name != "up" else type(op)(**{**_fields(op), "f32": True}) for op in program.ops)
    program = type(program)(program.name, program.sizes, program.tensors, marked, program.outputs)
    block = next(b for b in find(program) if b.loops)
    assert {op.name for op in block.ops if op.f32} == {"up"}


def _fields(op) -> dict[str, object]:
    return {name: getattr(op, name) for name in op.__slots__}


def test_unsafe_softmax_forms_are_left_out() -> None:
    search = Search(attention(), Limits())
    blocks = [found.block for found in search.run()]
    assert blocks
    assert all(is_shift_invariant(block.ops) for block in blocks)
    b = Builder("plain_exp", m=8, n=8)
    program = b.program(b.mul("y", b.exp("e", b.input("x", "m", "n")), b.input("z", "m", "n")), "m", "n")
    assert find(program)  # has no softmax to keep safe: searched as it is


def test_several_outputs_are_refused_in_one_sentence() -> None:
    program = gated_mlp()
    (tensor,) = program.outputs.values()
    two = type(program)(program.name, program.sizes, program.tensors, program.ops, {"y": tensor, "up": tensor})
    with pytest.raises(NotSearchable, match="has 2 outputs"):
        next(topologies(two))


def test_cancelling_ends_the_search() -> None:
    calls = itertools.count()
    search = Search(attention(norm=True), Limits(), cancelled=lambda: next(calls) > 20)
    list(search.run())
    assert search.stats.ended_by == "cancelled"
    assert not search.stats.complete
    assert search.stats.seconds < 2


def test_time_ends_the_search_of_a_busy_machine() -> None:
    def busy() -> bool:
        time.sleep(0.02)
        return False

    search = Search(attention(norm=True), Limits(seconds=0.5), busy)
    list(search.run())
    assert search.stats.ended_by == "time"
    assert not search.stats.complete
    assert search.stats.seconds < 1.5


def test_stats_say_what_was_pruned() -> None:
    search = Search(rmsnorm_linear())
    count = sum(1 for _ in search.run())
    stats = search.stats
    assert stats.topologies == count
    assert stats.complete
    assert stats.pruned["expression"] > 100
    assert stats.values > 50


def test_the_operator_bound_is_kept_and_reported() -> None:
    search = Search(rmsnorm_linear(), Limits(max_block_ops=8))
    blocks = [found.block for found in search.run()]
    assert max(len(block.block_ops) for block in blocks if not block.loops) == 8
    assert search.stats.ended_by == "size"
