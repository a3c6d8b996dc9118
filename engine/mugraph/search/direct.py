"""Programs without a reduction or a product: each has one topology, which is the program itself.

Nothing of it is computed twice, so there is nothing to search for: its time is that of its traffic, however its
operators are arranged. Where sums run along an axis, a loop over that axis is a topology besides: it carries them from
tile to tile, so that rows may be of any length.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.search.topologies.frame import check_operators
from mugraph.search.topologies.limits import Found, Stats


def is_direct(program: TensorProgram) -> bool:
    return not any(op.kind.reduces for op in program.ops)


class DirectSearch:
    """As mugraph.search.run.Search, of a program with any outputs. Raises NotSearchable."""

    def __init__(self, program: TensorProgram) -> None:
        check_operators(program)
        self.program = program
        self._count = 0
        self._began = time.monotonic()

    @property
    def stats(self) -> Stats:
        found, size = self._count, len(self.program.compute_ops)
        return Stats(
            found, size, bool(found), size, "space" if found else "running", {}, time.monotonic() - self._began
        )

    def run(self) -> Iterator[Found]:
        self._count = 1
        whole = as_block(self.program)
        yield Found(whole, time.monotonic() - self._began)
        for axis in looped_axes(self.program):
            self._count += 1
            yield Found(replace(whole, loops=(Loop(axis),)), time.monotonic() - self._began)


def looped_axes(program: TensorProgram) -> list[str]:
    """Axes that all running sums along them go through in one direction: a loop does as well."""
    ways: dict[str, set[bool]] = {}
    for op in program.ops:
        if op.kind.scans:
            ways.setdefault(op.over[0], set()).add(op.kind.backwards)
    return [axis for axis, directions in ways.items() if len(directions) == 1]


def as_block(program: TensorProgram) -> BlockGraph:
    """The program as a block graph without loops: what it computes, whatever computes it."""
    stores = [
        Op(f"store_{tensor.name}", Kind.STORE, (value,), program.op(value).axes, tensor=tensor.name)
        for value, tensor in program.outputs.items()
    ]
    tensors = (*program.tensors, *program.outputs.values())
    return BlockGraph(program.name, dict(program.sizes), tensors, (*program.ops, *stores))
