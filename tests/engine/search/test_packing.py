"""Packing keeps the function: products whose sides have several axes, of random sizes, names and memory orders."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.packing import packed
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_candidate
from mugraph.search import Limits, ScheduleLimits, schedules, topologies
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import TARGETS
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_schedule

from tests.engine.search.workloads import Builder

H100 = TARGETS["h100"]
ALL = ScheduleLimits(max_candidates=10_000, num_warps=(4,), num_stages=(3,))


def shuffled(rng: random.Random, *axes: str) -> tuple[str, ...]:
    return tuple(rng.sample(axes, len(axes)))


def grouped_attention(number: int) -> TensorProgram:
    """Heads of a group share keys and values; in some programs a bias has the queries' axis and not the group's."""
    rng = random.Random(number)
    group, query, heads, key, d, e = names = rng.sample("abcghmpqstuvxyz", 6)
    sizes = (rng.choice((2, 3, 5, 6, 8)), rng.choice((2, 5, 7)), 2, rng.choice((32, 40)), 16, 16)
    b = Builder("grouped", **dict(zip(names, sizes, strict=True)))
    q = b.input("Q", *shuffled(rng, group, query, heads), d)
    k, v = b.input("K", *shuffled(rng, heads, key), d), b.input("V", *shuffled(rng, heads, key), e)
    scores = b.mul("scores", b.dot("dots", q, k, d), b.const("scale", 0.25))
    if number % 2:
        scores = b.add("biased", scores, b.input("bias", query, key))
    p = b.exp("p", scores)
    out = b.dot("out", b.div("weights", p, b.sum("total", p, key)), v, key)
    return b.program(out, *shuffled(rng, group, query, heads), e)


def projection(number: int) -> TensorProgram:
    """Rows and depth of two axes each: heads are put together again."""
    rng = random.Random(number)
    b = Builder("projection", i=rng.choice((3, 4)), j=rng.choice((6, 16)), h=rng.choice((2, 4)), d=16, n=48)
    x, w = b.input("X", *shuffled(rng, "i", "j", "h"), "d"), b.input("W", *shuffled(rng, "h", "d", "n"))
    moved = b.add("moved", b.dot("z", x, w, "h", "d"), b.input("bias", *shuffled(rng, "j", "n")))
    return b.program(b.unary("relu", "y", moved), *shuffled(rng, "i", "j", "n"))


def packings(block: BlockGraph) -> Iterator[Candidate]:
    for candidate in schedules(block, H100, ALL):
        if packed(block, candidate.schedule):
            yield candidate


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester() as tester:
        yield tester


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("written", [grouped_attention, projection])
def test_packed_kernels_compute_the_program(
    written: Callable[[int], TensorProgram], number: int, tester: FloatTester
) -> None:
    program, rng = written(number), random.Random(number)
    blocks = [found.block for found in topologies(program, Limits(seconds=1.0, max_topologies=4))]
    rng.shuffle(blocks)
    every = list(itertools.islice((candidate for block in blocks for candidate in packings(block)), 30))
    for candidate in every:
        assert check_candidate(candidate.block, candidate.schedule, H100, passes=2) == []
    chosen = rng.choice(every)
    verdict = verify_schedule(program, chosen.block, chosen.schedule, seed=2)
    assert verdict.passed, verdict.reason
    tested = tester.test_kernel(lower(chosen.block, chosen.schedule, target=H100), program, seed=3)
    assert tested.passed, (tested.reason, chosen.schedule)


def test_heads_of_a_group_are_packed_where_their_queries_are_few() -> None:
    """Mirage v1, Figure 4c: fewer bytes, and no lanes of a product that are padding."""
    b = Builder("decode", g=8, s=2, h=4, n=4096, d=128, e=128)
    scores = b.dot("scores", b.input("Q", "h", "g", "s", "d"), b.input("K", "h", "n", "d"), "d")
    p = b.exp("p", scores)
    out = b.dot("out", b.div("w", p, b.sum("total", p, "n")), b.input("V", "h", "n", "e"), "n")
    program = b.program(out, "h", "g", "s", "e")
    blocks = [found.block for found in topologies(program, Limits(seconds=1.0))]
    first, then = kernel_candidates(blocks, H100)[0].kernels
    assert packed(first.block, first.schedule) == (("g", "s"),)
    assert not {"g", "s"}.intersection(axis for axis, _ in first.schedule.grid)
    assert packed(then.block, then.schedule) == ()


def test_a_product_of_batch_axes_alone_is_scheduled(tester: FloatTester) -> None:
    """It is multiply and sum, whatever its tiles: also where its batch is summed later, and so whole in a block."""
    b = Builder("inner", b=6, n=40, k=48)
    products = b.dot("products", b.input("X", "b", "n", "k"), b.input("Y", "b", "n", "k"), "k")
    program = b.program(b.sum("total", products, "b"), "n")
    found = [c for t in topologies(program, Limits(seconds=1.0)) for c in schedules(t.block, H100, ALL)]
    whole = [c for c in found if not c.block.loops and dict(c.schedule.grid).get("n", 0) > 1]
    assert whole
    assert not Shape(whole[0].block).batch_axes
    tested = tester.test_kernel(lower(whole[0].block, whole[0].schedule), program)
    assert tested.passed, tested.reason
