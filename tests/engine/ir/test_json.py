import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from mugraph.ir.block import Candidate
from mugraph.ir.json import (
    FormatError,
    block_from_json,
    block_to_json,
    candidate_from_json,
    candidate_to_json,
    mugraph_from_json,
    mugraph_to_json,
    program_from_json,
    program_to_json,
    schedule_from_json,
    schedule_to_json,
)
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.program import TensorProgram

from tests.engine.ir.graphs import attention_program, gated_mlp, norm_and_cat, two_kernels
from tests.engine.ir.random_graphs import mugraphs, programs


def through_text(document: dict[str, object]) -> object:
    """As strict JSON: no Infinity, no NaN."""
    return json.loads(json.dumps(document, allow_nan=False))


@settings(max_examples=80, deadline=None)
@given(mugraphs())
def test_mugraphs_come_back(graph: MuGraph) -> None:
    assert mugraph_from_json(through_text(mugraph_to_json(graph))) == graph
    kernel = graph.kernels[0]
    assert isinstance(kernel, GraphKernel)
    assert block_from_json(through_text(block_to_json(kernel.block))) == kernel.block
    assert schedule_from_json(through_text(schedule_to_json(kernel.schedule))) == kernel.schedule


@settings(max_examples=50, deadline=None)
@given(programs())
def test_programs_come_back(program: TensorProgram) -> None:
    assert program_from_json(through_text(program_to_json(program))) == program


def test_order_of_axes_and_outputs_is_kept() -> None:
    program = program_from_json(through_text(program_to_json(attention_program())))
    assert list(program.sizes) == ["h", "q", "k", "d", "e"]


@pytest.mark.parametrize("estimate", [12.5, float("inf")])
def test_candidates_come_back(estimate: float) -> None:
    kernel = gated_mlp().kernels[0]
    assert isinstance(kernel, GraphKernel)
    candidate = Candidate(kernel.block, kernel.schedule, estimate)
    assert candidate_from_json(through_text(candidate_to_json(candidate))) == candidate


def test_kinds_of_kernels_are_told_apart() -> None:
    document = through_text(mugraph_to_json(norm_and_cat()))
    assert [kernel["kind"] for kernel in document["kernels"]] == ["library", "graph", "library"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2 is not understood; this version reads format 1"),
        ({"type": "program"}, "this is a 'program', not a 'mugraph'"),
        ({"kernels": None}, "a mugraph needs a list `kernels`"),
        ({"kernels": [{"kind": "magic"}]}, r"kernels\[0\].kind is 'magic', not 'graph' or 'library'"),
        ({"kernels": [3]}, r"kernels\[0\] is no object"),
        ({"kernels": [{"kind": "library"}]}, r"kernels\[0\]: Object missing required field `name`"),
        ({"sizes": {"b": "many"}}, r"mugraph: Expected `int`, got `str` - at `\$.sizes\[...\]`"),
        ({"inputs": "x"}, r"mugraph: Expected `array`, got `str` - at `\$.inputs`"),
    ],
)
def test_wrong_documents_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        mugraph_from_json({**mugraph_to_json(gated_mlp()), **change})


def test_wrong_operator_kind_is_refused() -> None:
    document = program_to_json(attention_program())
    broken = json.loads(json.dumps(document).replace('"kind": "exp"', '"kind": "expand"'))
    with pytest.raises(FormatError, match="Invalid enum value 'expand'"):
        program_from_json(broken)


def test_no_object_is_refused() -> None:
    with pytest.raises(FormatError, match="a program is a JSON object, not list"):
        program_from_json([])


def test_infinite_constants_survive() -> None:
    program = attention_program()
    ops = tuple(replace(op, value=float("-inf")) if op.name == "scale" else op for op in program.ops)
    infinite = replace(program, ops=ops)
    assert program_from_json(through_text(program_to_json(infinite))) == infinite


def test_launches_of_several_kernels() -> None:
    graph = two_kernels()
    document = mugraph_to_json(graph)
    assert document["one_launch"] == [["rmsnorm_matmul", "rmsnorm_matmul_2"]]
    assert mugraph_from_json(document) == graph
    assert "one_launch" not in mugraph_to_json(gated_mlp())
