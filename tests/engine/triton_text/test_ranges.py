"""Texts whose use of memory is looked at for every size of a range at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from mugraph.codegen.early import WAIT, overlapped
from mugraph.codegen.lower import lower_kernels
from mugraph.sizes.proved import varying_of
from mugraph.triton_text.ranges import check as ranges
from mugraph.triton_text.ranges.check import RangeVerdict, check_ranges
from mugraph.triton_text.ranges.formulas import Formula
from mugraph.triton_text.ranges.prover import Prover, Undecided

from tests.engine.codegen.cases import CASES
from tests.trust.range_pool import Ranged, ranged
from tests.trust.text_pool import program_of


def one(name: str, axis: str, *, rows: bool = False) -> Ranged:
    found = ranged(name, axis, rows=rows)
    assert found is not None
    return found


def checked(kernel: Ranged, *changes: tuple[str, str]) -> RangeVerdict:
    text = kernel.source.standalone()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return check_ranges(kernel.program, kernel.source, varying_of(kernel.program), text)


ROWS = one("gemm_chain_tails", "m")
KEYS = one("attention_tail", "kv")
PARTS = one("attention in parts", "kv", rows=True)


@pytest.mark.parametrize(
    ("kernel", "changes", "check", "said"),
    [
        (ROWS, (("mask_m = offs_m < M", "mask_m = offs_m < 41"),), "bounds", "reads outside of a with m ="),
        (ROWS, (("mask_m = offs_m < M", "mask_m = offs_m <= M"),), "bounds", "outside of"),
        (ROWS, (("mask_m = offs_m < M", "mask_m = offs_m < M // 4 * 4"),), "unwritten", "not every element of"),
        (ROWS, (("triton.cdiv(m, ", "(m // "),), "unwritten", "not every element of"),
        (ROWS, (("pid_m * BLOCK_M", "pid_m * (BLOCK_M // 2)"),), "order", "an element of"),
        (KEYS, (("range(0, KV, BLOCK_KV)", "range(0, KV // 2 * 2, BLOCK_KV)"),), "unwritten", "of key along kv"),
        (KEYS, (("range(0, KV, BLOCK_KV)", "range(BLOCK_KV, KV, BLOCK_KV)"),), "unwritten", "of key along kv"),
        (KEYS, (("range(0, KV, BLOCK_KV)", "range(0, KV, BLOCK_KV // 2)"),), "order", "twice"),
        (PARTS, (("triton.cdiv(kv, kv_part)", "max(1, kv // kv_part)"),), "unwritten", "of key along kv with kv ="),
        (PARTS, (("PART_KV, KV)", "PART_KV, KV // 5 * 5 + 1)"),), "unwritten", "not every element of key along kv"),
        (
            PARTS,
            (("offs_kv_split < KV_SPLIT", "offs_kv_split <= KV_SPLIT"),),
            "bounds",
            "attention_combine_kernel reads outside",
        ),
        (PARTS, (("offs_kv_split < KV_SPLIT", "offs_kv_split < KV_SPLIT - 1"),), "unwritten", "along kv_split"),
        (PARTS, (("BLOCK_KV_SPLIT=64", "BLOCK_KV_SPLIT=1"),), "unwritten", "along kv_split with kv = 17"),
        (PARTS, (("range(pid_kv_split * PART_KV", "range(pid_kv_split * (PART_KV // 2)"),), "order", "twice"),
        (PARTS, (("range(pid_kv_split * PART_KV", "range((pid_kv_split + 1) * PART_KV"),), "unwritten", "of key"),
        (PARTS, (("    kv_part = 32", "    kv_part = 64"),), "unwritten", "not every element of key along kv"),
        (PARTS, (("PART_KV=32", "PART_KV=24"),), "order", "an element of key along kv twice"),
    ],
)
def test_faults(kernel: Ranged, changes: Sequence[tuple[str, str]], check: str, said: str) -> None:
    assert checked(kernel).passed
    found = checked(kernel, *changes)
    assert not found.passed
    assert found.check == check, found.reason
    assert said in (found.reason or "")
    assert found.line > 0


def causal() -> Ranged:
    """A mask of as many queries as keys, and a loop that ends where the mask does."""
    block, schedule = CASES["causal"]
    program = replace(program_of(block), least={"q": 1, "kv": 1})
    return Ranged(program, lower_kernels([(block, schedule)], program=program))


def test_keys_that_a_causal_mask_leaves_out_need_not_be_read() -> None:
    end = "tl.minimum(KV, (pid_q + 1) * BLOCK_Q)"
    found = checked(causal())
    assert found.passed, found.reason
    early = checked(causal(), (end, "tl.minimum(KV, pid_q * BLOCK_Q)"))
    assert early.check == "unwritten", early.reason
    unmasked = checked(causal(), ("offs_kv[None, :] <= offs_q[:, None]", "mask_kv[None, :]"))
    assert unmasked.check == "unwritten", unmasked.reason


def test_a_counterexample_names_the_size_and_the_place() -> None:
    found = checked(ROWS, ("mask_m = offs_m < M", "mask_m = offs_m <= M"))
    assert found.reason is not None
    assert "with m = " in found.reason
    assert "program_id" in found.reason
    assert "lane" in found.reason
    assert 1 <= int(str(found.where["m"])) <= 41


def test_the_end_of_a_mask_that_decides_between_numbers() -> None:
    text = KEYS.source.standalone()
    (line,) = [line for line in text.splitlines() if "mask_kv = offs_kv < KV" in line]
    own = line.replace("mask_kv = ", "chosen = ").replace("KV", "41")
    changes = ((line, f"{line}\n{own}"), ("tl.where(mask_kv", "tl.where(chosen"))
    found = checked(KEYS, *changes)
    assert found.check == "values", found.reason


def test_each_schedule_of_a_table_is_a_way() -> None:
    kernel = one("gemm_chain_tails", "m", rows=True)
    found = checked(kernel)
    assert found.passed, found.reason
    assert found.ways == len(kernel.source.launches) > 1


def test_what_is_not_read_is_not_proved() -> None:
    found = checked(ROWS, ("pid_m = tl.program_id(", "pid_m = tl.atomic_add("))
    assert (found.passed, found.check) == (False, "unread")


def test_what_takes_too_long_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Prover):
        def refuted(self, known: object, claim: Formula) -> Undecided:
            return Undecided("timeout")

    monkeypatch.setattr(ranges, "Prover", Slow)
    found = checked(ROWS)
    assert (found.passed, found.check) == (False, "unproved")
    assert "not proved (timeout)" in (found.reason or "")


def test_a_kernel_that_starts_early_waits_whatever_the_size_is() -> None:
    wait = f"    {WAIT}\n"
    early = Ranged(ROWS.program, overlapped(ROWS.source, after=True))
    assert checked(early).passed
    loop = "range(0, N, BLOCK_N)"
    text = early.source.jit
    assert text.index(WAIT) < text.index(loop)
    (header,) = [line for line in text.splitlines() if loop in line]
    for change in (
        ((wait, ""),),
        ((wait, f"    if M > 1:\n    {wait}"),),
        ((wait, f"    for _ in range(0, M, 16):\n    {wait}"),),
        ((wait, ""), (f"{header}\n", f"{header}\n    {wait}")),
    ):
        found = checked(early, *change)
        assert (found.passed, found.check) == (False, "order"), found.reason
        assert "is launched before the kernel before it has ended, and reads " in (found.reason or "")
        assert found.line > 0
    assert checked(ROWS, ("offs_m = ", f"{WAIT}\n    offs_m = ")).passed, "a kernel that is not launched early may wait"
