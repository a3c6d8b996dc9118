"""Mirage's checkpoints: what is read, what is refused, and what the graphs then are."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mugraph.ir.mirage import Unreadable, is_checkpoint, read_checkpoint
from mugraph.ir.mirage.axes import Axes, Unlike
from mugraph.ir.mugraph import MuGraph
from mugraph.ir.ops import Kind
from mugraph.ir.spec import check_mugraph

from tests.support.mirage import Json, attention, gated, rmsnorm_linear


def read(operators: list[Json]) -> MuGraph:
    (graph,) = read_checkpoint([operators], "f16")
    assert isinstance(graph, MuGraph), graph.reason
    return graph


def refused(operators: list[Json]) -> str:
    (graph,) = read_checkpoint([operators], "f16")
    assert isinstance(graph, Unreadable)
    return graph.reason


@pytest.mark.parametrize("operators", [rmsnorm_linear(), attention((4, 4)), attention((2, 8)), gated()])
def test_what_is_read_keeps_the_rules_of_graphs(operators: list[Json]) -> None:
    assert check_mugraph(read(operators), passes=8, for_codegen=False) == []


def test_maps_are_axes() -> None:
    graph = read(rmsnorm_linear())
    (kernel,) = graph.kernels
    block = kernel.block
    assert block is not None
    x, w = block.inputs
    (out,) = block.outputs
    assert x.shape(block.sizes) == (4, 32)
    rows, (loop, inner) = x.dims
    assert w.dims[0] == (loop, inner), "both inputs are read in one loop, along the axis the product sums"
    assert w.dims[1][0] == out.dims[1][0], "blocks read and write the same columns"
    assert (out.dims[0], out.shape(block.sizes)) == (rows, (4, 12))
    assert block.loop_axes == (loop,)
    assert block.sizes[loop] == 4
    assert [op.kind for op in block.ops].count(Kind.ACCUM) == 2


def test_one_iteration_is_no_loop() -> None:
    (kernel,) = read(rmsnorm_linear(loop=1)).kernels
    assert kernel.block is not None
    assert kernel.block.loops == ()
    assert all(op.kind is not Kind.ACCUM for op in kernel.block.ops)


def test_both_spellings_of_an_accumulator() -> None:
    assert read(rmsnorm_linear("tb_accum_nored_op")) == read(rmsnorm_linear())


def test_elements_of_16_bits_are_the_program_s() -> None:
    (graph,) = read_checkpoint([rmsnorm_linear()], "bf16")
    assert isinstance(graph, MuGraph)
    assert {tensor.dtype for tensor in graph.tensors} == {"bf16"}


def test_one_graph_alone_is_a_checkpoint_too() -> None:
    assert is_checkpoint([rmsnorm_linear()])
    assert is_checkpoint(rmsnorm_linear())
    assert not is_checkpoint({"regions": []})
    assert not is_checkpoint([{"type": "mugraph"}])
    assert len(read_checkpoint(rmsnorm_linear(), "f16")) == 1


def _operator(operators: list[Json], op_type: str) -> Json:
    inside = [one for operator in operators for one in operator.get("bgraph", {}).get("operators", ())]
    return next(one for one in (*operators, *inside) if one["op_type"] == op_type)


@pytest.mark.parametrize(
    ("op_type", "change", "reason"),
    [
        ("tb_div_op", {"op_type": "tb_pow_op"}, "k0: the operator pow of 2 values is not read"),
        ("tb_input_op", {"forloop_dim": 7}, "an input iterator has no dimension 7"),
        ("tb_input_op", {"forloop_dim": 0}, "makes a tile of [1, 32], said to be [4, 8]"),
        ("tb_input_op", {"input_map": {"x": 1, "y": -1, "z": -1}}, "32 elements are not cut evenly in 12"),
        ("tb_output_op", {"output_map": {"x": 0, "y": -1, "z": -1}}, "tiles of a grid make [12, 4], not [4, 12]"),
        ("tb_div_op", {"input_tensors": []}, "k0: the operator div of 0 values is not read"),
        ("kn_customized_op", {"op_type": "kn_allreduce_op"}, "k0: the operator allreduce of 2 values is not read"),
        ("kn_customized_op", {"input_tensors": "none"}, "Expected `array`"),
        ("kn_input_op", {"input_strides": [1]}, "a tensor of 2 dimensions has 1 strides"),
    ],
)
def test_refusals(op_type: str, change: dict[str, Any], reason: str) -> None:
    operators = copy.deepcopy(rmsnorm_linear())
    _operator(operators, op_type).update(change)
    assert reason in refused(operators)


def test_axes_are_cut_where_they_meet_finer_ones() -> None:
    axes = Axes("a")
    whole, outer, inner = axes.new(12), axes.new(4), axes.new(3)
    axes.unify(whole, (*outer, *inner))
    assert axes.now(whole) == axes.now((*outer, *inner))
    assert [axes.size((axis,)) for axis in axes.now(whole)] == [4, 3]
    assert axes.cut(inner, 1) == (axes.now(inner), ())
    with pytest.raises(Unlike, match="parts of 4 and of 6"):
        axes.unify(whole, (*axes.new(6), *axes.new(2)))
    with pytest.raises(Unlike, match="12 and 4 elements"):
        axes.unify(whole, outer)
    with pytest.raises(Unlike, match="no multiple"):
        axes.cut(whole, 5)
