"""Attention over a joined cache, its keys spread over the GPU: few powers of two divide their largest number."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.codegen.dynamic import size_lines
from mugraph.ir.names import Scope
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window

from tests.engine.sizes.solving import Found, assert_joined_inside, is_refused, run_beside, solved

CODE = """\
import torch
import torch.nn.functional as F


# mugraph: s=1..996, t=1..4, q=f32[1, 2, t, 16], cache=f32[1, 2, s, 16], k=f32[1, 2, t, 16]
# mugraph: stored=f32[1, 2, s, 16], v=f32[1, 2, t, 16]
def decoding(q, cache, k, stored, v):
    keys, values = torch.cat((cache, k), dim=2), torch.cat((stored, v), dim=2)
    return F.scaled_dot_product_attention(q, keys, values)
"""
SHAPES = "q=(1, 2, t, 16), cache=(1, 2, s, 16), k=(1, 2, t, 16), stored=(1, 2, s, 16), v=(1, 2, t, 16)"
SIZES = [(1, 1), (63, 1), (500, 3), (777, 4), (996, 2)]


@pytest.fixture(scope="module")
def found(path: Path) -> Found:
    return solved(path, ["decoding"], budget_s=60.0)


def test_there_are_more_parts_than_powers_of_two(found: Found) -> None:
    assert_joined_inside(found["decoding"])
    _, source, _ = found["decoding"]
    (first,) = (kernel for kernel in source.kernels if kernel.divided)
    part = first.launches[-1].part
    assert -(-1000 // part) > 8


def test_they_are_right_at_other_sizes(found: Found, path: Path) -> None:
    run_beside(path, "decoding", found, SHAPES, str(SIZES), "s, t")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("< T - S)", "< T - 4)"),
        ("< T - S)", "<= T - S)"),
        (">= (T - S))", "> (T - S))"),
        ("tl.minimum((pid_t_split + 1) * PART_T, T)", "(pid_t_split + 1) * PART_T - BLOCK_T"),
        ("range(pid_t_split * PART_T,", "range(pid_t_split * BLOCK_T,"),
        ("t_split = triton.cdiv(t, ", "t_split = triton.cdiv(t - 1, "),
        ("t = cache.shape[2] + s", "t = cache.shape[2] + 4"),
    ],
)
def test_another_seam_or_part_is_refused(found: Found, old: str, new: str) -> None:
    assert is_refused(found["decoding"], old, new, {"s": 3})


def test_what_is_joined_is_known_by_what_it_is_joined_to() -> None:
    """Of a kernel that reads how long both are together off what another kernel made."""
    sizes = {"h": 8, "t": 104, "new": 8}
    parts = Tensor("parts", (("h",), ("t",)), (104, 1), "f32")
    cache = Tensor("cache", (("h",), ("t",)), (95, 1), "f32", "cache", (Window(1, 0, rest=-9, by="new", behind=True),))
    lines, _ = size_lines([parts, cache], {"parts": "parts", "cache": "cache"}, sizes, {"t": 3, "new": 1}, Scope(set()))
    assert lines == ["t = parts.numel() // 8", "new = t - cache.shape[1] - 1"]
