"""MCFuser's tiling expressions: its counts, its worked example, and that every valid expression computes the chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import factorial, log10, prod

import numpy as np
import pytest
from mugraph.ir.block import Loop
from mugraph.ir.program import TensorProgram
from mugraph.research.tilings.expressions import (
    Contraction,
    Contractions,
    Expression,
    contractions,
    expressions,
    is_deep,
    text,
    without,
)
from mugraph.research.tilings.rules import Steps, bound, prune, rule1, rule2, rule3, tile_sizes
from mugraph.research.tilings.statements import Access, Scope, Statement, at_tiles, expand, trips, written
from mugraph.search import Limits, topologies
from mugraph.targets import TARGETS

from tests.engine.search.workloads import attention, gated_mlp, gemm_chain

A100 = TARGETS["a100"]

C = Contraction("C", ("A", "B"), ("m", "n"), ("k",))
E = Contraction("E", ("C", "D"), ("m", "h"), ("n",))
TWO = Contractions(
    {"m": 1024, "n": 1024, "k": 512, "h": 512}, {"A": ("m", "k"), "B": ("k", "n"), "D": ("n", "h")}, (C, E)
)
"""MCFuser §III: C = A B, E = C D."""
THREE = Contractions(
    {**TWO.sizes, "p": 512}, {**TWO.tensors, "F": ("h", "p")}, (C, E, Contraction("G", ("E", "F"), ("m", "p"), ("h",)))
)
TREE = Contractions(
    {"m": 64, "k": 64, "n": 64, "l": 64, "h": 64},
    {"A": ("m", "k"), "B": ("k", "n"), "D": ("n", "l"), "F": ("l", "h")},
    (C, Contraction("X", ("D", "F"), ("n", "h"), ("l",)), Contraction("Y", ("C", "X"), ("m", "h"), ("n",))),
)
"""(A B)(D F): a DAG whose first two products do not need each other."""


def nest(axes: Iterable[str]) -> Expression:
    loops: Expression = ()
    for axis in reversed(tuple(axes)):
        loops = (Loop(axis, loops),)
    return loops


def say(steps: Steps, title: str) -> None:
    every, padded, fitting = steps.tiles
    print(f"\n{title}: {len(steps.expressions)} tiling expressions, {len(steps.valid)} of them compute the chain")
    for name, kept in (("rule 1", steps.rule1), ("rule 2", steps.rule2)):
        print(f"  {name}: {len(kept)} expressions  {' '.join(map(text, kept))}")
    print(f"  tile sizes: {every:,}; rule 3: {padded:,} (-{1 - padded / every:.2%}); rule 4: {fitting:,}", end="")
    print(f" (-{1 - fitting / padded:.1%})")
    print("  candidates: " + " -> ".join(f"{count:,}" for count in steps.candidates))
    print(f"  counting those once that differ in loops of extent 1: {steps.distinct:,}")


def test_counts_of_the_papers_example() -> None:
    """§III-C and Figure 7: 26 -> 5 -> 3 expressions, 109,051,904 -> about 10^4 candidates."""
    steps = prune(TWO, A100)
    say(steps, "M = N = 1024, K = H = 512")
    assert sum(map(is_deep, steps.expressions)) == 24
    assert sorted(text(e) for e in steps.expressions if not is_deep(e)) == ["mn(k,h)", "nm(k,h)"]
    assert len(set(steps.expressions)) == len(steps.valid) == 26
    assert sorted(map(text, steps.rule1)) == ["kn", "knh", "n(k,h)", "nk", "nkh"]
    assert sorted(map(text, steps.rule2)) == ["n(k,h)", "nk", "nkh"]
    every, padded, fitting = steps.tiles
    assert steps.candidates[0] == 109_051_904
    assert 1 - padded / every > 0.99  # "discards 99%"
    assert 0.35 < 1 - fitting / padded < 0.45  # "eliminates 40%"
    assert round(log10(steps.candidates[-1])) == 4
    assert steps.distinct < steps.candidates[-1]


@pytest.mark.parametrize(
    ("chain", "deep"), [(THREE, 5), (TREE, 5), (contractions(gemm_chain(4)), 5)], ids=["three", "tree", "batched"]
)
def test_other_chains(chain: Contractions, deep: int) -> None:
    steps = prune(chain, A100)
    say(steps, " ".join(f"{op.name} = {' '.join(op.inputs)}" for op in chain.ops))
    assert sum(map(is_deep, steps.expressions)) == factorial(deep)
    assert len(set(steps.expressions)) == len(steps.expressions) > factorial(deep)
    assert len(steps.expressions) >= len(steps.valid) > len(steps.rule1) > len(steps.rule2) > 0
    assert list(steps.candidates) == sorted(steps.candidates, reverse=True)


def test_three_products_one_after_the_other() -> None:
    """Flat and deep mixed; what keeps several tiles of C or E is gone after rule 2."""
    kept = {text(e) for e in prune(THREE, A100).rule2}
    assert {"hn(k,p)", "h(nk,p)"} <= {text(without(e, "m")) for e in expressions(THREE)}
    assert "h(nk,p)" in kept  # E's tile is finished before it is used, then p runs over G's
    assert not any(t.index("n") < t.index("h") for t in kept)


def test_the_worked_example() -> None:
    """§III-B, Figure 4: the store leaves the loop over n; with k of extent 1 the load of A leaves all but m's."""
    mhnk = nest("mhnk")
    plain, hoisted = expand(TWO, mhnk, hoist=False), expand(TWO, mhnk)
    assert plain is not None
    assert hoisted is not None
    assert written(plain) == "mhn(k(L_A,L_B,C_C),L_D,C_E,S_E)"
    assert written(hoisted) == "mh(n(k(L_A,L_B,C_C),L_D,C_E),S_E)"
    one = expand(TWO, without(mhnk, "k"))
    assert one is not None
    assert written(one) == "m(L_A,h(n(L_B,C_C,L_D,C_E),S_E))"


def test_trips_of_memory_statements_fall_with_hoisting() -> None:
    """§III-B: A is loaded h · n times less where its loop over k has extent 1."""
    load = Statement(Access.LOAD, "A", "C")
    tiles = {"m": 128, "n": 128, "k": 128, "h": 128}
    assert trips(TWO, nest("mhnk"), tiles)[load] == 8 * 4 * 8 * 4
    assert trips(TWO, nest("mhnk"), {**tiles, "k": 512})[load] == 8
    assert trips(TWO, nest("mhnk"), tiles)[Statement(Access.STORE, "E", "E")] == 8 * 4
    with pytest.raises(ValueError, match="does not compute"):
        trips(THREE, nest("mnhpk"), {**tiles, "p": 128})


@pytest.mark.parametrize("chain", [TWO, THREE, TREE], ids=["two", "three", "tree"])
@pytest.mark.parametrize("parts", [2, 1])
def test_every_valid_expression_computes_the_chain(chain: Contractions, parts: int) -> None:
    """Run statement by statement, with tiles of two elements and two or one tile on each second axis."""
    sizes = {axis: 4 if i % 2 else 2 * parts for i, axis in enumerate(chain.sizes)}
    tiles = dict.fromkeys(sizes, 2)
    small = Contractions(sizes, chain.tensors, chain.ops)
    expected = reference(small)
    for expression in expressions(small):
        run, _ = at_tiles(small, expression, tiles)
        for hoist in (True, False):
            scope = expand(small, run, hoist=hoist)
            if scope is not None:
                np.testing.assert_array_equal(execute(small, scope, tiles), expected, err_msg=written(scope))


def test_what_is_not_valid_has_no_order_or_sums_too_often() -> None:
    assert expand(THREE, nest("mnhpk")) is None  # C must come before E, which stands outside the loop that G shares
    assert expand(TREE, nest("mnhkl")) is None  # X would be added once for every k
    flat = (Loop("m", (Loop("n", (Loop("h", (Loop("k"), Loop("l"))),)),)),)
    assert flat in set(expressions(TREE))
    assert expand(TREE, flat) is not None


def test_the_blocks_loops_are_those_not_around_everything() -> None:
    assert bound(TWO, nest("mhnk")) == bound(TWO, nest("hmnk")) == ("h", "m")
    assert bound(TWO, nest("mnkh")) == ("m",)
    assert not rule2(TWO, nest("kn"))  # Figure 6(b)
    assert rule2(TWO, nest("nk"))  # Figure 6(a)


def test_tile_sizes() -> None:
    chain = Contractions({"m": 1024, "k": 80, "n": 8, "b": 4}, {"A": ("b", "m", "k"), "B": ("b", "k", "n")},
                         (Contraction("C", ("A", "B"), ("b", "m", "n"), ("k",)),))  # fmt: skip
    assert len(tile_sizes(chain, "m")) == 64
    assert rule3(chain, "m") == (16, 32, 64, 128, 256, 512, 1024)
    assert tile_sizes(chain, "k") == (16, 32, 48, 64, 80)
    assert rule3(chain, "k") == (16, 80)
    assert rule3(chain, "n") == (16,)
    assert tile_sizes(chain, "b") == rule3(chain, "b") == (1,)


def test_contractions_of_programs() -> None:
    """Element-wise operators and sums are part of the product that reads them."""
    chain = contractions(attention())
    assert [op.over for op in chain.ops] == [("d",), ("n",)]
    assert chain.ops[1].inputs == (chain.ops[0].name, "V")
    both = contractions(gated_mlp())
    assert len(both.outputs) == 2
    assert {text(e) for e in rule1(both, expressions(both))} == {"h"}


@pytest.mark.parametrize("program", [gemm_chain(), attention()], ids=lambda program: program.name)
def test_nests_the_search_finds_are_tiling_expressions(program: TensorProgram) -> None:
    """With the output's axes in the grid or whole, and loops of extent 1 removed; the deep one of rule 2 among them."""
    chain = contractions(program)
    found = {f.block.loops for f in topologies(program, Limits(seconds=3.0, max_topologies=32))}
    free = chain.outputs[0].axes
    inner, outer = chain.ops[0].over, chain.ops[1].over
    blocks = [without(expression, free) for expression in expressions(chain)]
    known = {without(e, gone) for e in blocks for gone in ((), inner, outer, (*inner, *outer))}
    assert found <= known
    assert nest(outer + inner) in found


# ---------------------------------------------------------------------- running an expression


def _inputs(chain: Contractions) -> dict[str, np.ndarray]:
    """Small integers, so that float64 is exact in whatever order they are summed."""
    rng = np.random.default_rng(4)
    return {
        name: rng.integers(-3, 4, [chain.sizes[axis] for axis in axes]).astype(np.float64)
        for name, axes in chain.tensors.items()
    }


def _einsum(chain: Contractions, op: Contraction, operands: list[np.ndarray]) -> np.ndarray:
    subscripts = ",".join("".join(chain.axes_of(name)) for name in op.inputs)
    return np.einsum(f"{subscripts}->{''.join(op.axes)}", *operands)


def reference(chain: Contractions) -> np.ndarray:
    values = _inputs(chain)
    for op in chain.ops:
        values[op.name] = _einsum(chain, op, [values[name] for name in op.inputs])
    return values[chain.ops[-1].name]


def execute(chain: Contractions, scope: Scope, tiles: Mapping[str, int]) -> np.ndarray:
    """The statements one by one. What is not loaded is NaN; an intermediate starts from zero wherever the innermost
    scope that holds it and all its uses begins, so it never outlives that scope."""
    memory = _inputs(chain)
    shared = {name: np.full(array.shape, np.nan) for name, array in memory.items()}
    results = {op.name: np.zeros([chain.sizes[axis] for axis in op.axes]) for op in chain.ops}
    (output,) = chain.outputs
    stored = np.full(results[output.name].shape, np.nan)
    begins = _first_scopes(chain, scope)

    def tile(axes: tuple[str, ...], at: Mapping[str, int]) -> tuple[slice, ...]:
        return tuple(slice(at[a] * tiles[a], (at[a] + 1) * tiles[a]) if a in at else slice(None) for a in axes)

    def run(here: Scope, at: dict[str, int]) -> None:
        extents = range(-(-chain.sizes[here.axis] // tiles[here.axis])) if here.axis else [0]
        for i in extents:
            now = {**at, here.axis: i} if here.axis else at
            for name in begins.get(here.axis, ()):
                results[name][:] = 0
            for item in here.body:
                if isinstance(item, Scope):
                    run(item, now)
                    continue
                axes = chain.axes_of(item.tensor)
                place = tile(axes, now)
                match item.access:
                    case Access.LOAD:
                        shared[item.tensor][place] = memory[item.tensor][place]
                    case Access.STORE:
                        stored[place] = results[item.tensor][place]
                    case Access.COMPUTE:
                        op = next(op for op in chain.ops if op.name == item.tensor)
                        operands = [
                            (shared[n] if n in shared else results[n])[tile(chain.axes_of(n), now)] for n in op.inputs
                        ]
                        results[op.name][place] += _einsum(chain, op, operands)

    run(scope, {})
    return stored


def _first_scopes(chain: Contractions, scope: Scope) -> dict[str, list[str]]:
    """Axis of a scope -> intermediates that live in it and not outside."""
    around: dict[str, tuple[str, ...]] = {}

    def walk(here: Scope, path: tuple[str, ...]) -> None:
        for item in here.body:
            if isinstance(item, Scope):
                walk(item, (*path, item.axis))
            elif item.access is Access.COMPUTE:
                around[item.tensor] = path

    walk(scope, ())
    begins: dict[str, list[str]] = {}
    for op in chain.ops:
        places = [around[op.name], *(around[user.name] for user in chain.consumers[op.name])]
        if len(places) > 1:
            common = [axes[0] for axes in zip(*places, strict=False) if len(set(axes)) == 1]
            begins.setdefault(common[-1] if common else "", []).append(op.name)
    return begins


def _volume(chain: Contractions, tiles: Mapping[str, int], counts: Mapping[Statement, int]) -> int:
    """Elements moved: tile size times trips, of memory statements (equation 3)."""
    return sum(
        n * prod(tiles[axis] for axis in chain.axes_of(statement.tensor))
        for statement, n in counts.items()
        if statement.access is not Access.COMPUTE
    )


def test_hoisting_never_moves_more() -> None:
    tiles = {"m": 128, "n": 64, "k": 512, "h": 128}
    for expression in expressions(TWO):
        hoisted = trips(TWO, expression, tiles)
        apart = trips(TWO, expression, {**tiles, "k": 256})
        assert _volume(TWO, tiles, hoisted) <= _volume(TWO, {**tiles, "k": 256}, apart)
