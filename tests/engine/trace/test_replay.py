"""Recorded calls run again, and spelled as Python, give what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.region import DEVICE, Argument, Call, Ref, Symbol
from mugraph.trace.regions.emit_call import call_text
from mugraph.trace.regions.replay import NotReplayable, replay

from tests.engine.ops.harness import NOWHERE, randn, record

PROGRAMS: dict[str, tuple[Callable[..., Any], dict[str, torch.Tensor]]] = {
    "operators": (lambda x, y: (-x + y * 2 - 1) / (3 + y**2) @ x.T, {"x": randn(4, 6), "y": randn(4, 6)}),
    "reflected": (lambda x: 1 - 2 / x + (3 * x), {"x": randn(4)}),
    "methods": (lambda x: x.view(2, 12).transpose(0, 1).softmax(dim=-1).sum(0, keepdim=True), {"x": randn(4, 6)}),
    "indices": (lambda x: x[None, ..., 1:5:2][:, 0, -1] + x[:, 0][1:][0], {"x": randn(4, 6)}),
    "functions": (lambda x, w: F.silu(F.linear(x, w)).to(torch.float64), {"x": randn(4, 6), "w": randn(5, 6)}),
    "several results": (lambda x: torch.cat(x.chunk(3, dim=-1)[::-1], dim=-1), {"x": randn(4, 6)}),
    "masks": (lambda x: torch.where(x > 0, x, float("-inf")).exp(), {"x": randn(4, 6)}),
    "in place": (lambda x: (x + 1).mul_(2).add_(x), {"x": randn(4, 6)}),
    "einsum": (lambda x, y: torch.einsum("ij,ij->i", x, y), {"x": randn(4, 6), "y": randn(4, 6)}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_replay(name: str) -> None:
    fn, inputs = PROGRAMS[name]
    region = record(fn, inputs)
    values = replay(region.calls, {live.value: inputs[live.expression] for live in region.live_ins})
    assert torch.equal(values[region.live_outs[0].value], fn(**inputs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_runs(name: str) -> None:
    """Every call's text, evaluated one after the other, computes the program."""
    fn, inputs = PROGRAMS[name]
    region = record(fn, inputs)
    scope: dict[str, Any] = {"torch": torch, "F": F, **inputs}
    names = {live.value: live.expression for live in region.live_ins}
    for n, call in enumerate(region.calls):
        result = eval(call_text(call, names), scope)
        results = result if isinstance(result, (tuple, list)) else [result]
        for i, (value, tensor) in enumerate(zip(call.outputs, results, strict=True)):
            names[value] = f"t{n}_{i}"
            scope[names[value]] = tensor
    assert torch.equal(scope[names[region.live_outs[0].value]], fn(**inputs))


def call(target: str, *args: Argument, **kwargs: Argument) -> Call:
    return Call(target, args, kwargs, (9,), NOWHERE)


X, Y = Ref(0), Ref(1)
TEXTS = [
    (call("torch.cat", (X, Y), dim=-1), "torch.cat((a, self.b), dim=-1)"),
    (call("Tensor.view", X, 2, 8, 64), "a.view(2, 8, 64)"),
    (call("Tensor.mul", X, Y), "a * self.b"),
    (call("Tensor.__rsub__", X, 1), "1 - a"),
    (call("Tensor.__rdiv__", X, 2.0), "2.0 / a"),
    (call("Tensor.add", X, Y, alpha=2), "a.add(self.b, alpha=2)"),
    (call("Tensor.neg", X), "-a"),
    (call("Tensor.__neg__", X), "-a"),
    (call("Tensor.mul", X, -1.0), "a * (-1.0)"),
    (call("Tensor.T.__get__", X), "a.T"),
    (call("Tensor.__getitem__", X, (Symbol("..."), slice(None, 64, None))), "a[..., :64]"),
    (call("Tensor.__getitem__", X, (None,)), "a[None,]"),
    (call("Tensor.to", X, Symbol("torch.float32")), "a.to(torch.float32)"),
    (call("torch.nn.functional.pad", X, (0,), value=float("inf")),
     'F.pad(a, (0,), value=float("inf"))'),
    (call("torch.Tensor.matmul", X, Y), "a @ self.b"),
    (call("torch.nn.functional.linear", X, Y, None), "F.linear(a, self.b)"),
    (call("torch.nn.functional.softmax", X, dim=-1, _stacklevel=3), "F.softmax(a, dim=-1)"),
    (call("torch.nn.functional.silu", X, inplace=False), "F.silu(a)"),
    (call("torch.arange", 4, device=DEVICE), "torch.arange(4, device=a.device)"),
    (call("Tensor.to", X, DEVICE, Symbol("torch.float32")), "a.to(a.device, torch.float32)"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_text(given: Call, text: str) -> None:
    assert call_text(given, {0: "a", 1: "self.b"}) == text


COMPOUND = [
    (call("Tensor.mul", X, Y), "(a + b) * (c * d)"),
    (call("Tensor.mul", Y, X), "c * d * (a + b)"),
    (call("Tensor.add", X, Y), "a + b + c * d"),
    (call("Tensor.sub", Y, X), "c * d - (a + b)"),
    (call("Tensor.__pow__", X, 2), "(a + b) ** 2"),
    (call("Tensor.__neg__", X), "-(a + b)"),
    (call("Tensor.__lt__", X, Y), "a + b < c * d"),
    (call("Tensor.view", X, 4), "(a + b).view(4)"),
    (call("Tensor.mT.__get__", X), "(a + b).mT"),
    (call("torch.exp", X), "torch.exp(a + b)"),
]


@pytest.mark.parametrize(("given", "text"), COMPOUND, ids=[text for _, text in COMPOUND])
def test_compound_operands_are_put_in_parentheses_where_they_must(given: Call, text: str) -> None:
    assert call_text(given, {0: "a + b", 1: "c * d"}) == text
    assert call_text(call("Tensor.sum", X), {0: "x.view(2)[0]"}) == "x.view(2)[0].sum()"
    assert call_text(call("Tensor.__lt__", X, Y), {0: "a < b", 1: "c"}) == "(a < b) < c"


def test_errors_are_sentences() -> None:
    with pytest.raises(NotReplayable, match="no call of PyTorch"):
        replay([call("numpy.sum", X)], {0: randn(2)})
    with pytest.raises(NotReplayable, match="before it is computed"):
        replay([call("torch.sin", Y)], {0: randn(2)})
    with pytest.raises(NotReplayable, match=r"has no torch\.nothing"):
        replay([call("torch.nothing", X)], {0: randn(2)})
    with pytest.raises(NotReplayable, match="gave 2 tensors"):
        replay([call("Tensor.chunk", X, 2)], {0: randn(2)})
