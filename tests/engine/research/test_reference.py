"""The search and the literal Algorithm 1 find the same μGraphs, up to canonical form, on generated small programs."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.research.reference import LiteralSearch, canonical
from mugraph.research.reference.ablation import main
from mugraph.research.reference.canonical import Canonical
from mugraph.research.reference.exhaust import exhaust, exhaust_in_processes
from mugraph.research.reference.nests import Statement, nest

from tests.engine.research.compared import keeps_softmax, literal, once, resized, searched
from tests.engine.search.random_programs import live, random_program, shape_of
from tests.engine.search.workloads import Builder, attention, gated_mlp, gemm_chain, lora, rmsnorm_linear
from tests.support.tile_evaluator import check_axes, evaluate_block, evaluate_program, random_inputs, small_schedule

PER_CHUNK = 12


def small_programs(reducing: bool) -> Iterator[TensorProgram]:
    """Of one to four operators, all of use, no two alike. reducing: with an axis to loop over, or all without one."""
    seen: set[tuple[object, ...]] = set()
    for seed in itertools.count():
        program = random_program(seed)
        ops = live(program)
        used = {op.tensor for op in ops if op.kind is Kind.LOAD}
        tensors = tuple(tensor for tensor in program.tensors if tensor.name in used)
        program = resized(replace(program, name=f"random_{seed}", tensors=tensors, ops=ops), 2)
        if any(op.over for op in ops) is reducing and len(program.compute_ops) <= 4 and shape_of(program) not in seen:
            seen.add(shape_of(program))
            yield program


@pytest.mark.parametrize(("reducing", "chunk"), [(False, 0), (True, 0), (True, 1), (True, 2), (True, 3)])
def test_the_search_finds_what_algorithm_1_finds(reducing: bool, chunk: int) -> None:
    agreed = deeper = graphs = looped = 0
    for program in itertools.islice(small_programs(reducing), chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        direct = len(program.compute_ops)
        compared = 0
        for max_ops in (direct, direct + 1, direct + 2):
            reference = literal(program, max_ops)
            if reference is None:
                break
            assert once(searched(program, max_ops)) == once(reference), f"{program.name}, {max_ops} operators"
            compared, graphs = max_ops, graphs + len(reference)
            looped += any(block.loops for block in reference)
        agreed += compared > 0
        deeper += compared > direct
    assert agreed >= PER_CHUNK - 1  # of one now and then the direct form alone takes too long
    assert deeper > PER_CHUNK / 2
    assert graphs > 2 * PER_CHUNK
    assert looped > PER_CHUNK / 2 or not reducing


@pytest.mark.parametrize(
    ("program", "max_ops"),
    [
        (gemm_chain(2, 2, 2, 2, 2), 3),
        (lora(m=2, h=2, n=2, r=2), 4),
        (gated_mlp(m=2, h=2, n=2), 5),
        (gemm_chain(2, 2, 2, 2, 2), 4),
        (attention(2, 2, 2, 2), 6),
        (rmsnorm_linear(m=2, h=2, n=2, eps=False, weight=False), 6),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_they_agree_on_the_papers_programs(program: TensorProgram, max_ops: int) -> None:
    reference = literal(program, max_ops, prefixes=100_000)
    assert reference
    assert once(searched(program, max_ops)) == once(reference)


def test_what_is_found_is_right_tile_by_tile() -> None:
    """The reference does not lean on the search's proof alone."""
    program = resized(gemm_chain(), 4)
    blocks = literal(program, 4, prefixes=100_000)
    assert blocks
    assert any(block.loops for block in blocks)
    inputs = random_inputs(program, 3)
    expected = evaluate_program(program, inputs)
    for block in blocks:
        check_axes(block)
        assert evaluate_block(block, small_schedule(block), inputs) == pytest.approx(expected, rel=1e-9)


def test_sizes_multiply_the_work_and_change_no_graph() -> None:
    """Why the search chooses them last: each choice that fits leads to the same graphs again."""
    program = resized(gemm_chain(), 4)
    search = LiteralSearch(program, 2, max_loops=1)
    by_loops: dict[frozenset[str], dict[str, set[Canonical]]] = {}
    for sizes, block in search.run():
        by_loops.setdefault(frozenset(sizes.loops), {}).setdefault(repr(sizes), set()).add(canonical(block))
    assert search.counts.sizes == search.counts.sizes_done == 27 * (1 + 2 + 2)
    for loops, of_sizes in by_loops.items():
        assert len(of_sizes) == 27 * 2 ** len(loops)
        first, *others = of_sizes.values()
        assert all(other == first for other in others)


def test_what_does_not_fit_shared_memory_is_not_formed() -> None:
    """A tile of the output with 4 x 4 elements of 2 bytes beside its operands."""
    b = Builder("outer", m=4, n=4)
    program = b.program(b.mul("y", b.input("x", "m"), b.input("z", "n")), "m", "n")

    def grids(memory: int) -> set[tuple[int, int]]:
        found = LiteralSearch(program, 1, memory=memory).run()
        return {(sizes.grid.get("m", 4), sizes.grid.get("n", 4)) for sizes, _ in found}

    assert grids(48) == set(itertools.product((1, 2, 4), repeat=2))
    assert grids(47) == set(itertools.product((1, 2, 4), repeat=2)) - {(4, 4)}
    assert grids(6) == {(1, 1)}
    assert grids(5) == set()


@pytest.mark.parametrize("make", [lambda: rmsnorm_linear(eps=False, weight=False), lora, lambda: attention(2, 4, 4, 4)])
def test_the_ablations_first_column_is_the_search(make) -> None:
    program = make()
    max_ops = len(program.compute_ops) + 2
    found = exhaust(program, max_ops)
    assert found.ended_by == "space"
    assert found.blocks
    kept = [block for block in found.blocks if keeps_softmax(program, block)]
    assert once(kept) == once(searched(program, max_ops))


def test_processes_find_the_same() -> None:
    program = rmsnorm_linear(eps=False, weight=False)
    alone = exhaust(program, 8)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        assert exhaust_in_processes(program, 8, pool, 60.0) == alone
        assert exhaust_in_processes(program, 8, pool, 0.0).ended_by == "cancelled"


def test_without_expression_pruning_the_same_graphs_take_more_values() -> None:
    b = Builder("totals", m=4, n=4)
    program = b.program(b.sum("y", b.input("x", "m", "n"), "n"), "m")
    pruned, unpruned = exhaust(program, 2), exhaust(program, 2, pruned=False)
    assert once(list(pruned.blocks)) == once(list(unpruned.blocks))
    assert {block.loops for block in pruned.blocks} == {(), (Loop("n"),)}
    assert unpruned.values > 5 * pruned.values


def test_the_ablation_reports_what_it_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column ends where it reached the cap, and says so."""
    monkeypatch.setenv("COLUMNS", "200")  # cells in one line
    file = tmp_path / "ablation.svg"
    assert main(["--cap", "1", "--ops", "2", "11", "12", "--plot", str(file)]) == 0
    output = capsys.readouterr().out
    rows = [line for line in output.splitlines() if line.startswith("│")]
    assert sum("of 715" in line for line in rows) >= 1
    assert "(cap)" in output
    assert "–" in next(line for line in rows if line.split("│")[1].strip() == "12")
    picture = ElementTree.fromstring(file.read_text())
    titles = [title.text or "" for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("one process, 2 operators") and "space" in title for title in titles)
    assert any(title.startswith("full, 2 operators") and "space" in title for title in titles)
    assert any(title.startswith("literal Algorithm 1") and "cap" in title for title in titles)


@pytest.mark.parametrize("wrong", [["--cap", "0"], ["--cap", "soon"], ["--ops", "0"]])
def test_wrong_usage_of_the_ablation(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------- canonical form


def renamed(block: BlockGraph) -> BlockGraph:
    """Other names of values and axes, another order of operators and of commutative operands."""
    axes = {axis: f"{chr(ord('z') - i)}_axis" for i, axis in enumerate(sorted(block.sizes))}

    def over(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(axes[name] for name in names))

    def loop(old: Loop) -> Loop:
        return Loop(axes[old.axis], tuple(map(loop, old.body)))

    def op(old: Op) -> Op:
        inputs = tuple(f"{name}_" for name in old.inputs)
        if old.kind in (Kind.ADD, Kind.MUL, Kind.DOT):
            inputs = inputs[::-1]
        return replace(old, name=f"{old.name}_", inputs=inputs, axes=over(old.axes), over=over(old.over))

    left, placed, ops = list(reversed(block.ops)), set[str](), list[Op]()
    while left:
        ready = next(op for op in left if set(op.inputs) <= placed)
        left.remove(ready)
        placed.add(ready.name)
        ops.append(op(ready))
    tensors = tuple(replace(t, dims=tuple(tuple(axes[a] for a in dim) for dim in t.dims)) for t in block.tensors)
    sizes = {axes[axis]: size for axis, size in block.sizes.items()}
    return BlockGraph(block.name, sizes, tensors, tuple(ops), tuple(map(loop, block.loops)))


def test_the_canonical_form_knows_no_names_and_no_order() -> None:
    blocks = [b for make in (lora, gated_mlp, attention, gemm_chain) for b in searched(make(), 7)]
    assert any(len(block.loop_axes) == 2 for block in blocks)
    for block in blocks:
        other = renamed(block)
        assert other.ops != block.ops
        assert canonical(other) == canonical(block)


def test_the_order_of_loops_in_a_row_follows_from_the_graph() -> None:
    b = Builder("two", m=2, h=2, k=2)
    x, z = b.input("x", "m", "h"), b.input("z", "m", "k")
    program = b.program(b.mul("y", b.sum("sx", x, "h"), b.sum("sz", z, "k")), "m")
    both = [block for block in searched(program, 5) if len(block.loops) == 2]
    assert both
    for block in both:
        assert canonical(replace(block, loops=block.loops[::-1])) == canonical(block)
    chain = next(block for block in searched(softmax_like(), 9) if len(block.loops) == 2)
    assert canonical(replace(chain, loops=chain.loops[::-1])) == canonical(chain)
    assert canonical(replace(chain, loops=chain.loops[:1])) != canonical(chain)


def softmax_like() -> TensorProgram:
    """A loop over k that uses the result of the one over h."""
    b = Builder("chained", m=2, h=2, k=2)
    x, z = b.input("x", "m", "h"), b.input("z", "m", "k")
    return b.program(b.sum("y", b.unary("silu", "s", b.add("a", b.sum("sx", x, "h"), z)), "k"), "m")


def test_canonical_forms_tell_operators_and_operands_apart() -> None:
    def form(build) -> Canonical:
        b = Builder("one", m=2, n=2)
        return canonical(searched(b.program(build(b, b.input("x", "m", "n"), b.input("z", "m", "n")), "m", "n"), 1)[0])

    forms = [
        form(lambda b, x, z: b.add("y", x, z)),
        form(lambda b, x, z: b.mul("y", x, z)),
        form(lambda b, x, z: b.div("y", x, z)),
        form(lambda b, x, z: b.div("y", z, x)),
        form(lambda b, x, z: b.unary("silu", "y", x)),
        form(lambda b, x, z: b.unary("relu", "y", x)),
    ]
    assert len(set(forms)) == len(forms)
    assert form(lambda b, x, z: b.add("y", z, x)) == forms[0]


# ---------------------------------------------------------------------------------------------------------- loop nests

NONE = frozenset[str]()
A, B, BOTH = frozenset("a"), frozenset("b"), frozenset("ab")


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([Statement(A, NONE, "a"), Statement(B, NONE, "b")], (Loop("a"), Loop("b"))),
        ([Statement(A, B), Statement(A, NONE, "a"), Statement(B, NONE, "b")], (Loop("b"), Loop("a"))),
        ([Statement(BOTH, NONE, "b"), Statement(A, B, "a")], (Loop("a", (Loop("b"),)),)),
        ([Statement(BOTH, NONE, "a"), Statement(B, A, "b")], (Loop("b", (Loop("a"),)),)),
        # each needs the other's result; an accumulator of b that belongs outside of a; nothing to accumulate
        ([Statement(A, B, "a"), Statement(B, A, "b")], None),
        ([Statement(BOTH, NONE, "b"), Statement(A, B, "a"), Statement(B, NONE, "b")], None),
        ([Statement(BOTH, NONE, "a")], None),
    ],
)
def test_the_nest_that_runs_a_graph(statements: list[Statement], expected: tuple[Loop, ...] | None) -> None:
    assert nest(("a", "b"), statements) == expected
