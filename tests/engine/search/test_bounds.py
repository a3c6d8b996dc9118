"""What decides early loses nothing: sites, the distance to the output, and sizes of known DAGs."""

from __future__ import annotations

import itertools

import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, Search
from mugraph.search.algebra.abstract import NF, Algebra
from mugraph.search.topologies.doubts import Doubts
from mugraph.search.topologies.edges import Edge, needs
from mugraph.search.topologies.fitting import Fitting
from mugraph.search.topologies.frame import Frame
from mugraph.search.topologies.nest import Nest
from mugraph.search.topologies.remaining import Remaining
from mugraph.search.topologies.saturate import Saturation
from mugraph.search.topologies.sites import Marks, Sites

from tests.engine.search.random_programs import programs
from tests.engine.search.workloads import (
    Builder,
    attention,
    gated_mlp,
    lora,
    norm_transformer,
    rmsnorm_gated_mlp,
    rmsnorm_linear,
)

SMALL = [program for program in programs() if 3 <= len(program.compute_ops) <= 5][:48]


def graphs(program: TensorProgram) -> tuple[set[frozenset[object]], bool]:
    """All of them, with at most one operator over the direct form: so the bound has something to cut off. And: all?"""
    search = Search(program, Limits(slack=1, seconds=5.0, max_topologies=10_000))
    return {identity(found.block) for found in search.run()}, search.stats.complete


def identity(block: BlockGraph) -> frozenset[object]:
    """A block graph, whatever its operators are called and in whichever order they stand."""
    texts: dict[str, str] = {}
    for op in block.ops:
        inputs = [texts[i] for i in op.inputs]
        if op.kind in (Kind.ADD, Kind.MUL, Kind.DOT):
            inputs.sort()
        texts[op.name] = f"{op.kind}{op.fn}{op.over}{op.tensor}{op.value}({', '.join(inputs)})"
    return frozenset([*texts.values(), block.loops])


@pytest.mark.parametrize(
    "program", [gated_mlp(), lora(), rmsnorm_linear(), attention(), *SMALL], ids=lambda program: program.name
)
def test_early_decisions_lose_no_topology(program: TensorProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    found, complete = graphs(program)
    everything = Marks(1, 1, 1, 1)
    monkeypatch.setattr(Sites, "marks", lambda self, x: everything)
    monkeypatch.setattr(Remaining, "after", lambda self, nf: 0)
    monkeypatch.setattr(Remaining, "within", lambda self, nf: 0)
    late, late_complete = graphs(program)
    if complete:
        assert late <= found
    if late_complete:
        assert found <= late


@pytest.mark.parametrize("make", [lora, rmsnorm_linear, attention, norm_transformer, rmsnorm_gated_mlp])
def test_sites_agree_with_the_subexpression_test(make) -> None:
    """Marks rule no pair out that leads on, and a single expression has a cofactor just where it is a subexpression."""
    program = make()
    frame = Frame(program, (), Algebra())
    algebra, goal = frame.algebra, frame.values[next(iter(program.outputs))].nf
    sites = Sites(algebra, goal)
    pool: list[NF] = list(dict.fromkeys(value.nf for value in frame.values.values()))
    pool += [algebra.sum(p, nf) for p in frame.primes[:2] for nf in pool]
    for x, y in itertools.product(pool, repeat=2):
        a, b = sites.marks(x), sites.marks(y)
        if algebra.sub(algebra.add(x, y), goal):
            assert a.cofactors & b.cofactors
        if algebra.sub(algebra.mul(x, y), goal):
            assert a.factor & b.factor
        if algebra.sub(algebra.div(x, y), goal):
            assert a.factor & b.divisor
        assert bool(a.cofactors) == algebra.sub(x, goal)


def test_no_norm_transformer_has_eleven_operators() -> None:
    """Five leaves to join, one of them nine times in a term, two roots, two sums: twelve at least, without a search."""
    nest = Nest(norm_transformer(), (), Limits())
    assert nest.account.complete_to == 11
    assert nest.account.complete


def test_a_program_of_eleven_operators_finds_itself() -> None:
    """Its smallest DAG shares what the first one known of each operand does not."""
    program = rmsnorm_gated_mlp()
    assert len(program.compute_ops) == 11
    blocks = [found.block for found in Search(program).run()]
    direct = {(op.kind, op.over) for op in program.compute_ops}
    assert any(not block.loops and {(op.kind, op.over) for op in block.block_ops} == direct for block in blocks)


def test_sums_that_may_be_one_are_counted_once() -> None:
    """sum(x) + sum(y) is one sum of x + y."""
    b = Builder("one", m=4, n=4)
    x, y = b.input("x", "m", "n"), b.input("y", "m", "n")
    one = b.program(b.add("o", b.sum("sx", x, "n"), b.sum("sy", y, "n")), "m")
    assert Nest(one, (), Limits()).account.complete_to == 1


def root_of(i: int) -> Edge:
    return Edge(Kind.SQRT, (i,))


def test_fitting_finds_the_dags_that_share() -> None:
    """2 is made of 0 or of 1, 3 of 1 alone: both together need three operators."""
    edges = [[], [root_of(0)], [root_of(0), root_of(1)], [root_of(1)], [root_of(0)]]
    leaves = {0: "x"}
    assert needs(edges, leaves) == [0, 0b10, 0b100, 0b1010, 0b10000]
    fitting = Fitting(edges, leaves, [0, 0b10, 0b100, 0b1010, 0b10000], 5)
    assert fitting.dag((2, 3), 3) == 0b1110
    assert fitting.dag((2, 3), 2) == 0
    assert not fitting.gave_up


def test_fitting_answers_for_the_state_it_was_made_for() -> None:
    """What is found between two questions has values of which it knows nothing."""
    edges = [[], [Edge(Kind.SQRT, (0,))], [Edge(Kind.SQRT, (1,))]]
    fitting = Fitting(edges, {0: "x"}, [0, 0b10, 0b110], 2)
    edges.append([Edge(Kind.SQRT, (0,))])
    edges[2].insert(0, Edge(Kind.MUL, (3, 3)))
    assert fitting.dag((2,), 2) == 0b110


def test_what_was_cut_is_asked_again_when_a_new_way_turns_up() -> None:
    """2 and 3 need four operators until 3 can be made of what 2 is made of."""
    edges = [[], [root_of(0)], [root_of(1)], [root_of(4)], [root_of(0)]]
    known = [0, 0b10, 0b110, 0b11000, 0b10000]
    doubts = Doubts(max_ops=5)
    doubts.add((2, 3), 1)
    assert doubts.ask(edges, {0: "x"}, known, 4) == ((2, 3), 0)
    assert doubts.ask(edges, {0: "x"}, known, 4) is None
    assert list(doubts.lost(4)) == [((2, 3), 1, 6)]
    edges[3].append(root_of(1))
    assert list(doubts.lost(5)) == [((2, 3), 1, 0)]
    assert doubts.ask(edges, {0: "x"}, known, 5) == ((2, 3), 0b1110)
    assert doubts.ask(edges, {0: "x"}, known, 5) is None
    assert not list(doubts.lost(5))


def test_what_is_too_hard_to_decide_says_how_large_it_is() -> None:
    """QKNorm and attention, 18 operators: not all pairs of values are settled, and none that matters to 17."""
    saturation = Saturation(Frame(attention(norm=True), (), Algebra()), 20, 20_000)
    for _ in saturation.steps():
        pass
    assert saturation.over
    assert 17 <= saturation.complete_to < 20
