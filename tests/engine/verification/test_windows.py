"""Implicit GEMM is a convolution; with another stride, pad, dilation or order of taps it is another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from mugraph.ir.spec import check_block
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.ir.text import format_block, parse_block
from mugraph.ir.transforms.resizing import resize
from mugraph.ir.windows import Window
from mugraph.verification.sizes import assignments
from mugraph.verification.verifier import verify_schedule, verify_topology

from tests.engine.verification.convolutions import graphs


def test_the_search_finds_implicit_gemm() -> None:
    program, block = graphs()
    assert check_block(block) == []
    assert parse_block(format_block(block)) == block
    verdict = verify_topology(program, block, seed=1)
    assert verdict.passed, verdict.reason
    assert verdict.bound is not None


def same_extent(window: Window, tensor: Tensor, sizes: dict[str, int], **changes: int) -> Window:
    """The window changed, of a dimension that stays as long."""
    axes = tensor.dims[window.dim]
    changed = replace(window, **changes)
    return replace(changed, rest=changed.rest + window.extent(axes, sizes) - changed.extent(axes, sizes))


def height(**changes: int) -> Callable[[Tensor, dict[str, int]], Tensor]:
    def change(x: Tensor, sizes: dict[str, int]) -> Tensor:
        return replace(x, windows=(same_extent(x.windows[0], x, sizes, **changes), x.windows[1]))

    return change


def exchanged(x: Tensor, sizes: dict[str, int]) -> Tensor:
    """Rows of the kernel over columns of the input."""
    return replace(x, dims=(*x.dims[:2], ("p", "s"), ("q", "r")))


WRONG = {
    "stride": height(stride=1),
    "pad one more": height(pad=2),
    "pad one less": height(pad=0),
    "dilation": height(dilation=2),
    "taps exchanged": exchanged,
    "no window": lambda x, sizes: replace(x, windows=()),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_window_is_rejected(name: str) -> None:
    program, block = graphs()
    tensors = tuple(WRONG[name](t, dict(block.sizes)) if t.name == "x" else t for t in block.tensors)
    verdict = verify_topology(program, replace(block, tensors=tensors), seed=1)
    assert not verdict.passed
    assert verdict.reason


def test_a_flipped_kernel_is_rejected() -> None:
    """Its rows read as columns: with as many of each the shapes do not tell."""
    program, block = graphs()
    sizes = {**program.sizes, "s": 3}
    program, block = (replace(graph, sizes=sizes) for graph in (program, block))
    flipped = (("o",), ("c",), ("s",), ("r",))
    weight = Tensor("w", flipped, contiguous_strides(flipped, sizes), "f16")
    tensors = tuple(weight if tensor.name == "w" else tensor for tensor in block.tensors)
    verdict = verify_topology(program, replace(block, tensors=tensors), seed=1)
    assert "differs" in (verdict.reason or "")


def test_tiles_read_what_their_windows_need() -> None:
    """The schedule's own indexing, with a last tile cut short."""
    program, block = graphs()
    (small, _) = assignments(program, [(block, ("o", "p", "q"))])
    sizes = {**small.sizes, "q": 5, "c": 3, "r": 3}
    changed = replace(resize(program, sizes), name="tiles")
    tensors = tuple(t if t.name == "out" else changed.tensor(t.name) for t in block.tensors)
    out = next(iter(changed.outputs.values()))
    tensors = tuple(out if t.name == out.name else t for t in tensors)
    scheduled = small.schedule(block, ("o", "p", "q"))
    verdict = verify_schedule(changed, replace(block, sizes=sizes, tensors=tensors), scheduled, seed=1)
    assert verdict.passed, verdict.reason


def test_a_window_that_leaves_nothing_is_no_tensor() -> None:
    _, block = graphs()
    tensors = tuple(
        replace(t, windows=(replace(t.windows[0], rest=-40), t.windows[1])) if t.name == "x" else t
        for t in block.tensors
    )
    assert any("without elements" in text for text in check_block(replace(block, tensors=tensors)))
