"""No text that is wrong at some size of a range is accepted: a part of the campaign over mutants of ranged kernels.

`python -m tests.trust.range_campaign` runs hundreds, and finds out what is true of each.
"""

from __future__ import annotations

import random

import pytest

from tests.trust.range_campaign import SEED, by_tests, outcome, proved, variables
from tests.trust.range_mutations import forms, mutants
from tests.trust.range_pool import LARGEST, Ranged, ranged
from tests.trust.range_traced import traced

TESTED = (1, 21, LARGEST)
KERNELS: list[tuple[str, tuple[str, ...], bool]] = [
    ("rms_norm_linear_tail", ("n",), False),
    ("attention_tail", ("kv",), False),
    ("gemm_chain_tails", ("m",), True),
    ("scaled_linear", ("m", "n"), False),
    ("looking back", ("q", "kv"), False),
    ("a window", ("q", "kv"), False),
    ("attention in parts", ("kv",), True),
    ("norm in parts", ("h",), True),
    ("attention held where few", ("kv",), False),
    ("looking back in parts", ("q", "kv"), False),
]
HIDDEN = ("size in a mask", "size in a loop", "size elsewhere", "size of a grid", "size passed on", "rows", "parts")
"""Kinds, most of which are right at the tested sizes."""


def made(name: str, axes: tuple[str, ...], rows: bool) -> Ranged:
    found = ranged(name, *axes, rows=rows)
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "axes", "rows"), KERNELS)
def test_the_text_that_is_written_is_proved(name: str, axes: tuple[str, ...], rows: bool) -> None:
    one = made(name, axes, rows)
    assert proved(one, one.source.standalone()) == ""


@pytest.mark.parametrize(("name", "axes", "rows"), KERNELS)
def test_mutants_that_the_tested_sizes_do_not_show(name: str, axes: tuple[str, ...], rows: bool) -> None:
    one = made(name, axes, rows)
    every = mutants(one.source.standalone(), TESTED, *variables(one))
    rng = random.Random(f"{SEED}/{name}")
    for kind in HIDDEN:
        for mutant in rng.sample(every.get(kind, []), min(1, len(every.get(kind, [])))):
            found = outcome(name, " and ".join(axes), one, mutant)
            assert found.wrong_at is None or found.tests or found.proof, f"{mutant.what}: wrong at {found.wrong_at}"


@pytest.mark.parametrize("diagonal", ["2 * KV - Q - 41", "KV - Q + KV // 42", "KV - 2 * Q + 41", "KV - Q - 1"])
def test_a_mask_that_is_not_the_programs_at_every_size_is_not_proved(diagonal: str) -> None:
    one = made("looking back", ("q", "kv"), False)
    text = one.source.standalone()
    assert "<= offs_q[:, None] + KV - Q" in text
    wrong = text.replace("offs_q[:, None] + KV - Q", f"offs_q[:, None] + {diagonal}")
    assert wrong != text
    assert proved(one, wrong) != ""


def test_a_loop_that_begins_after_the_window_is_not_proved() -> None:
    one = made("a window", ("q", "kv"), False)
    text = one.source.standalone()
    assert proved(one, text) == ""
    start = "pid_q * BLOCK_Q - 5 - Q + KV"
    assert start in text
    assert "not every element" in proved(one, text.replace(start, "pid_q * BLOCK_Q + 11 - Q + KV"))


def test_forms_are_the_size_at_the_tested_sizes_alone() -> None:
    for said, form in forms(TESTED):
        values = {size: eval(form("size").replace("{min}", "min"), {"size": size, "min": min}) for size in range(1, 42)}
        assert all(values[size] == size for size in TESTED), said
        assert said == "at most the largest" or any(value != size for size, value in values.items()), said


def test_a_mask_that_hides_a_part_of_what_is_joined_is_not_proved() -> None:
    """It is right at the tested sizes, of which 3 is a divisor: the element is written, and what it reads is zero."""
    one = Ranged(*traced("joined rows"))
    text = one.source.standalone()
    assert proved(one, text) == ""
    assert "(offs_n[None, :] < N - 1)" in text
    wrong = text.replace("(offs_n[None, :] < N - 1)", "(offs_n[None, :] < N // 3 * 3 - 1)")
    assert not by_tests(one, wrong)[0]
    assert "that is written for" in proved(one, wrong)
