"""Whole μGraphs of one and of several kernels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.commands.common import WrongUsage
from mugraph.commands.verify import read_graphs
from mugraph.ir.block import Schedule
from mugraph.ir.json import mugraph_to_json
from mugraph.ir.mugraph import LibraryKernel
from mugraph.ir.ops import Kind
from mugraph.verification.document import verify_document

from tests.engine.verification.documents import one_kernel, two_kernels
from tests.engine.verification.graphs import lora, rms_norm_linear


def test_one_kernel() -> None:
    case = lora()
    schedule = Schedule((("n", 64), ("m", 16)), {"k": 64})
    ops = tuple(replace(op, kind=Kind.MUL) if op.name == "both" else op for op in case.block.ops)
    wrong = replace(case, block=replace(case.block, ops=ops))
    right, bad = verify_document(case.program, [one_kernel(case, schedule), one_kernel(wrong, schedule)])
    assert right.passed, right.reason
    assert right.bound is not None
    assert not bad.passed


def test_a_split_reduction_over_two_kernels() -> None:
    program = rms_norm_linear().program
    right, wrong = verify_document(program, [two_kernels(), two_kernels(forget=True)])
    assert right.passed, right.reason
    assert right.bound is None
    assert right.sizes[0]["h"] == right.sizes[0]["part"] * right.sizes[0]["hp"]
    assert not wrong.passed
    assert "differs" in (wrong.reason or "")


def test_names_may_differ_from_the_program() -> None:
    case = lora()
    graph = one_kernel(case, Schedule((("n", 64),), {"k": 64}))
    renamed = replace(
        case.program,
        tensors=tuple(replace(t, name=f"arg_{t.name}") for t in case.program.tensors),
        ops=tuple(replace(o, tensor=f"arg_{o.tensor}") if o.tensor else o for o in case.program.ops),
    )
    (verdict,) = verify_document(renamed, [graph])
    assert verdict.passed, verdict.reason
    (swapped,) = verify_document(renamed, [replace(graph, inputs=graph.inputs[::-1])])
    assert not swapped.passed
    assert "shape" in (swapped.reason or "")


def test_library_kernels_are_not_taken_on_trust() -> None:
    case = lora()
    graph = one_kernel(case, Schedule((("n", 64),), {"k": 64}))
    library = LibraryKernel("mm", "torch.matmul(x, w)", ("x", "w"), ("o",))
    (verdict,) = verify_document(case.program, [replace(graph, kernels=(library,))])
    assert not verdict.passed
    assert "library" in (verdict.reason or "")


@pytest.mark.parametrize("depth", [200, 400, 900, 3000, 100_000])
def test_a_nest_of_any_depth_is_one_sentence(depth: int, tmp_path: Path) -> None:
    """Read and refused, or not read: never a traceback."""
    case = lora()
    graph = mugraph_to_json(one_kernel(case, Schedule((("n", 64),), {"k": 64})))
    text = json.dumps(graph)
    loops = '{"axis": "k", "body": [' * depth + "]}" * depth
    text = text.replace('"loops": [{"axis": "k", "body": []}]', f'"loops": [{loops}]')
    assert len(text) > 20 * depth
    path = tmp_path / "graph.json"
    path.write_text(text)
    said = ""
    try:
        (read,) = read_graphs(path)
        (verdict,) = verify_document(case.program, [read])
        assert not verdict.passed
        said = verdict.reason or ""
    except WrongUsage as error:
        said = str(error)
    assert said
    assert "\n" not in said
