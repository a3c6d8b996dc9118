"""By what verdicts are shared: equal for the same tests, and for no others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.search.alike import Alike
from mugraph.search.run import Search
from mugraph.search.topologies.limits import Limits
from mugraph.solve.verdicts import Verdicts
from mugraph.verification.alike import verdict_key
from mugraph.verification.conditioning import verified
from mugraph.verification.verdict import Verdict

from tests.engine.search import workloads
from tests.support.clock import slow_clock


def both(alike: Alike, program: TensorProgram) -> list[BlockGraph]:
    with slow_clock():
        search = alike.known(program, Limits()) or alike.keeping(program, Limits(), Search(program))
        return [one.block for one in search.run()]


@pytest.fixture(scope="module")
def pairs() -> tuple[TensorProgram, list[BlockGraph], TensorProgram, list[BlockGraph]]:
    """A program at two sizes, and its topologies."""
    alike = Alike()
    one, other = workloads.gated_mlp(), workloads.gated_mlp(m=16, h=512, n=1024)
    return one, both(alike, one), other, both(alike, other)


def test_sizes_do_not_count_and_topologies_do(
    pairs: tuple[TensorProgram, list[BlockGraph], TensorProgram, list[BlockGraph]],
) -> None:
    one, blocks, other, others = pairs
    keys = [verdict_key(one, [block]) for block in blocks]
    assert None not in keys
    assert keys == [verdict_key(other, [block]) for block in others]
    assert len(set(keys)) == len(keys)


def mutants(block: BlockGraph) -> list[BlockGraph]:
    """One operator changed in each."""
    found: list[BlockGraph] = []
    for number, op in enumerate(block.ops):
        changed: list[Op] = []
        if op.kind is Kind.MUL:
            changed.append(replace(op, kind=Kind.ADD))
        if op.fn:
            changed.append(replace(op, fn="tanh" if op.fn != "tanh" else "silu"))
        if len(op.inputs) == 2:
            changed.append(replace(op, inputs=(op.inputs[0], op.inputs[0])))
        found += [replace(block, ops=(*block.ops[:number], one, *block.ops[number + 1 :])) for one in changed]
    return found


def test_a_wrong_graph_is_never_passed_by_what_passed_for_another(
    pairs: tuple[TensorProgram, list[BlockGraph], TensorProgram, list[BlockGraph]],
) -> None:
    one, blocks, other, others = pairs
    known: dict[Hashable, Verdict] = {}
    first = Verdicts(one, alike=known)
    assert all(first.of_block(block).passed for block in blocks[:8])
    second = Verdicts(other, alike=known)
    wrong = [mutant for block in others[:8] for mutant in mutants(block)]
    assert len(wrong) >= 8
    for mutant in wrong:
        assert second.of_block(mutant).passed == verified(other, [mutant]).passed


def test_what_passed_is_not_tested_again(
    pairs: tuple[TensorProgram, list[BlockGraph], TensorProgram, list[BlockGraph]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, blocks, other, others = pairs
    known: dict[Hashable, Verdict] = {}
    expected = Verdicts(one, alike=known).of_block(blocks[0])

    def asked(*_: object) -> Verdict:
        raise AssertionError("it was tested again")

    monkeypatch.setattr("mugraph.solve.verdicts.verified", asked)
    assert Verdicts(other, alike=known).of_block(others[0]) == expected
    with pytest.raises(AssertionError, match="again"):
        Verdicts(other, alike=known).of_block(mutants(others[0])[0])


def test_where_sizes_are_a_part_of_the_program_there_is_no_key() -> None:
    """A mean has the size of its axis among its constants."""
    program = workloads.rmsnorm_linear()
    (block, *_) = both(Alike(), program)
    assert verdict_key(program, [block]) is None
