"""Parts of a norm's or a softmax's result: its statistics are those of the whole row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind

from tests.engine.ops.harness import check, randn

Made = Callable[[torch.Tensor], torch.Tensor]
Part = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
X = randn(3, 4, 8)
COS, SIN = randn(1, 8, seed=1), randn(1, 8, seed=2)
IMAGES = randn(2, 8, 3, 4)


def halves(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((-x[..., 4:], x[..., :4]), dim=-1)


def neighbours(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


OF_ROWS: dict[str, Made] = {
    "rms norm": lambda x: F.rms_norm(x, (8,), eps=1e-3),
    "layer norm": lambda x: F.layer_norm(x, (8,)),
    "softmax": lambda x: torch.softmax(x, -1),
    "log softmax": lambda x: F.log_softmax(x, dim=-1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "by hand": lambda x: x / (x.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt(),
}
PARTS: dict[str, Part] = {
    "halves": lambda y, c, s: y[..., :4] * y[..., 4:].exp(),
    "one half": lambda y, c, s: y[..., 4:] * 2.0,
    "all but the last": lambda y, c, s: y[..., :-1] * 2.0,
    "every second": lambda y, c, s: y[..., ::2] * y[..., 1::2],
    "one column": lambda y, c, s: y[..., 2] * 2.0,
    "a column beside a part": lambda y, c, s: y[..., 1:4] + y[..., :1],
    "rotated in halves": lambda y, c, s: y * c + halves(y) * s,
    "rotated in pairs": lambda y, c, s: y * c + neighbours(y) * s,
    "joined": lambda y, c, s: torch.cat((y, y * 2.0), dim=-1),
    "one half of a product": lambda y, c, s: y[..., 4:] @ c[:, :4].mT,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("made", OF_ROWS)
def test_part(made: str, part: str) -> None:
    check(lambda x, c, s: PARTS[part](OF_ROWS[made](x), c, s), {"x": X, "c": COS, "s": SIN})


OF_IMAGES: dict[str, Made] = {
    "group norm": lambda x: F.group_norm(x, 2),
    "instance norm": lambda x: F.instance_norm(x),
    "softmax over channels": lambda x: torch.softmax(x, 1),
}


@pytest.mark.parametrize("made", OF_IMAGES)
def test_part_of_an_image(made: str) -> None:
    norm = OF_IMAGES[made]
    check(lambda x: norm(x)[:, :4] * norm(x)[:, 4:], {"x": IMAGES})
    check(lambda x: norm(x)[:, 3] * 2.0, {"x": IMAGES})
    check(lambda x: norm(x)[:, :, 1:] * 2.0, {"x": IMAGES})


def test_a_row_of_two_dimensions() -> None:
    check(lambda x: F.layer_norm(x, (4, 8))[:, 2:, :4] * 2.0, {"x": X})


def test_pieces_are_read_once() -> None:
    """A sum over a row is one over its halves, where these are read anyway."""
    program = check(lambda x, c, s: PARTS["halves"](OF_ROWS["rms norm"](x), c, s), {"x": X, "c": COS, "s": SIN}).program
    assert [op.kind for op in program.ops].count(Kind.LOAD) == 2


def test_rotation_after_a_norm_has_one_root() -> None:
    program = check(
        lambda x, c, s: PARTS["rotated in halves"](OF_ROWS["rms norm"](x), c, s), {"x": X, "c": COS, "s": SIN}
    ).program
    assert [op.kind for op in program.ops].count(Kind.SQRT) == 1
    assert [op.kind for op in program.ops].count(Kind.MASK) == 2
