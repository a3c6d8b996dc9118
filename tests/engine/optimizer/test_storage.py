"""Memory plans: nothing overlaps that lives at once, and no plan needs fewer bytes (asked of z3)."""

from itertools import combinations

import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.optimizer.storage import Lifetime, Placement, Storage, aligned, peak, placed, stored

LIFE = st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 3))


def lifetimes(drawn: list[tuple[int, int, int]]) -> list[Lifetime]:
    return [Lifetime(f"t{at}", size, first, first + length) for at, (size, first, length) in enumerate(drawn)]


def assert_apart(every: list[Lifetime], found: Placement) -> None:
    assert found.size == max((found.offsets[one.name] + one.size for one in every), default=0)
    for one, other in combinations(every, 2):
        if one.meets(other):
            begins, ends = found.offsets[one.name], found.offsets[other.name]
            assert begins + one.size <= ends or ends + other.size <= begins


def holds_all(every: list[Lifetime], size: int) -> bool:
    """Whether there is a plan of so many bytes."""
    solver = z3.Solver()
    at = {one.name: z3.Int(one.name) for one in every}
    for one in every:
        solver.add(at[one.name] >= 0, at[one.name] + one.size <= size)
    for one, other in combinations(every, 2):
        if one.meets(other) and one.size and other.size:
            below = at[one.name] + one.size <= at[other.name]
            solver.add(z3.Or(below, at[other.name] + other.size <= at[one.name]))
    return solver.check() == z3.sat


@settings(max_examples=150)
@given(st.lists(LIFE, max_size=8))
def test_a_plan_is_right_and_none_is_smaller(drawn: list[tuple[int, int, int]]) -> None:
    every = lifetimes(drawn)
    found = placed(every)
    assert found.is_least
    assert found.offsets.keys() == {one.name for one in every}
    assert_apart(every, found)
    assert found.size >= peak(every)
    assert found.size == peak(every) or not holds_all(every, found.size - 1)


def test_what_is_alive_at_once_is_not_always_enough() -> None:
    """Found by trying: four bytes are alive at a step at most, and no plan has fewer than five."""
    drawn = [(2, 7, 0), (1, 0, 2), (2, 6, 1), (1, 2, 4), (1, 1, 4), (2, 3, 0), (1, 4, 2), (1, 5, 0), (3, 0, 0)]
    every = lifetimes(drawn)
    found = placed(every)
    assert (peak(every), found.size, found.is_least) == (4, 5, True)
    assert_apart(every, found)
    assert not holds_all(every, 4)


@given(st.lists(LIFE, max_size=9), st.integers(0, 3))
def test_a_search_that_is_cut_short_says_so_or_has_the_least(drawn: list[tuple[int, int, int]], branches: int) -> None:
    every = lifetimes(drawn)
    found, best = placed(every, branches), placed(every)
    assert_apart(every, found)
    assert found.size >= best.size
    assert not found.is_least or found.size == best.size


def assert_stored(scratch: list[Lifetime], results: list[Lifetime], found: Storage) -> None:
    size = {one.name: one for one in (*scratch, *results)}
    assert {*found.inside} | {*found.shared.offsets} == {one.name for one in scratch}
    assert not {*found.inside} & {*found.shared.offsets}
    assert_apart([one for one in scratch if one.name in found.shared.offsets], found.shared)
    for host in results:
        guests = {name: offset for name, (where, offset) in found.inside.items() if where == host.name}
        for name, offset in guests.items():
            assert 0 <= offset <= host.size - size[name].size
            assert not size[name].meets(host)
        for one, other in combinations(guests, 2):
            if size[one].meets(size[other]):
                a, b = guests[one], guests[other]
                assert a + size[one].size <= b or b + size[other].size <= a


@settings(max_examples=150)
@given(st.lists(LIFE, max_size=5), st.lists(st.tuples(st.integers(1, 8), st.integers(0, 5)), max_size=2))
def test_scratch_may_lie_where_a_result_is_not_written_yet(
    drawn: list[tuple[int, int, int]], results: list[tuple[int, int]]
) -> None:
    scratch = lifetimes(drawn)
    hosts = [Lifetime(f"out{at}", size, first, 99) for at, (size, first) in enumerate(results)]
    found = stored(scratch, hosts)
    assert_stored(scratch, hosts, found)
    assert found.shared.size <= placed(scratch).size


def test_a_chain_of_kernels() -> None:
    """x -> a -> b -> c -> out: a and c share memory; and b lies in the result, which only the last kernel writes."""
    scratch = [Lifetime("a", 512, 0, 1), Lifetime("b", 1024, 1, 2), Lifetime("c", 256, 2, 3)]
    assert stored(scratch).shared.size == peak(scratch) == 1536
    out = Lifetime("out", 1024, 3, 4)
    found = stored(scratch, [out])
    assert (found.shared.size, found.inside) == (512, {"b": ("out", 0)})
    assert_stored(scratch, [out], found)


def test_sizes_are_whole_lines() -> None:
    assert [aligned(size) for size in (0, 1, 256, 257)] == [0, 256, 256, 512]
