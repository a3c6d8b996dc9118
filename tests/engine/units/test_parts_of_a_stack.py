"""What is computed for each operand of a stack is in one unit, with what comes after it where that pays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from mugraph.ir.region import SearchUnit
from mugraph.ops.alike_parts import parts_of_join
from mugraph.units.region_graph import RegionGraph

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import cut, meta, run


def few_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    heads: list[torch.Tensor] = []
    for i in range(q.shape[2]):
        scores = torch.softmax(q[:, :, i] @ k[:, :, i].mT * 0.2, -1)
        heads.append(scores @ v[:, :, i])
    return torch.cat(heads, -1) @ w


def all_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    q, k, v = (one.transpose(1, 2) for one in (q, k, v))
    return (torch.softmax(q @ k.mT * 0.2, -1) @ v).transpose(1, 2).reshape(2, q.shape[2], -1) @ w


@pytest.mark.parametrize("rows", [64, 1024])
@pytest.mark.parametrize("count", [3, 10, 16])
def test_heads_before_a_projection(count: int, rows: int) -> None:
    """They are in the units in which they are where the heads are an axis."""

    def products(fn: Callable[..., torch.Tensor]) -> list[int]:
        tensors = {name: meta(2, rows, count, 64) for name in "qkv"} | {"w": meta(64 * count, 512)}
        units = [part for part in cut(fn, **tensors) if isinstance(part, SearchUnit)]
        return [sum(op.kind.contracts for op in unit.program.ops) for unit in units]

    assert products(few_heads) == products(all_heads)


def test_units_compute_what_the_calls_do() -> None:
    inputs = {name: randn(2, 6, 9, 4, seed=at) for at, name in enumerate("qkv")} | {"w": randn(36, 8)}
    region = record(few_heads, inputs)
    parts = cut(few_heads, **inputs)
    found = run(region, parts, inputs)
    (out,) = (live.value for live in region.live_outs)
    torch.testing.assert_close(found[out], few_heads(**{name: one.double() for name, one in inputs.items()}))


def test_a_part_that_is_read_elsewhere() -> None:
    """It is no part of a unit that nothing else sees the inside of; all is right nevertheless."""

    def fn(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        made = [torch.softmax(x[i] @ w[i], -1) for i in range(4)]
        return torch.stack(made), made[2]

    inputs = {"x": randn(4, 6, 8), "w": randn(4, 8, 8)}
    region = record(fn, inputs)
    found = run(region, cut(fn, **inputs), inputs)
    wanted = fn(**{name: one.double() for name, one in inputs.items()})
    for live, result in zip(region.live_outs, wanted, strict=True):
        torch.testing.assert_close(found[live.value], result)


def test_which_calls_are_parts() -> None:
    """Calls at one place of all parts, whatever numbers they take a view at; those of unlike parts are none."""

    def joined(fn: Callable[..., torch.Tensor], **inputs: torch.Tensor) -> list[int]:
        graph = RegionGraph(record(fn, inputs))
        return sorted(len(part) for part in parts_of_join(graph, len(graph.calls) - 1))

    x, w = randn(5, 6, 6), randn(5, 6, 6)
    assert joined(lambda x, w: torch.stack([x[i] @ w[i] for i in range(5)]), x=x, w=w) == [5, 5, 5]
    assert joined(lambda x, w: torch.stack([x[i] @ w[0] for i in range(5)]), x=x, w=w) == [5, 5, 5]
    assert joined(lambda x: torch.cat([part.relu() for part in x.chunk(5)]), x=x) == [1, 5]
    assert joined(lambda x: torch.stack([x[i].relu() if i else x[i].sigmoid() for i in range(5)]), x=x) == []
    assert joined(lambda x: torch.stack([torch.softmax(x[i], i % 2) for i in range(5)]), x=x) == []
    assert joined(lambda x, w: torch.stack([x.relu(), w.relu()]), x=x, w=w) == []
