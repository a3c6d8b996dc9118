"""The pool is right, of many kinds, and of the programs as they are."""

from __future__ import annotations

import pytest
from mugraph.ir.json import program_from_json
from mugraph.trace.tracer import trace_file

from tests.trust.campaign import verdict_of
from tests.trust.judge import judge
from tests.trust.pool import POOL, REWRITTEN, SOURCES, entry, names, rewritten
from tests.trust.search_pool import searched_units


def test_there_are_programs_and_graphs_of_many_kinds() -> None:
    graphs = [graph for name in names() for graph in entry(name).graphs]
    kernels = [kernel for graph in graphs for kernel in graph["kernels"]]
    blocks = [kernel["block"] for kernel in kernels]
    kinds = {op["kind"] for block in blocks for op in block["ops"]}
    assert len(names()) >= 15
    assert len(graphs) >= 95
    assert sum(len(graph["kernels"]) > 1 for graph in graphs) >= 20
    assert sum(kernel["kind"] == "library" for kernel in kernels) >= 10
    assert sum(bool(block["loops"]) for block in blocks) >= 40
    assert sum(any(loop["body"] for loop in block["loops"]) for block in blocks) >= 5
    assert kinds >= {"mask", "amax", "max", "exp", "sqrt", "unary", "dot", "sum", "accum"}
    assert any(window for block in blocks for tensor in block["tensors"] for window in tensor["windows"])
    assert sum(bool(entry(name).program.get("least")) for name in names()) >= 2


def test_most_schedules_cut_axes_unevenly() -> None:
    scheduled = [kernel for name in names() for graph in entry(name).graphs for kernel in graph["kernels"]
                 if kernel["kind"] == "graph"]  # fmt: skip
    uneven = [
        kernel
        for kernel in scheduled
        if any(
            kernel["block"]["sizes"][axis] % tile
            for axis, tile in (*kernel["schedule"]["grid"], *kernel["schedule"]["loops"].items())
        )
    ]
    assert len(uneven) > 0.8 * len(scheduled)


@pytest.mark.parametrize("name", names())
def test_every_graph_is_right_and_accepted(name: str) -> None:
    for number, graph in enumerate(entry(name).graphs):
        truth = judge(entry(name), graph)
        assert not truth.wrong, f"graph {number}: {truth}"
        assert verdict_of(name, graph) == ("accepted", ""), f"graph {number}"


def test_the_programs_are_those_of_the_sources(forks: None) -> None:
    """A file that is older than programs.py, or than what tracing makes of it, is refreshed by search_pool."""
    traced = {region.function: unit.program for region, unit in searched_units(trace_file(SOURCES))}
    assert {path.stem for path in POOL.glob("*.json")} == set(traced)
    for name, program in traced.items():
        assert program_from_json(entry(name).program) == program, f"{name}: run python -m tests.trust.search_pool"
    assert {region.function for region, _ in searched_units(trace_file(REWRITTEN))} == set(rewritten())
