"""Two tensors whose lengths both vary, joined: each is read inside of the kernel up to a seam that follows the sizes.
Found, proved for all of them, right at sizes that no test has drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.ir.spec import check_program
from mugraph.ir.text.parser import parse_program
from mugraph.ir.text.printer import format_program
from mugraph.ir.transforms.renaming import canonical, key_of
from mugraph.sizes import table
from mugraph.sizes.possible import can_be

from tests.engine.sizes.solving import (
    Found,
    assert_joined_inside,
    is_another_seam_refused,
    run_beside,
    solved,
)

CODE = """\
import torch
import torch.nn.functional as F


# mugraph: b=1..3, s=1..96, t=1..24, q=f32[b, 4, t, 16], cache=f32[b, 2, s, 16], k=f32[b, 2, t, 16]
# mugraph: stored=f32[b, 2, s, 16], v=f32[b, 2, t, 16]
def chunk(q, cache, k, stored, v):
    keys, values = torch.cat((cache, k), dim=2), torch.cat((stored, v), dim=2)
    return F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)


# mugraph: s=1..40, t=1..30, q=f32[1, 2, t, 16], x=f32[1, 2, s, 16], y=f32[1, 2, t, 16]
# mugraph: u=f32[1, 2, s, 16], v=f32[1, 2, t, 16]
def causal(q, x, y, u, v):
    keys, values = torch.cat((x, y), dim=2), torch.cat((u, v), dim=2)
    n, m = q.shape[2], keys.shape[2]
    mask = torch.ones(n, m, dtype=torch.bool).tril(m - n)
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)


# mugraph: s=1..100, t=1..60, x=f32[2, s, 64], y=f32[2, t, 64]
def normed(x, y):
    return F.rms_norm(torch.cat((x, y), dim=-2), (64,))


# mugraph: s=3..90, t=2..50, q=f32[2, s, 16], x=f32[2, s, 16], y=f32[2, t, 16]
def asked_by_first(q, x, y):
    return torch.softmax(q @ torch.cat((x, y), dim=1).mT, dim=-1)


# mugraph: old=1..70, new=1..40, x=f32[old, 16], y=f32[2 * new, 16]
def means(x, y):
    return torch.tanh(torch.cat((y, x), dim=0)).mean(0)
"""
SHAPES = {
    "chunk": "q=(b, 4, t, 16), cache=(b, 2, s, 16), k=(b, 2, t, 16), stored=(b, 2, s, 16), v=(b, 2, t, 16)",
    "causal": "q=(1, 2, t, 16), x=(1, 2, s, 16), y=(1, 2, t, 16), u=(1, 2, s, 16), v=(1, 2, t, 16)",
    "normed": "x=(2, s, 64), y=(2, t, 64)",
    "asked_by_first": "q=(2, s, 16), x=(2, s, 16), y=(2, t, 16)",
    "means": "x=(s, 16), y=(2 * t, 16)",
}
SIZES = [(1, 3, 2), (2, 4, 17), (3, 29, 5), (1, 61, 24)]
"""Of b, s and t."""


@pytest.fixture(scope="module")
def found(path: Path) -> Found:
    return solved(path, SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_both_are_read_inside_of_the_kernel(found: Found, name: str) -> None:
    assert_joined_inside(found[name])


@pytest.mark.parametrize("name", SHAPES)
def test_they_are_right_at_other_sizes(found: Found, path: Path, name: str) -> None:
    run_beside(path, name, found, SHAPES[name], str(SIZES), "b, s, t")


@pytest.mark.parametrize("name", SHAPES)
def test_the_seam_is_kept_under_other_names(found: Found, name: str) -> None:
    program = found[name][0]
    assert parse_program(format_program(program)) == program
    other, renaming = canonical(program)
    assert renaming.inverse.program(other, program.name) == program
    assert key_of(other)[0] == key_of(program)[0]


def test_sizes_at_which_nothing_is_left_are_not_tested(found: Found) -> None:
    """A joined axis and what is joined to it are ranges by themselves: the first is at least as long."""
    for program, _, _ in found.values():
        points = table.tested_sizes(program)
        assert len(points) >= 4
        for sizes in points:
            small, _ = table.at_sizes(program, [], sizes)
            assert min(min(tensor.shape(small.sizes)) for tensor in small.tensors) >= 1
        (by,) = {axis for tensor in program.tensors for axis in tensor.measures}
        joined = next(axis for axis in program.least if axis not in (by, "b"))
        assert not can_be(program, {**program.sizes, joined: program.sizes[by]})


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("normed", "(pid_m < M - M_JOINED)", "(pid_m <= M - M_JOINED)"),
        ("normed", "(pid_m < M - M_JOINED)", "(pid_m < M)"),
        ("normed", "(pid_m < M - M_JOINED)", "(pid_m < M_JOINED)"),
        ("normed", "(pid_m >= (M - M_JOINED))", "(pid_m >= (M - M_JOINED) - 1)"),
        ("normed", "(pid_m >= (M - M_JOINED))", "(pid_m > (M - M_JOINED))"),
        ("normed", "(pid_m - (M - M_JOINED))", "(pid_m - (M - M_JOINED) + 1)"),
        ("normed", "(pid_m - (M - M_JOINED))", "(pid_m - M_JOINED)"),
        ("normed", "pid_b * (M - M_JOINED) * N", "pid_b * M * N"),
        ("normed", "pid_b * M_JOINED * N", "pid_b * (M - M_JOINED) * N"),
        ("normed", "m = x.shape[1] + m_joined", "m = x.shape[1] + m_joined + 1"),
        ("normed", "m = x.shape[1] + m_joined", "m = x.shape[1]"),
        ("normed", "m_joined = y.shape[1]", "m_joined = x.shape[1]"),
        ("chunk", ".shape[2] + s", ".shape[2]"),
        ("chunk", " - (T - S))", " - (T - S) + 1)"),
        ("chunk", " < T - S)", " < T)"),
        ("chunk", " < T - S)", " < T - S - 1)"),
        ("chunk", " < T - S)", " <= T - S)"),
        ("chunk", " >= (T - S))", " > (T - S))"),
        ("chunk", "* (T - S) *", "* T *"),
    ],
)
def test_another_seam_is_refused(found: Found, name: str, old: str, new: str) -> None:
    """By z3 where something outside of a tensor is read, by what the text computes where another place is."""
    assert is_another_seam_refused(found[name], old, new)


def test_a_length_that_no_axis_has_is_none(found: Found) -> None:
    program = found["normed"][0]
    first, *others = program.tensors
    (window,) = first.windows
    for by in ("nothing", first.dims[window.dim][0]):
        wrong = replace(first, windows=(replace(window, by=by),))
        assert check_program(replace(program, tensors=(wrong, *others)))
