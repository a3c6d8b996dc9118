"""Small numbers packed into 32-bit integers: what `(w >> shifts) & m` is in bytes, against PyTorch on any bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from mugraph.ops.views import BYTES
from mugraph.search.direct import as_block
from mugraph.units.lower import NotLowerable
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, lower_region, randn, record

Taken = Callable[[torch.Tensor], torch.Tensor]


def packed(*shape: int, seed: int = 0) -> torch.Tensor:
    """Any bits, the highest among them: half of the numbers are negative."""
    ends = torch.iinfo(torch.int32)
    return torch.randint(ends.min, ends.max, shape, dtype=torch.int32, generator=torch.Generator().manual_seed(seed))


def by(bits: int, first: int = 0, last: int = 32) -> torch.Tensor:
    return torch.arange(first, last, bits)


ALONG_COLUMNS: dict[str, Taken] = {
    "of four bits": lambda w: (w[:, :, None] >> by(4)) & 0xF,
    "of two": lambda w: (w[:, :, None] >> by(2)) & 3,
    "of eight": lambda w: (w[:, :, None] >> by(8)) & 255,
    "of one": lambda w: (w[:, :, None] >> by(1)) & 1,
    "a function": lambda w: torch.bitwise_and(torch.bitwise_right_shift(w.unsqueeze(2), by(4)[None, None]), 15),
    "through int8": lambda w: (w[:, :, None] >> by(4)).to(torch.int8) & 15,
    "through int16, expanded": lambda w: (w.unsqueeze(2).expand(-1, -1, 8) >> by(4)).to(torch.int16) & 15,
    "a smaller mask": lambda w: (w[:, :, None] >> by(4)) & 5,
    "of a 32-bit arange": lambda w: (w[:, :, None] >> torch.arange(0, 32, 4, dtype=torch.int32)) & 0xF,
    "the upper half": lambda w: (w[:, :, None] >> by(4, 16)) & 0xF,
    "every second": lambda w: (w[:, :, None] >> by(8, 4)) & 0xF,
    "a shape between": lambda w: (w[:, :, None] >> by(4)).reshape(w.shape[0], -1) & 15,
}
"""Fields in the order of their places, as a third dimension or along the second."""


@pytest.mark.parametrize("name", ALONG_COLUMNS)
def test_the_fields_are_pytorchs(name: str) -> None:
    taken = ALONG_COLUMNS[name]

    def program(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return x @ taken(w).reshape(w.shape[0], -1).to(x.dtype).T

    w = packed(6, 4)
    lowered = check(program, {"w": w, "x": randn(3, taken(w).numel() // 6)})
    assert [view.part for view in lowered.views.values()].count(BYTES)
    assert {tensor.dtype for tensor in lowered.program.tensors} == {"f32", "u8"}
    assert verify_topology(lowered.program, as_block(lowered.program)).passed


@pytest.mark.parametrize("place", range(0, 32, 4))
def test_one_field_of_each(place: int) -> None:
    check(lambda w, x: ((w >> place) & 0xF).to(x.dtype) * x, {"w": packed(6, 4), "x": randn(6, 4)})


def test_along_rows() -> None:
    """As GPTQ packs them: eight rows of a weight are one of the integers."""

    def program(w: torch.Tensor, x: torch.Tensor, zeros: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        shifts = torch.arange(0, 32, 4)
        codes = torch.bitwise_right_shift(w.unsqueeze(1).expand(-1, 8, -1), shifts[None, :, None]).to(torch.int16)
        codes = torch.bitwise_and(codes, 15).reshape(-1, 16, w.shape[1])
        weight = scales[:, None] * (codes - zeros[:, None])
        return x @ weight.reshape(-1, w.shape[1])

    inputs = {"w": packed(4, 6), "x": randn(3, 32), "zeros": randn(2, 6), "scales": randn(2, 6)}
    check(program, inputs)


def test_one_part_of_the_fields() -> None:
    def program(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return ((w[:, None] >> torch.arange(0, 32, 4)) & 0xF)[:, 2:4].to(x.dtype) * x

    check(program, {"w": packed(6), "x": randn(6, 2)})


REFUSED: dict[str, Taken] = {
    "a field across bytes": lambda w: ((w[:, :, None] >> by(3, 0, 24)) & 7).float(),
    "a mask of more than a byte": lambda w: (w & 0xFFF).float(),
    "a mask of bits that are cut off": lambda w: ((w >> 4).to(torch.int8) & 0xF00).float(),
    "no mask": lambda w: (w >> 4).float(),
    "a sum before the mask": lambda w: (((w >> 4) + 1) & 0xF).float(),
    "compared without a mask": lambda w: (w >> 4) > 3,
    "bits of the sign that follow": lambda w: ((w[:, :, None] >> by(4, 28, 36)) & 0xF).float(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    taken = REFUSED[name]
    with pytest.raises(NotLowerable):
        lower_region(record(lambda w, x: taken(w) * x, {"w": packed(6, 4), "x": randn(1)}))


def test_integers_that_do_not_lie_one_after_the_other_are_refused() -> None:
    with pytest.raises(NotLowerable):
        lower_region(record(lambda w, x: (w & 15).to(x.dtype) * x, {"w": packed(4, 6).T, "x": randn(6, 4)}))
