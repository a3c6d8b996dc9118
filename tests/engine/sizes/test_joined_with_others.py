"""Tensors whose lengths vary, joined to others of fixed lengths, or read as keys and as values: in the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.ir.region import SearchUnit
from mugraph.ir.text.parser import parse_program
from mugraph.ir.text.printer import format_program
from mugraph.ir.transforms.renaming import canonical
from mugraph.sizes import table
from mugraph.trace.tracer import trace_file
from mugraph.units.ranged import ranged_units

from tests.engine.sizes.solving import (
    Found,
    assert_joined_inside,
    is_another_seam_refused,
    run_beside,
    solved,
)

CODE = """\
import torch


# mugraph: s=1..96, t=1..24, q=f32[2, t, 16], cache=f32[2, s, 16], new=f32[2, t, 16]
def latent(q, cache, new):
    c = torch.cat((cache, new), dim=1)
    return torch.softmax(q @ c.mT * 0.25, dim=-1) @ c


# mugraph: s=1..60, q=f32[2, 8, 16], cache=f32[2, s, 16], new=f32[2, 1, 16]
def one_more(q, cache, new):
    c = torch.cat((cache, new), dim=1)
    return torch.softmax(q @ c.mT * 0.25, dim=-1) @ c


# mugraph: s=1..60, t=1..20, q=f32[2, t, 16], sinks=f32[2, 4, 16], x=f32[2, s, 16], y=f32[2, t, 16]
def sinks_first(q, sinks, x, y):
    rows = torch.cat((sinks, x, y), dim=1)
    return torch.softmax(q @ rows.mT, dim=-1) @ rows


# mugraph: s=1..40, t=1..30, x=f32[2, s, 16], y=f32[2, t, 16], z=f32[2, 3, 16]
def fixed_last(x, y, z):
    return torch.tanh(torch.cat((x, y, z), dim=1)).sum(1)


# mugraph: s=1..40, t=1..30, x=f32[2, s, 16], y=f32[2, t, 16], a=f32[2, 1, 16], b=f32[2, 5, 16]
def between_two(a, x, y, b):
    return torch.exp(torch.cat((a, x, y, b), dim=1)).sum(1)


# mugraph: s=1..40, t=1..30, x=f32[2, s, 16], y=f32[2, t, 16], z=f32[2, 3, 16]
def in_the_middle(x, y, z):
    return torch.tanh(torch.cat((x, z, y), dim=1)).sum(1)
"""
SHAPES = {
    "latent": "q=(2, t, 16), cache=(2, s, 16), new=(2, t, 16)",
    "sinks_first": "q=(2, t, 16), sinks=(2, 4, 16), x=(2, s, 16), y=(2, t, 16)",
    "fixed_last": "x=(2, s, 16), y=(2, t, 16), z=(2, 3, 16)",
    "between_two": "x=(2, s, 16), y=(2, t, 16), a=(2, 1, 16), b=(2, 5, 16)",
}
SIZES = [(1, 1), (1, 19), (3, 2), (29, 5), (38, 20)]
"""Of s and t."""


@pytest.fixture(scope="module")
def found(path: Path) -> Found:
    return solved(path, [*SHAPES, "one_more"])


@pytest.mark.parametrize("name", SHAPES)
def test_all_are_read_inside_of_the_kernel(found: Found, name: str) -> None:
    assert_joined_inside(found[name])


@pytest.mark.parametrize("name", SHAPES)
def test_they_are_right_at_other_sizes(found: Found, path: Path, name: str) -> None:
    run_beside(path, name, found, SHAPES[name], str(SIZES), "s, t")


def test_a_single_row_is_joined_to_keys_that_are_the_values(found: Found, path: Path) -> None:
    program, source, _ = found["one_more"]
    assert program.least
    assert all(kernel.library is None for kernel in source.every)
    assert {tensor.source for tensor in source.inputs} == {"q", "cache", "new"}
    run_beside(path, "one_more", found, "q=(2, 8, 16), cache=(2, s, 16), new=(2, 1, 16)", "[1, 2, 17, 59]", "s")


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_fixed_is_kept_as_text(found: Found, name: str) -> None:
    program = found[name][0]
    assert parse_program(format_program(program)) == program
    other, renaming = canonical(program)
    assert renaming.inverse.program(other, program.name) == program


@pytest.mark.parametrize("name", SHAPES)
def test_each_tensor_has_an_element_where_it_is_tested(found: Found, name: str) -> None:
    program = found[name][0]
    points = table.tested_sizes(program)
    assert len(points) >= 4
    for sizes in points:
        small, _ = table.at_sizes(program, [], sizes)
        assert min(min(tensor.shape(small.sizes)) for tensor in small.tensors) >= 1


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("latent", "(offs_r[:, None] < R - M)", "(offs_r[:, None] <= R - M)"),
        ("latent", "(offs_r[:, None] < R - M)", "(offs_r[:, None] < R - 24)"),
        ("latent", "(offs_r[:, None] >= (R - M))", "(offs_r[:, None] > (R - M))"),
        ("latent", "(offs_r[:, None] - (R - M))", "(offs_r[:, None] - (R - M) + 1)"),
        ("latent", "cache_2_ptr + pid_b * (R - M) * N", "cache_2_ptr + pid_b * R * N"),
        ("latent", "r = cache.shape[1] + m", "r = cache.shape[1] + 24"),
        ("sinks_first", "(offs_r[None, :] >= 4)", "(offs_r[None, :] >= 3)"),
        ("sinks_first", "(offs_r[None, :] >= 4)", "(offs_r[None, :] >= 5)"),
        ("sinks_first", "(offs_r[None, :] < 4)", "(offs_r[None, :] < 5)"),
        ("sinks_first", "(offs_r[None, :] < R - M)", "(offs_r[None, :] < R - M - 1)"),
        ("sinks_first", "(offs_r[None, :] < R - M)", "(offs_r[None, :] < R - 20)"),
        ("sinks_first", "x_ptr - 64 + pid_b * (R - M - 4) * K", "x_ptr - 64 + pid_b * (R - M) * K"),
        ("sinks_first", "x_ptr - 64 + pid_b * (R - M - 4) * K", "x_ptr + pid_b * (R - M - 4) * K"),
        ("sinks_first", "r = x.shape[1] + m + 4", "r = x.shape[1] + m + 3"),
        ("fixed_last", "(K - K_JOINED - 3) * N", "(K - K_JOINED) * N"),
        ("fixed_last", "(offs_k < K - 3)", "(offs_k < K - 2)"),
        ("fixed_last", "(offs_k - (K - 3))", "(offs_k - K_JOINED)"),
        ("fixed_last", "(offs_k >= (K - 3))", "(offs_k >= (K - 4))"),
        ("fixed_last", "k = y.shape[1] + k_joined + 3", "k = y.shape[1] + k_joined"),
    ],
)
def test_another_seam_is_refused(found: Found, name: str, old: str, new: str) -> None:
    """By z3 where something outside of a tensor is read, by what the text computes where another place is."""
    assert is_another_seam_refused(found[name], old, new)


def test_a_fixed_length_between_two_others_is_joined_before(path: Path) -> None:
    """Where it begins depends on the sizes of both others."""
    (region,) = (one for one in trace_file(path).regions if one.function == "in_the_middle")
    units, reasons = ranged_units(region)
    assert [unit.program.least for unit in units if isinstance(unit, SearchUnit)]
    assert reasons == ("s and t cannot have ranges: where z is read from depends on more than one size",)
