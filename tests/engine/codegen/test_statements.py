"""Recorded calls are written the way a person writes them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from mugraph.codegen.statements import WIDTH, statements
from mugraph.ir.region import Region
from mugraph.trace.regions.value_names import value_names

from tests.engine.ops.harness import randn, record


def written(fn: Callable[..., torch.Tensor], bound: tuple[str, ...] = (), **inputs: torch.Tensor) -> list[str]:
    region = record(fn, inputs)
    names = value_names(region)
    outs = {live.value for live in region.live_outs}
    lines = statements(region.calls, names, outs | {value for value, name in names.items() if name in bound})
    assert torch.equal(run(lines, region, names, inputs), fn(**inputs))
    return lines


def run(lines: list[str], region: Region, names: dict[int, str], inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    scope: dict[str, object] = {"torch": torch, "F": F, **inputs}
    exec("\n".join(lines), scope)
    result = scope[names[region.live_outs[0].value]]
    assert isinstance(result, torch.Tensor)
    return result


Q, K = randn(2, 4, 8), randn(2, 6, 8)


def test_one_line_for_what_is_used_once() -> None:
    assert written(lambda q, k: torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1), q=Q, k=K) == [
        "out = torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1)"
    ]


def test_what_is_used_twice_has_a_line() -> None:
    assert written(_twice, q=Q) == [
        "product = q * 2",
        "out = product.exp() + (-product).exp()",
    ]


def _twice(q: torch.Tensor) -> torch.Tensor:
    doubled = q * 2
    return doubled.exp() + (-doubled).exp()


def test_what_the_user_named_has_a_line() -> None:
    assert written(lambda q, k: torch.softmax(q @ k.mT, dim=-1).sum(-1), ("qk",), q=Q, k=K) == [
        "qk = q @ k.mT",
        "out = torch.softmax(qk, dim=-1).sum(-1)",
    ]


def test_long_lines_are_cut_where_they_are_longest() -> None:
    def long(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            q = q * k.mean() + 1.5
        return q

    lines = written(long, q=Q, k=K)
    assert len(lines) > 1
    assert max(map(len, lines)) <= WIDTH


def test_lines_stay_in_order_where_something_is_written_in_place() -> None:
    lines = written(lambda q: (q + 1).mul_(2).add_(q), q=Q)
    assert len(lines) == 3


def test_a_tuple_of_one_is_unpacked() -> None:
    assert written(lambda q: q.chunk(1)[0] * 2, q=Q)[0].startswith("(q_part,) = q.chunk(1")
