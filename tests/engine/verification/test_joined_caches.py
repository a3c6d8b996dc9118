"""Attention over a cache and what is put behind it: as searched it passes; with another seam, the operands exchanged or
the new rows missing it does not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pytest
import torch
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.ir.windows import Window, resized
from mugraph.search.run import topologies
from mugraph.search.schedules.splits import cuts
from mugraph.verification.verifier import verify_topologies, verify_topology

from tests.engine.ops.harness import lower_region, randn, record

KEPT = 45


def program(new: int) -> TensorProgram:
    def attend(
        q: torch.Tensor, keys: torch.Tensor, k: torch.Tensor, values: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        joined, rows = torch.cat((keys, k), 1), torch.cat((values, v), 1)
        return torch.softmax(q @ joined.mT * 0.25, -1) @ rows

    inputs = {"q": randn(2, 4, 16), "keys": randn(2, KEPT, 16), "k": randn(2, new, 16)}
    return lower_region(record(attend, {**inputs, "values": randn(2, KEPT, 12), "v": randn(2, new, 12)})).program


def with_windows(block: BlockGraph, names: Collection[str], by: int) -> BlockGraph:
    """The tensors are as long as they were, and read so many places later."""
    return replace(
        block, tensors=tuple(moved(tensor, by) if tensor.name in names else tensor for tensor in block.tensors)
    )


def moved(tensor: Tensor, by: int) -> Tensor:
    return replace(tensor, windows=tuple(replace(w, pad=w.pad + by, rest=w.rest + by) for w in tensor.windows))


def mutants(block: BlockGraph) -> Iterator[tuple[str, BlockGraph]]:
    windows = {tensor.name for tensor in block.tensors if tensor.windows}
    for name in windows:
        for by in (-1, 1):
            yield f"{name} begins {by} places later", with_windows(block, {name}, by)
    loads = {op.tensor: op for op in block.ops if op.kind is Kind.LOAD}
    for one, other in (("keys", "k"), ("values", "v")):
        both = {one: other, other: one}
        if one in windows and other in windows:
            by_name = {tensor.name: tensor for tensor in block.tensors}
            exchanged = {name: replace(by_name[name], windows=by_name[both[name]].windows) for name in both}
            yield (
                f"{one} behind {other}",
                replace(block, tensors=tuple(exchanged.get(tensor.name, tensor) for tensor in block.tensors)),
            )
        # the new rows are missing: what they are multiplied by, or added to, is used in their stead
        for op in block.ops:
            if op.kind is Kind.ADD and loads[one].name in op.inputs:
                ops = (
                    replace(o, inputs=tuple(loads[one].name if i == op.name else i for i in o.inputs))
                    for o in block.ops
                )
                yield f"{one} alone", replace(block, ops=tuple(ops))
    for op in block.ops:
        if op.kind is Kind.MASK:
            for value in (op.value - 1, op.value + 1):
                ops = tuple(replace(o, value=value) if o is op else o for o in block.ops)
                yield f"the mask begins at {-value}", replace(block, ops=ops)


@pytest.mark.parametrize("new", [1, 7])
def test_another_seam_is_rejected(new: int) -> None:
    own = program(new)
    block = next(one.block for one in topologies(own) if not one.block.loop_axes)
    assert verify_topology(own, block, seed=1).passed
    found = 0
    for what, mutant in mutants(block):
        assert not verify_topology(own, mutant, seed=1).passed, what
        found += 1
    assert found >= 6


def test_a_cache_is_split_across_the_grid() -> None:
    """Also along the axis that it is read through a window along: its parts are the dimension's places in order."""
    own = program(3)
    block = next(b for b in (one.block for one in topologies(own)) if any(cut.axis in windowed(b) for cut in cuts(b)))
    (cut, *_) = (cut for cut in cuts(block) if cut.axis in windowed(block))
    first, second = cut.at(4)
    assert all(
        tensor.dims[window.dim] == (cut.split, cut.part) for tensor in first.tensors for window in tensor.windows
    )
    assert verify_topologies(own, [(first, None), (second, None)], seed=1).passed
    later = with_windows(first, {tensor.name for tensor in first.tensors}, 1)
    assert not verify_topologies(own, [(later, None), (second, None)], seed=1).passed


def returning(own: TensorProgram, block: BlockGraph) -> tuple[TensorProgram, BlockGraph]:
    """The program and the topology with the joined keys as an output too."""
    value, here = joined_keys(own), joined_keys(block)
    keys = own.tensor("keys")
    tensor = Tensor("joined", keys.dims, contiguous_strides(keys.dims, own.sizes), "f32", "joined")
    store = Op("store_joined", Kind.STORE, (here.name,), here.axes, tensor="joined")
    program = replace(own, outputs={**own.outputs, value.name: tensor})
    return program, replace(block, tensors=(*block.tensors, tensor), ops=(*block.ops, store))


def joined_keys(graph: TensorProgram | BlockGraph) -> Op:
    read = {op.name for op in graph.ops if op.tensor == "keys"}
    return next(op for op in graph.ops if op.kind is Kind.ADD and read.intersection(op.inputs))


def test_the_first_kernel_of_a_split_stores_the_cache_that_it_has_joined() -> None:
    """Each part of it, with a loop over the part and without one; and no other kernel has to read the caches again."""
    own = program(3)
    loops = [one.block for one in topologies(own) if one.block.loop_axes]
    block = next(b for b in loops if any(cut.axis in windowed(b) for cut in cuts(b)))
    whole, stored = returning(own, block)
    (cut, *_) = (cut for cut in cuts(stored) if cut.axis in windowed(block))
    for looped in (True, False):
        first, second = cut.at(4, looped=looped)
        assert "joined" in [tensor.name for tensor in first.outputs]
        assert {tensor.name for tensor in second.inputs}.isdisjoint({"joined", "keys", "values", "k", "v"})
        assert verify_topologies(whole, [(first, None), (second, None)], seed=1).passed
        keys = next(op.name for op in first.ops if op.tensor == "keys")
        alone = replace(
            first, ops=tuple(replace(op, inputs=(keys,)) if op.tensor == "joined" else op for op in first.ops)
        )
        assert not verify_topologies(whole, [(alone, None), (second, None)], seed=1).passed


def windowed(block: BlockGraph) -> set[str]:
    return {axis for tensor in block.tensors for axis in tensor.windowed}


@pytest.mark.parametrize(
    ("pad", "rest", "then"),
    [(0, -1, (0, -1)), (2, 5, (2, 5)), (900, 0, (9, 0)), (0, -900, (0, -9)), (400, -300, (5, -5))],
)
def test_windows_keep_their_place_at_small_sizes(pad: int, rest: int, then: tuple[int, int]) -> None:
    """Near places stay, far ones are in proportion; what is read of a convolution stays as it is."""
    window = Window(1, 0, pad=pad, rest=rest)
    small = resized(window, ("a", "t"), {"a": 10, "t": 100}, {"a": 2, "t": 7})
    assert (small.pad, small.rest) == then
    assert resized(window, ("a", "t"), {"a": 10, "t": 100}, {"a": 10, "t": 100}) == window
    for other in (replace(window, taps=1), replace(window, stride=2), replace(window, edge=True)):
        assert resized(other, ("a", "t"), {"a": 10, "t": 100}, {"a": 2, "t": 7}) == other
