"""Kernels that may write over what they read, and kernels that differ from them in one place."""

from __future__ import annotations

import pytest
from mugraph.triton_text.same_places import BARRIER, stores_last, why_not_over

KERNEL = """\
@triton.jit
def step_kernel(
    p_ptr, m_ptr, g_ptr, new_p_ptr, new_m_ptr,
    RATE: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr,
):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(m_ptr + offs, mask=offs < N, other=0.0)
    g = tl.load(g_ptr + offs, mask=offs < N, other=0.0)
    new_m = 0.9 * m + g
    tl.store(new_m_ptr + offs, new_m, mask=offs < N)
    p = tl.load(p_ptr + offs, mask=offs < N, other=0.0, eviction_policy="evict_first")
    tl.store(new_p_ptr + offs, decayed(p) - RATE * new_m, mask=offs < N)


@triton.jit
def decayed(p):
    return p * 0.99"""
PAIRS = {"new_p_ptr": "p_ptr", "new_m_ptr": "m_ptr"}
FIRST_STORE = "    tl.store(new_m_ptr + offs, new_m, mask=offs < N)\n"
LAST_STORE = "    tl.store(new_p_ptr + offs, decayed(p) - RATE * new_m, mask=offs < N)\n"
P_LOAD = '    p = tl.load(p_ptr + offs, mask=offs < N, other=0.0, eviction_policy="evict_first")\n'
MUTANTS = {
    "no barrier": (f"    {BARRIER}  # what is written over has been read\n", ""),
    "a second barrier": (LAST_STORE, f"{LAST_STORE}    {BARRIER}\n"),
    "a store before it": (P_LOAD, FIRST_STORE.replace("new_m_ptr", "g_ptr") + P_LOAD),
    "a load behind it": (LAST_STORE, f"{LAST_STORE}    again = tl.load(p_ptr + offs, mask=offs < N)\n"),
    "a load in what is stored": ("decayed(p) -", "tl.load(g_ptr + offs) -"),
    "a neighbour is read": ("tl.load(p_ptr + offs,", "tl.load(p_ptr + offs + 1,"),
    "another block's is read": ("tl.load(m_ptr + offs,", "tl.load(m_ptr + (pid + 1) * BLOCK + tl.arange(0, BLOCK),"),
    "turned about": ("tl.store(new_p_ptr + offs,", "tl.store(new_p_ptr + (N - 1 - offs),"),
    "read without a mask": ("tl.load(m_ptr + offs, mask=offs < N, other=0.0)", "tl.load(m_ptr + offs)"),
    "another mask": ("tl.load(p_ptr + offs, mask=offs < N", "tl.load(p_ptr + offs, mask=offs <= N"),
    "written in another mask": ("- RATE * new_m, mask=offs < N)", "- RATE * new_m, mask=offs < N - 1)"),
    "read twice, once elsewhere": (P_LOAD, f"{P_LOAD}    q = tl.load(p_ptr + pid, mask=pid < N)\n"),
    "written twice": (LAST_STORE, f"{LAST_STORE}    tl.store(new_p_ptr + offs, p, mask=offs < N)\n"),
    "the pointer has another name": (P_LOAD, f"    at = p_ptr\n{P_LOAD}"),
    "read by the pointer that writes": (P_LOAD, f"{P_LOAD}    q = tl.load(new_p_ptr + offs)\n"),
    "stored by the pointer that reads": (LAST_STORE, f"{LAST_STORE}    tl.store(p_ptr + offs, p, mask=offs < N)\n"),
    "a name has two values": (P_LOAD, f"    offs = offs + 1\n{P_LOAD}"),
    "a name grows": (P_LOAD, f"    offs += 1\n{P_LOAD}"),
    "a parameter has two values": (P_LOAD, f"    p_ptr = g_ptr\n{P_LOAD}"),
    "a loop": (P_LOAD, f"    for i in range(2):\n    {P_LOAD}"),
    "a condition": (LAST_STORE, f"    if pid == 0:\n    {LAST_STORE}"),
    "an addition to memory": (P_LOAD, f"    before = tl.atomic_add(g_ptr + offs, 1.0)\n{P_LOAD}"),
    "a function that reads": ("    return p * 0.99", "    return tl.load(p) * 0.99"),
    "volatile": ('eviction_policy="evict_first"', "volatile=True"),
    "two kernels": ("def decayed(p):", "def decayed(p):\n    pass\n\n\n@triton.jit\ndef other(p_ptr):"),
}  # fmt: skip


def test_what_it_is_given_may_be_written_over() -> None:
    assert why_not_over(stores_last(KERNEL), PAIRS) is None


def test_the_stores_are_the_same_and_stand_at_the_end() -> None:
    before, after = KERNEL.splitlines(), stores_last(KERNEL).splitlines()
    assert sorted([*before, f"    {BARRIER}  # what is written over has been read"]) == sorted(after)
    kernel = after[: after.index("")]
    assert kernel[-2:] == [FIRST_STORE.rstrip(), LAST_STORE.rstrip()]
    assert kernel[-3].startswith(f"    {BARRIER}")


def test_not_before_it_stands_so() -> None:
    assert why_not_over(KERNEL, PAIRS) is not None


@pytest.mark.parametrize("name", MUTANTS)
def test_one_change_is_found(name: str) -> None:
    right = stores_last(KERNEL)
    old, new = MUTANTS[name]
    assert right.count(old) == 1
    assert why_not_over(right.replace(old, new), PAIRS) is not None


def test_what_only_shares_a_name_is_none_of_its_memory() -> None:
    """The same, of a tensor that is not written over, is no reason against it."""
    right = stores_last(KERNEL).replace("tl.load(g_ptr + offs,", "tl.load(g_ptr + offs + 1,")
    assert why_not_over(right, PAIRS) is None
    assert why_not_over(right, {"new_p_ptr": "g_ptr"}) is not None
    assert why_not_over(right, {"new_p_ptr": "m_ptr"}) is None


@pytest.mark.parametrize("line", ["    for i in range(4):", "    while pid < 3:", "    offs += 1"])
def test_what_is_no_straight_line_keeps_its_order(line: str) -> None:
    inside = f"{line}\n        pid2 = pid\n" if line.endswith(":") else f"{line}\n"
    with pytest.raises(ValueError, match="line"):
        stores_last(KERNEL.replace(P_LOAD, inside + P_LOAD))
