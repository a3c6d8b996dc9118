"""Attention with a mask that is read as one call of PyTorch: what is one, what only looks like one, and that the call
computes it, also where a row sees nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, sqrt
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.baseline.cost import baseline
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.library import LibraryCall, library_call
from mugraph.ir.ops import Kind
from mugraph.optimizer.nodes import LIBRARY
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.targets import TARGETS
from mugraph.triton_text.check import check_text
from mugraph.verification.float_test import FloatTester

from tests.engine.ir.library.calls import call_of, check_graph, program_of
from tests.engine.ops.harness import record

Made = Callable[..., torch.Tensor]
NAME = "torch.nn.functional.scaled_dot_product_attention"
G = torch.Generator().manual_seed(4)


def drawn(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(shape, generator=G).to(dtype)


def seen(*shape: int) -> torch.Tensor:
    """Truth values; in the first row nothing is seen."""
    mask = torch.rand(shape, generator=G) > 0.3
    mask[..., 0, :] = False
    return mask


def hidden(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """Numbers, some of them minus infinity, and all of a row."""
    return drawn(*shape, dtype=dtype).masked_fill(~seen(*shape), -inf)


def of(mask: torch.Tensor, heads: int = 4, dtype: torch.dtype = torch.float16) -> dict[str, torch.Tensor]:
    q, k, v = drawn(2, 4, 6, 8), drawn(2, heads, 16, 8), drawn(2, heads, 16, 8)
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype), "mask": mask}


def called(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=q.shape[1] != k.shape[1])


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / sqrt(8) + mask, dim=-1) @ v


MASKS: dict[str, tuple[Made, dict[str, torch.Tensor], str]] = {
    "truth values": (called, of(seen(2, 4, 6, 16)), "attn_mask=mask,"),
    "of each sequence": (called, of(seen(2, 1, 6, 16)), "attn_mask=mask,"),
    "of keys": (called, of(seen(2, 1, 1, 16)), "attn_mask=mask,"),
    "of rows and keys": (called, of(seen(6, 16)), "(q, k, v, attn_mask=mask,"),
    "added": (called, of(hidden(2, 4, 6, 16)), "attn_mask=mask,"),
    "added, of heads": (called, of(hidden(4, 6, 16)), "attn_mask=mask.view(1, 4, 6, 16)"),
    "bfloat16": (called, of(hidden(2, 1, 6, 16, dtype=torch.bfloat16), dtype=torch.bfloat16), ""),
    "float32": (called, of(hidden(2, 1, 6, 16, dtype=torch.float32), dtype=torch.float32), ""),
    "float32, truth values": (called, of(seen(2, 1, 6, 16), dtype=torch.float32), ""),
    "groups": (called, of(seen(2, 1, 6, 16), heads=2), "enable_gqa=True"),
    "groups, of heads": (called, of(hidden(4, 6, 16), heads=2), "(q.view(2, 2, 12, 8), k, v,"),
    "one head of keys": (called, of(seen(2, 1, 6, 16), heads=1), "enable_gqa=True"),
}


@pytest.mark.parametrize("name", MASKS)
def test_it_is_one_call_that_computes_what_the_code_does(name: str, tester: FloatTester) -> None:
    function, tensors, shown = MASKS[name]
    call = call_of(function, tensors)
    assert call is not None
    assert call.function == NAME
    assert shown in call.shown
    assert not call.fuses
    _computes(call, function, tensors)
    program = program_of(function, tensors)
    check_graph(program, ("scale=0.", "scale=1."))
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def _computes(call: LibraryCall, function: Made, tensors: dict[str, torch.Tensor]) -> None:
    wide = {name: tensor if tensor.dtype == torch.bool else tensor.double() for name, tensor in tensors.items()}
    scope: dict[str, Any] = {"torch": torch, **wide}
    exec(call.text({name: name for name in (*wide, "out")}), scope)
    torch.testing.assert_close(scope["out"], function(**wide), rtol=1e-12, atol=1e-12)


def test_another_mask_is_refuted() -> None:
    check_graph(program_of(called, of(seen(6, 16))), (", attn_mask=mask", ""), ("attn_mask=mask", "is_causal=True"))
    check_graph(program_of(called, of(hidden(4, 6, 16))), ("mask.view(1, 4, 6, 16)", "mask[:1]"))


def test_a_row_that_sees_nothing_is_said_of_the_same_mask() -> None:
    program = program_of(called, of(seen(2, 1, 6, 16)))
    block = as_block(program)
    (kept,) = (op for op in block.ops if op.kind is Kind.KEPT)
    (largest,) = (op for op in block.ops if op.kind is Kind.AMAX)
    assert kept.inputs[0] == largest.name
    changed = [replace(op, inputs=("mask_row", kept.inputs[1])) if op is kept else op for op in block.ops]
    of_rows = replace(largest, name="mask_row", inputs=("q",))
    assert library_call(replace(block, ops=(*changed[:-2], of_rows, *changed[-2:]))) is None


@pytest.mark.parametrize(
    ("function", "mask"),
    [
        # What is hidden is replaced: a key that is NaN leaves nothing there, where the call adds minus infinity to it.
        (lambda q, k, v, mask: torch.softmax((q @ k.mT).masked_fill(~mask, -inf), -1) @ v, seen(6, 16)),
        (lambda q, k, v, mask: torch.softmax((q @ k.mT + mask) * 0.5, -1) @ v, drawn(6, 16)),  # the mask is scaled
        (lambda q, k, v, mask: torch.softmax(q @ k.mT * mask, -1) @ v, drawn(6, 16)),
        (lambda q, k, v, mask: torch.softmax(q @ k.mT + 2 * mask, -1) @ v, drawn(6, 16)),
        (lambda q, k, v, mask: torch.softmax(q @ k.mT + mask, -2) @ v, drawn(6, 16)),
        (lambda q, k, v, mask: called(q, k, v, mask) * 2, seen(6, 16)),
        (lambda q, k, v, mask: by_hand(q, k, v, mask.half()), drawn(6, 16, dtype=torch.float32)),
        (called, seen(6, 1)),  # the same for all keys
        (by_hand, drawn(6, 16)),  # a row that a mask hides is NaN, where the call has 0
    ],
)
def test_what_is_something_else_is_none(function: Made, mask: torch.Tensor) -> None:
    call = call_of(function, of(mask))
    assert call is None or call.function != NAME


def test_a_key_that_is_no_number_and_is_hidden() -> None:
    """PyTorch adds minus infinity to what a mask of truth values hides, and NaN stays NaN; so a call of it is no
    mistake, and nor is a kernel that passes over it."""
    tensors = of(seen(2, 1, 6, 16))
    (attended,) = (op for op in program_of(called, tensors).ops if op.kind.hides)
    assert attended.kind is Kind.ATTENDED
    assert attended.kind.opaque is not None
    assert attended.kind.opaque.passes_over
    tensors["k"][:, :, 3] = torch.nan
    tensors["mask"][..., 3] = False
    assert called(**tensors)[:, :, 1:].isnan().all()


def us(mask: torch.Tensor, dtype: torch.dtype = torch.float16) -> float:
    given = {name: torch.empty(4, 16, 1024, 128, dtype=dtype, device="meta") for name in "qkv"}
    call = call_of(called, {**given, "mask": mask})
    assert call is not None
    return estimate_call_us(call, TARGETS["h100"])


def test_an_estimate_is_that_without_a_mask_and_of_what_is_made_of_it() -> None:
    added = us(torch.empty(1, 1, 1024, 1024, dtype=torch.float16, device="meta"))
    truth = us(torch.empty(1, 1, 1024, 1024, dtype=torch.bool, device="meta"))
    assert added < truth < 1.3 * added


def test_a_call_and_the_code_are_estimated_alike() -> None:
    given = {name: torch.empty(4, 16, 1024, 128, dtype=torch.float16, device="meta") for name in "qkv"}
    given["mask"] = torch.empty(4, 1, 1024, 1024, dtype=torch.bool, device="meta")
    region = record(called, given)
    found = baseline(region.calls, region.values, {region.calls[-1].outputs[0]}, TARGETS["h100"]).eager_us
    assert 0.9 < found / us(given["mask"]) < 1.1


def gated(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.silu(called(q, k, v, mask))


def test_a_kernel_may_say_what_such_a_row_is(tester: FloatTester) -> None:
    """The attention as a part that says nothing of it, and the rest generated."""
    program = program_of(gated, of(seen(2, 1, 6, 16)))
    (product,) = (op.name for op in program.ops if op.kind is Kind.DOT and "e" in op.axes)
    stored = in_memory(program)
    parts = [([product], []), (list(program.outputs), [product])]
    attention, rest = (as_block(subprogram(program, values, leaves, stored)) for values, leaves in parts)
    call = library_call(attention)
    assert call is not None
    assert call.function == NAME
    generated = Schedule(tuple((axis, 1 if axis in "bh" else 8) for axis in rest.outputs[0].axes), {})
    source = lower_kernels([(attention, LIBRARY), (rest, generated)])
    names = [tensor.name for tensor in source.inputs], [tensor.name for tensor in source.outputs]
    text, launcher = source.standalone(), f"launch_{source.name}"
    found = check_text(program, text, launcher, *names, seed=2)
    assert found.passed, found.reason
    assert not check_text(program, text.replace("scale=0.", "scale=1."), launcher, *names, seed=2).passed
    tested = tester.test_kernel(source, program, seed=3)
    assert tested.passed, tested.reason
