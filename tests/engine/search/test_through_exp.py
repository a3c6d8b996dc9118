"""sigmoid, tanh and GELU by tanh where a program has what they are made of: either way of writing finds the other.

Values are equal here where their abstract expressions are as well, and in those constants are names: 1 - sigmoid(x)
and sigmoid(-x), or tanh and 1 - 2 / (1 + exp(2x)), are two functions to the search (verification knows better). The
same holds of x (1 + c x x) and x + c x x x in GELU's argument.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.through_exp import searchable
from mugraph.search import Limits, Search
from mugraph.search.algebra.abstract import Algebra
from mugraph.search.topologies.edges import Dag
from mugraph.search.topologies.extract import Extraction
from mugraph.search.topologies.frame import Frame
from mugraph.search.topologies.remaining import Remaining
from mugraph.search.topologies.saturate import Saturation
from mugraph.verification.verifier import verify_topology

from tests.engine.research.compared import literal, once, resized, searched
from tests.engine.search.workloads import Builder, gated_mlp

SLOPE, CUBE = 1.5957691216057308, 0.044715


def elementwise() -> tuple[Builder, str]:
    b = Builder("elementwise", m=4, n=8)
    return b, b.input("x", "m", "n")


def one_plus_exp(b: Builder, x: str) -> tuple[str, str]:
    """The constant one, and 1 + exp(-x)."""
    one = b.const("one", 1.0)
    return one, b.add("above", one, b.exp("power", b.mul("minus_x", b.const("minus", -1.0), x)))


def logistic() -> TensorProgram:
    """The sum of 1 / (1 + exp(-x)), operator by operator."""
    b, x = elementwise()
    one, above = one_plus_exp(b, x)
    return b.program(b.sum("o", b.div("s", one, above), "n"), "m")


def shared() -> TensorProgram:
    """The sum of (1 + exp(-x)) y + sigmoid(x): sigmoid is a quotient with what is there."""
    b, x = elementwise()
    y = b.input("y", "m", "n")
    _, above = one_plus_exp(b, x)
    both = b.add("both", b.mul("scaled", above, y), b.unary("sigmoid", "s", x))
    return b.program(b.sum("o", both, "n"), "m")


def hyperbolic() -> TensorProgram:
    """2 sigmoid(2x) - 1."""
    b, x = elementwise()
    two = b.const("two", 2.0)
    twice = b.mul("twice", two, b.unary("sigmoid", "s", b.mul("double", two, x)))
    return b.program(b.sum("o", b.add("t", twice, b.const("minus", -1.0)), "n"), "m")


def gelu(cube: float = CUBE) -> TensorProgram:
    """x sigmoid(1.6 (x + 0.04 x^3))."""
    b, x = elementwise()
    third = b.mul("third", b.mul("small", b.const("cube", cube), x), b.mul("square", x, x))
    slope = b.mul("argument", b.const("slope", SLOPE), b.add("curved", x, third))
    return b.program(b.sum("o", b.mul("g", x, b.unary("sigmoid", "s", slope)), "n"), "m")


def capped() -> TensorProgram:
    """A softmax of a sigmoid, beside the parts of one."""
    b, x = elementwise()
    one, above = one_plus_exp(b, b.unary("sigmoid", "s", x))
    return b.program(b.sum("o", b.div("q", one, above), "n"), "m")


def found(program: TensorProgram) -> list[BlockGraph]:
    """All of them without a loop, each verified."""
    search = Search(program, Limits(max_loops=0, slack=1, max_topologies=10_000))
    blocks = [topology.block for topology in search.run()]
    assert search.stats.complete
    for block in blocks:
        verdict = verify_topology(program, block)
        assert verdict.passed, verdict.reason
    return blocks


def functions(block: BlockGraph) -> set[str]:
    return {op.fn for op in block.ops if op.fn} | {str(op.kind) for op in block.ops if op.kind is Kind.EXP}


@pytest.mark.parametrize(
    ("make", "fn", "smallest"), [(logistic, "sigmoid", 2), (hyperbolic, "tanh", 2), (gelu, "gelu_tanh", 2)]
)
def test_what_is_written_out_is_found_as_one_operator(
    make: Callable[[], TensorProgram], fn: str, smallest: int
) -> None:
    blocks = found(make())
    least = min(blocks, key=lambda block: len(block.block_ops))
    assert len(least.block_ops) == smallest
    assert functions(least) == {fn}
    assert any(functions(block) == {str(op.fn or op.kind) for op in make().ops if op.fn or op.kind is Kind.EXP}
               for block in blocks)  # fmt: skip


def test_a_sigmoid_is_found_through_exp() -> None:
    """With one exponential, or with sigmoid for the quotient."""
    made = {frozenset(functions(block)) for block in found(shared())}
    assert {frozenset({"exp"}), frozenset({"exp", "sigmoid"})} <= made


@pytest.mark.parametrize("make", [logistic, shared, hyperbolic, gelu], ids=lambda make: make.__name__)
def test_bounds_are_bounds(make: Callable[[], TensorProgram]) -> None:
    """Of every value in every graph: the operators below it, and those besides."""
    program = make()
    frame = Frame(program, (), Algebra(searchable(program.ops)))
    saturation = Saturation(frame, len(program.compute_ops) + 2, 10_000)
    for _ in saturation.steps():
        pass
    assert saturation.done
    loads = [frame.values[op.name] for op in program.ops if op.kind is Kind.LOAD]
    tiles = {frame.primes[slot]: [v.nf for v in loads if v.mask >> slot & 1] for slot in frame.tile_slot.values()}
    remaining = Remaining(frame.algebra, saturation.goal.nf, [], tiles, dots=False)
    count = 0
    for dag in Extraction(saturation, saturation.max_ops).dags():
        for index in dag or {}:
            below = operators_below(dag or {}, index)
            assert remaining.within(saturation.values[index].nf) <= below
            assert remaining.after(saturation.values[index].nf) <= len(dag or {}) - below
            count += 1
    assert count > 5


def operators_below(dag: Dag, index: int) -> int:
    reached, waiting = set[int](), [index]
    while waiting:
        value = waiting.pop()
        if value in dag and value not in reached:
            reached.add(value)
            waiting += dag[value].inputs
    return len(reached)


@pytest.mark.parametrize(
    ("make", "max_ops", "count"),
    [(logistic, 5, 4), (hyperbolic, 5, 4), (gelu, 3, 3)],
    ids=("logistic", "hyperbolic", "gelu"),
)
def test_algorithm_1_finds_the_same(make: Callable[[], TensorProgram], max_ops: int, count: int) -> None:
    program = resized(make(), 2)
    reference = literal(program, max_ops)
    assert reference
    assert len(reference) == count
    assert once(searched(program, max_ops)) == once(reference)


def test_forms_are_for_programs_that_have_their_parts() -> None:
    """Elsewhere they would add to the search, and find nothing."""
    assert searchable(logistic().ops) == {"sigmoid"}
    assert searchable(hyperbolic().ops) == {"tanh"}
    assert searchable(gelu().ops) == {"gelu_tanh"}
    assert searchable(gated_mlp().ops) == frozenset()
    assert searchable(gelu(cube=0.05).ops) == frozenset()
    assert searchable(capped().ops) == frozenset()  # its exponential would be the second on the path
    assert {frozenset(functions(block)) for block in found(capped())} == {frozenset({"exp", "sigmoid"})}


def test_a_sigmoid_past_an_exponential_is_a_function_nothing_is_known_of() -> None:
    algebra = Algebra({"sigmoid", "tanh"})
    x, one, minus, two = (algebra.atom(name) for name in ("x", 1.0, -1.0, 2.0))
    assert algebra.unary("sigmoid", x) == algebra.div(one, algebra.add(one, algebra.exp(algebra.mul(minus, x))))
    power = algebra.exp(x)
    opaque = algebra.unary("sigmoid", power)
    assert algebra.text(opaque) == "sigmoid(exp(x))"
    assert not algebra.sub(one, opaque)
    # tanh is still one of it
    double = algebra.unary("sigmoid", algebra.mul(two, power))
    assert algebra.unary("tanh", power) == algebra.add(algebra.mul(two, double), minus)
