"""Block graphs and their schedules: what one thread block computes, and with which sizes.

A *topology* is a BlockGraph; with a Schedule it is a *candidate*. imap, omap and fmap (Mirage §2) follow from the axis
names: a tensor that has a grid axis is partitioned along it, one that has not is replicated; likewise for loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal, get_args

from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of the tiling expression (MCFuser §3): its axis, and the loops inside it, in order."""

    axis: str
    body: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class BlockGraph:
    """A topology: operators at tile level, no sizes of tiles yet.

    name:    of the kernel
    sizes:   every axis -> its full size
    tensors: inputs, then outputs (those a STORE names)
    loops:   the tiling expression's loops, outermost first; () when nothing is looped
    ops:     kinds LOAD .. ACCUM, STORE in dependency order. SUM, AMAX and DOT over an axis reduce the part of it in
             the tile (all of it when the axis is whole); ACCUM over a loop adds the iterations up, or keeps their
             largest. The full sum over a looped axis is therefore ACCUM(SUM(x)), or SUM(ACCUM(x)) where the tile is
             kept until after the loop. A value used after a loop is loop-invariant or passed an ACCUM of that loop.
    """

    name: str
    sizes: Mapping[str, int]
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    loops: tuple[Loop, ...] = ()

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        stored = {op.tensor for op in self.ops if op.kind is Kind.STORE}
        return tuple(tensor for tensor in self.tensors if tensor.name in stored)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        stored = {op.tensor for op in self.ops if op.kind is Kind.STORE}
        return tuple(tensor for tensor in self.tensors if tensor.name not in stored)

    @property
    def loop_axes(self) -> tuple[str, ...]:
        """Axes of all loops, depth first."""

        def walk(loops: tuple[Loop, ...]) -> tuple[str, ...]:
            return tuple(axis for loop in loops for axis in (loop.axis, *walk(loop.body)))

        return walk(self.loops)

    @property
    def block_ops(self) -> tuple[Op, ...]:
        """Operators the papers count: everything but constants and masks, loads (input iterators)
        and stores (output savers)."""
        return tuple(op for op in self.ops if not op.kind.is_leaf and op.kind is not Kind.STORE)

    def tensor(self, name: str) -> Tensor:
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)


Precision = Literal["ieee", "tf32x3", "bf16x6", "tf32"]
"""As `tl.dot` names them. Numbers below about 1e-33 lose digits in parts. The last one keeps ten bits of a number's
mantissa, and is for products whose operands the program lets be rounded so (`Op.tf32`)."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
TF32: Precision = "tf32"


LOADS_AHEAD = 3
"""Stages from which on a kernel without products loads what the next iterations of its loops read, too; with fewer, a
load waits in its own iteration. (Loads of products are ahead by all stages but one.)"""


@dataclass(frozen=True)
class Schedule:
    """Sizes and hardware choices for a topology.

    grid:  (axis, tile) for every grid axis, the fastest-varying program id first. Any number: more than three are
           flattened by codegen. Axes of an output that are neither grid nor loop are whole.
    loops: loop axis -> tile
    swap:  compute dots transposed (operand swap, for few rows)
    precision: of products of float32: one number after the other, or on tensor cores, in three products of tf32 parts,
           or in six of bfloat16 parts (a choice, as all of these keep its digits); or those that the program lets be
           rounded in tf32, and others one number after the other
    part:  elements of one part of the axis whose size varies that is split across the grid (ir/parts.py); 0 where none
           is
    library: computed by a pre-defined kernel, one PyTorch call (ir/library), in place of a generated one: nothing
             else here is of any meaning then
    evict:   what is read once is the first to leave the cache; None: where ir/eviction.py says so
    """

    grid: tuple[tuple[str, int], ...]
    loops: Mapping[str, int] = field(default_factory=dict[str, int])
    swap: bool = False
    num_warps: int = 4
    num_stages: int = 3
    library: bool = False
    precision: Precision = "ieee"
    part: int = 0
    evict: bool | None = None

    def tile(self, axis: str, size: int) -> int:
        """Elements of `axis` in one tile: the grid or loop tile, else all of it."""
        for name, tile in self.grid:
            if name == axis:
                return tile
        return self.loops.get(axis, size)

    def tiles_ahead(self, *, products: bool) -> int:
        """Of a load in a loop, how many are in shared memory at a time; 0 where it goes to registers at once.
        products: does the kernel have any?"""
        if products:
            return max(1, self.num_stages - 1)
        return self.num_stages if self.num_stages >= LOADS_AHEAD else 0

    def blocks(self, sizes: Mapping[str, int]) -> int:
        """Thread blocks launched."""
        count = 1
        for axis, tile in self.grid:
            count *= ceil(sizes[axis] / tile)
        return count


@dataclass(frozen=True)
class Candidate:
    """A topology with a schedule, and the cost model's estimate of its time in microseconds (an estimate, always).

    then:        the kernel of a kernel graph that runs after this one: it finishes what this one leaves in memory (a
                 reduction that is split across the grid), or computes another value, from the program's inputs and what
                 any kernel before it has stored; None for the last one
    estimate_us: of this kernel and all that follow it
    """

    block: BlockGraph
    schedule: Schedule
    estimate_us: float = float("inf")
    then: Candidate | None = None

    @property
    def kernels(self) -> tuple[Candidate, ...]:
        """This one and those after it, in the order they run."""
        return (self, *self.then.kernels) if self.then is not None else (self,)

    @property
    def topology(self) -> tuple[int, ...]:
        """Equal for candidates of one topology, whatever their sizes: their operators are the same objects."""
        return tuple(id(kernel.block.ops) for kernel in self.kernels)
