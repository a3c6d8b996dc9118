"""A kernel that combines its own sums in the last block of each group: its text is the same function, and what a mutant
of it gets wrong is seen in the text alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.early import STARTS_NEXT, WAIT, overlapped
from mugraph.codegen.last_block import meetings_of, with_last_blocks
from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.scratch_places import lifetimes_of
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.sizes.text import text_checked
from mugraph.verification.float_test import FloatTester
from syrupy.assertion import SnapshotAssertion

from tests.engine.codegen.goldens import PythonFile
from tests.engine.codegen.splits import CASES, Kernels, program_of

NAMES = [
    "attention_1_query", "attention_columns", "attention_tail", "grouped_attention", "rms_norm_linear_tail", "lora",
    "gemm_chain_nest", "row_sums",
]  # fmt: skip
_ADDS = 'before = tl.atomic_add(arrived_ptr + group, 1, sem="acq_rel", scope="gpu")'
_BACK = "tl.store(arrived_ptr + group, 0)"


def made(name: str) -> tuple[KernelSource, Kernels]:
    block, kernels = CASES[name]
    (first, own), (second, other) = kernels
    tiles = dict(own.grid)
    grid = [(a, n if first.sizes[a] % max(n, tiles.get(a, n)) == 0 else tiles.get(a, n)) for a, n in other.grid]
    other = replace(other, grid=tuple((axis, min(tile, tiles.get(axis, tile))) for axis, tile in grid))
    kernels = [(first, own), (second, other)]
    source = lower_kernels(kernels, program=program_of(block), meetings=meetings_of(*kernels))
    return with_last_blocks(source, kernels, [(first.name, second.name)]), kernels


def refused(name: str, old: str, new: str) -> str:
    """Why the text is not right with something else in the place of what it has once."""
    source, kernels = made(name)
    assert source.jit.count(old) == 1, source.jit
    found = text_checked(program_of(CASES[name][0]), replace(source, jit=source.jit.replace(old, new)), kernels)
    assert not found.passed
    return found.reason or ""


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


@pytest.mark.parametrize("name", ["attention_tail", "rms_norm_linear_tail"])
def test_text(name: str, snapshot: SnapshotAssertion) -> None:
    text = made(name)[0].standalone()
    assert text == snapshot(extension_class=PythonFile)
    compile(text, "last_block", "exec")
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_same_function(name: str, tester: FloatTester) -> None:
    source, kernels = made(name)
    assert source.kernels == (source,)
    assert source.launcher.count("_kernel[") == 1
    assert source.combined is not None
    assert source.counters == source.combined.groups
    assert source.combined.groups * source.combined.members == source.grid[0]
    program = program_of(CASES[name][0])
    text = text_checked(program, source, kernels)
    assert text.passed, text.reason
    found = tester.test_kernel(source, program)
    assert found.passed, found.reason


def test_it_may_start_early(tester: FloatTester) -> None:
    name = "rms_norm_linear_tail"
    source, kernels = made(name)
    early = overlapped(source, after=True, before=True)
    assert early.early
    assert early.jit.count(WAIT) == early.jit.count(STARTS_NEXT) == 1
    program = program_of(CASES[name][0])
    assert text_checked(program, early, kernels).passed
    assert tester.test_kernel(early, program).passed
    less = replace(early, jit=early.jit.replace(f"    {WAIT}\n", ""))
    assert "has ended" in (text_checked(program, less, kernels).reason or "")


def test_scratch_is_of_its_launch() -> None:
    source, _ = made("rms_norm_linear_tail")
    scratch, results = lifetimes_of(source)
    assert {one.name for one in scratch} == {"ss_parts", "acc_parts"}
    assert [one.name for one in results] == ["out"]
    assert source.sizes["group"] == 3  # each has sums of squares of its own
    assert "ss_parts = torch.empty((3, 2, 3)," in source.launcher


CASE = "rms_norm_linear_tail"
IF = "if before == 1:"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (IF, "if before == 0:", "goes on when 0 have counted themselves before it: 2 blocks of its group do"),
        (IF, "if before == 2:", "goes on when 2 have counted themselves before it: 2 blocks of its group do"),
        (IF, "if before >= 1:", "only equality with a number is read"),
        (IF, "if group >= 0:", "writes"),
        (IF, f"if pid < 3:\n        return\n    {IF}", "not all blocks of a group ask"),
        (IF, f"{IF}\n        pass\n    {IF}", "asks twice"),
        ("group = pid % 3", "group = pid // 3", ""),
        (_ADDS, _ADDS.replace("+ group", "+ (group + 1) % 3"), "sets another counter back"),
        (_ADDS, _ADDS.replace(" + group", ""), "2 have counted|6 blocks of its group do"),
        (_ADDS, _ADDS.replace(", 1,", ", 2,"), "adds something other than 1"),
        (_ADDS, _ADDS.replace("acq_rel", "relaxed"), "sem='relaxed'"),
        (_ADDS, _ADDS.replace("acq_rel", "release"), "sem='release'"),
        (_ADDS, _ADDS.replace('"gpu"', '"cta"'), "scope='cta'"),
        (_BACK, "pass", "leaves its counter"),
        (_BACK, "tl.store(arrived_ptr + group, 1)", "stores something other than 0"),
        (_BACK, "tl.store(arrived_ptr, 0)", "sets another counter back"),
        (f"    {_BACK}", _BACK, "where its blocks may still count themselves"),
        ("    tl.debug_barrier()\n", "", "without a barrier between"),
        (
            f"    tl.debug_barrier()\n    {_ADDS}\n",
            f"    {_ADDS}\n    tl.debug_barrier()\n",
            "without a barrier between",
        ),
    ],
)  # fmt: skip
def test_mutants_of_how_blocks_meet(old: str, new: str, why: str) -> None:
    reason = refused(CASE, old, new)
    assert re.search(why, reason), reason


def test_blocks_store_before_they_count_themselves() -> None:
    source, _ = made(CASE)
    start = source.jit.rindex("    rms_norm_linear_body(")
    stores = source.jit[start : source.jit.index("    tl.debug_barrier()")]
    met = f"    tl.debug_barrier()\n    {_ADDS}\n"
    assert "after they have counted themselves" in refused(CASE, f"{stores}{met}", f"{met}{stores}")


def test_the_order_of_the_parts_is_that_of_the_text() -> None:
    """What a block has itself it may not use where it is the last one: then the order would be that of arrival."""
    inside = "        rms_norm_linear_combine_body(\n            group, "
    assert "asks where it is along axis 0" in refused(
        CASE, inside, "        group = tl.program_id(0) % 3\n" + inside
    )  # fmt: skip
    reads = inside.replace("group, ", "group + pid - pid, ")
    assert "reads pid, which depends on which block it is" in refused(CASE, inside, reads)
    passed_on = inside.replace("group, ", "group + before - before, ")
    refused(CASE, inside, passed_on)
    after = f"        {_BACK}"
    late = f"{after}\n    tl.store(out_ptr + group, 0.0)"
    assert "after they have counted themselves" in refused(CASE, after, late)


def test_a_group_reads_its_own_parts_only() -> None:
    """Of the one that has stored what all have, the others may not have seen it."""
    source, _ = made(CASE)
    every = "ss_parts_ptr + group * 6, acc_parts_ptr, out_ptr"
    assert every in source.jit
    reason = refused(CASE, every, "ss_parts_ptr, acc_parts_ptr, out_ptr")
    assert re.search(r"reads ss_parts\[.*which block .* writes|reads tensor .* which block .* writes", reason), reason


def test_counters_are_counters() -> None:
    source, kernels = made(CASE)
    program = program_of(CASES[CASE][0])
    for old, new in (("torch.zeros((3,)", "torch.ones((3,)"), ("torch.zeros((3,)", "torch.zeros((2,)")):
        assert source.launcher.count(old) == 1
        wrong = replace(source, launcher=source.launcher.replace(old, new))
        assert not text_checked(program, wrong, kernels).passed


def _rejected(*, warps: int = 4, **changed: Any) -> str:
    _, kernels = made(CASE)
    (first, own), (second, other) = kernels
    other = replace(other, num_warps=warps, **changed)
    kernels = [(first, own), (second, other)]
    source = lower_kernels(kernels, meetings=meetings_of(*kernels))
    with pytest.raises(Rejected) as error:
        with_last_blocks(source, kernels, [(first.name, second.name)])
    return str(error.value)


def test_what_is_no_one_launch() -> None:
    assert "number of warps" in _rejected(warps=8)
    assert "do not make up those of" in _rejected(grid=(("n", 64),))
    _, kernels = CASES[CASE]
    source = lower_kernels(kernels)
    with pytest.raises(Rejected, match="does not come right after"):
        with_last_blocks(source, kernels, [(kernels[0][0].name, "another")])
    with pytest.raises(Rejected, match="and for no other one"):
        with_last_blocks(source, kernels, [(kernels[0][0].name, kernels[1][0].name)], ["acc_parts"])


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
@pytest.mark.parametrize("name", ["attention_1_query", "rms_norm_linear_tail"])
def test_what_the_compiler_makes_of_it(name: str) -> None:
    """All threads have stored before one adds, which releases and acquires; and parts do not come from the first-level
    cache."""
    ptx = compile_for(made(name)[0], 90).ptx
    lines = [line.strip() for line in ptx.splitlines()]
    (adds,) = (at for at, line in enumerate(lines) if "atom." in line)
    assert "atom.global.gpu.acq_rel.add.u32" in lines[adds]
    stores = [at for at, line in enumerate(lines) if "st.global" in line and at < adds]
    barriers = [at for at, line in enumerate(lines) if line.startswith("bar.sync")]
    assert any(max(stores) < at < adds for at in barriers)
    after = [line for line in lines[adds:] if "ld.global" in line]
    assert after
    assert any(at > adds for at in barriers)
    assert sum("ld.global.cg" in line for line in after) == len(after)
