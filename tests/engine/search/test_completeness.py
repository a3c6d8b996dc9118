"""The pruned search loses nothing: compared with all graphs, enumerated without abstract expressions (Theorem 1)."""

from __future__ import annotations

import itertools
import random

import pytest
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, Search

from tests.engine.search.workloads import Builder

P = 2147481143
OPERATORS = {
    Kind.ADD: lambda x, y: (x + y) % P,
    Kind.MUL: lambda x, y: x * y % P,
    Kind.DIV: lambda x, y: x * pow(y, -1, P) % P,
}


def factored() -> TensorProgram:
    """x z + y z, the paper's example."""
    b = Builder("factored", i=8)
    x, y, z = (b.input(name, "i") for name in "xyz")
    return b.program(b.add("o", b.mul("xz", x, z), b.mul("yz", y, z)), "i")


def scaled() -> TensorProgram:
    """(x y) / z."""
    b = Builder("scaled", i=8)
    x, y, z = (b.input(name, "i") for name in "xyz")
    return b.program(b.div("o", b.mul("xy", x, y), z), "i")


def quotients() -> TensorProgram:
    """x / z + y / z."""
    b = Builder("quotients", i=8)
    x, y, z = (b.input(name, "i") for name in "xyz")
    return b.program(b.add("o", b.div("xz", x, z), b.div("yz", y, z)), "i")


def associated() -> TensorProgram:
    """x y z v, which has fifteen ways to associate."""
    b = Builder("associated", i=8)
    x, y, z, v = (b.input(name, "i") for name in "xyzv")
    return b.program(b.mul("o", b.mul("xyz", b.mul("xy", x, y), z), v), "i")


def residue(program: TensorProgram, leaves: dict[str, int]) -> int:
    values = dict(leaves)
    for op in program.compute_ops:
        values[op.name] = OPERATORS[op.kind](*(values[i] for i in op.inputs))
    return values[next(iter(program.outputs))]


def every_graph(program: TensorProgram, kinds: list[Kind], max_ops: int) -> set[frozenset[object]]:
    """All graphs without unused operators that compute the program's residue: sets of (kind, operands, result)."""
    rng = random.Random(0)
    leaves = {t.name: rng.randrange(2, P) for t in program.tensors}
    goal = residue(program, leaves)
    found: set[frozenset[object]] = set()

    def grow(values: tuple[int, ...], graph: tuple[tuple[Kind, tuple[int, ...], int], ...]) -> None:
        used = {v for _, operands, _ in graph for v in operands}
        if graph and graph[-1][2] == goal:
            if all(result in used or result == goal for _, _, result in graph):
                found.add(frozenset(graph))
            return
        # Every operator left takes up at most one unused value more than it makes.
        unused = sum(result not in used for _, _, result in graph)
        if len(graph) == max_ops or unused - 1 > max_ops - len(graph):
            return
        for kind in kinds:
            pairs = itertools.product(values, values)
            for x, y in pairs if kind is Kind.DIV else itertools.combinations_with_replacement(values, 2):
                result = OPERATORS[kind](x, y)
                if result not in values:
                    operands = (x, y) if kind is Kind.DIV else tuple(sorted((x, y)))
                    grow((*values, result), (*graph, (kind, operands, result)))

    grow(tuple(leaves.values()), ())
    return found


@pytest.mark.parametrize(
    ("make", "kinds", "max_ops"),
    [
        (factored, [Kind.ADD, Kind.MUL], 4),
        (scaled, [Kind.MUL, Kind.DIV], 3),
        (quotients, [Kind.ADD, Kind.DIV], 3),
        (associated, [Kind.MUL], 3),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_every_graph_with_the_programs_abstract_expression_is_found(make, kinds: list[Kind], max_ops: int) -> None:
    """Only graphs whose result has another abstract expression (x / (y / z), cancelled factors) are missing."""
    program = make()
    rng = random.Random(0)
    leaves = {t.name: rng.randrange(2, P) for t in program.tensors}
    blocks = [f.block for f in Search(program, Limits(max_block_ops=max_ops, slack=max_ops)).run()]
    ours: set[frozenset[object]] = set()
    for block in blocks:
        values = {op.name: leaves[op.tensor] for op in block.ops if op.kind is Kind.LOAD}
        graph: list[object] = []
        for op in block.block_ops:
            operands = tuple(values[i] for i in op.inputs)
            values[op.name] = OPERATORS[op.kind](*operands)
            graph.append((op.kind, operands if op.kind is Kind.DIV else tuple(sorted(operands)), values[op.name]))
        ours.add(frozenset(graph))
    assert len(ours) == len(blocks)
    brute = every_graph(program, kinds, max_ops)
    assert ours <= brute
    assert {g for g in brute if keeps_expression(program, g, leaves)} == ours


def keeps_expression(program: TensorProgram, graph: frozenset[object], leaves: dict[str, int]) -> bool:
    """Has the graph's result the program's abstract expression?"""
    from mugraph.search.algebra.abstract import Algebra

    algebra = Algebra()
    names = {value: algebra.atom(name) for name, value in leaves.items()}
    apply = {Kind.ADD: algebra.add, Kind.MUL: algebra.mul, Kind.DIV: algebra.div}
    reference = {name: algebra.atom(name) for name in leaves}
    for op in program.compute_ops:
        reference[op.name] = apply[op.kind](*(reference[i] for i in op.inputs))
    todo = list(graph)
    while todo:
        for node in todo:
            kind, operands, result = node  # type: ignore[misc]
            if all(v in names for v in operands):
                names[result] = apply[kind](*(names[v] for v in operands))
                todo.remove(node)
                break
    return names[residue(program, leaves)] == reference[next(iter(program.outputs))]


def test_four_factors_have_fifteen_associations() -> None:
    assert len(list(Search(associated(), Limits(slack=0)).run())) == 15
