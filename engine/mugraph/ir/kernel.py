"""A generated kernel as text, with what is needed to launch it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.library import LibraryCall
from mugraph.ir.ops import Tf32
from mugraph.ir.tensors import Tensor


class Rejected(Exception):
    """This candidate cannot be lowered; the message is one sentence saying why."""


@dataclass(frozen=True)
class Unfinished:
    """What a kernel that finishes another one's sums must know of them; the block graphs do not say it.

    maxima:  row maxima in units of log2, float32, which the first kernel stores besides its block graph's outputs
    degrees: output tensor -> name of a maximum -> degree: its elements are relative to exp2(degree * maximum)
    storage: output tensor -> types of the tensors it was computed from
    """

    maxima: tuple[Tensor, ...] = ()
    degrees: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    storage: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched up to a size: what depends on the schedule, for one text of the kernel.

    largest:    the largest size of the kernel's axis `by` that it is for
    grid:       blocks along x, y, z at that size
    terms:      the same as products of numbers and `triton.cdiv({size}, tile)`, `{size}` being an axis's name in braces
    schedule:   that it was made of
    part:       elements of one part of the axis that is divided
    """

    largest: int
    grid: tuple[int, int, int]
    terms: tuple[str, str, str]
    constexprs: Mapping[str, int | float]
    num_warps: int
    num_stages: int
    schedule: Schedule = field(compare=False)
    part: int = 0


@dataclass(frozen=True)
class UpTo:
    """Other kernels, that are launched while a size is small.

    axis, largest: a dynamic axis, and up to which size of it they are
    source:        of them; it has no such others itself
    kernels:       the block graphs at that size, and the schedules, that it was made of
    """

    axis: str
    largest: int
    source: KernelSource
    kernels: tuple[tuple[BlockGraph, Schedule], ...] = field(compare=False)


@dataclass(frozen=True)
class LastBlock:
    """Of a kernel, and of the one that combines what its blocks store, as one launch: the last block of each group that
    has stored what it has runs the second kernel for the group (codegen/last_block.py).

    first, second: as they would be alone, but for what their texts know of it
    ids:      what a block of the first one is given for its ids, as text of `pid`, its number
    group:    the number of its group likewise
    groups, members: how many groups there are, and blocks in each
    last_ids: what the second one is given for its ids, as text of `group` and `part`
    blocks:   of the second one, that a group's last block runs one after the other: `part` counts them
    copies:   scratch tensors of which each group has one of its own -> elements of one
    """

    first: KernelSource
    second: KernelSource
    ids: tuple[str, ...]
    group: str
    groups: int
    members: int
    last_ids: tuple[str, ...]
    blocks: int
    copies: Mapping[str, int]


@dataclass(frozen=True)
class KernelSource:
    """
    name:       of the kernel; the launcher is `launch_<name>`, the @triton.jit function is `function`
    jit:        the function's text, decorator included, imports not
    pointers:   tensor parameters in order (inputs, then outputs), each `<tensor.name>_ptr`
    constexprs: compile-time parameters in order -> value
    grid:       blocks along x, y, z
    inputs, outputs: tensors in the order of `pointers`; outputs are allocated contiguous by the launcher
    launcher:   text of `def launch_<name>(<inputs>) -> output | tuple of outputs` (torch.empty, then the launch)
    unfinished: of a kernel that another one finishes: what that one is lowered with
    library:    of a pre-defined kernel: the PyTorch call that computes it; it has no @triton.jit function then
    least:      dynamic axes, whose sizes are arguments of the launch -> the least they may be; `sizes` has the largest
    arguments:  parameters of the function that hold sizes, in order after the pointers -> their axes
    divided:    a dynamic axis whose parts are spread over the grid -> the axis that says which part: its size, how many
                there are, follows from a launch's `part`
    by:         the dynamic axis by whose size a launch is chosen
    launches:   of a kernel with dynamic axes: by size, the smallest first. The last one is `grid`, `constexprs`, ...
    takes_tf32: products in it are computed in TF32
    early:      it is launched before the kernel before it in the stream has ended, and waits itself (codegen/early.py);
                of several: the first one is
    parts:      where several kernels run one after the other: each of them; `jit` then holds all their functions,
                `launcher` launches all and keeps to itself what they hand over, `pointers` to `num_stages` are the
                first one's
    joined:     where several kernels are one launch, side by side: each of them, as it would be alone, in the order of
                their blocks (codegen/one_grid.py)
    combined:   where a kernel and the one that combines its sums are one launch: these (codegen/last_block.py)
    scratch:    tensors that only this launch writes and reads, between inputs and outputs in `pointers`; the launcher
                allocates them
    counters:   whole numbers, the last of `pointers`, which are 0 before each launch and after it
    over:       tensors that it writes where it has read others, in whose memory they then are, in place of outputs of
                their own (codegen/over_inputs.py): name -> of the input
    smaller:    of kernels with dynamic axes: what is launched in their place up to a size, the smallest first; `jit`
                then holds all the functions, its own first, and `launcher` chooses (codegen/by_size.py)
    """

    name: str
    jit: str
    pointers: tuple[str, ...]
    constexprs: Mapping[str, int | float]
    grid: tuple[int, int, int]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    sizes: Mapping[str, int]
    num_warps: int
    num_stages: int
    launcher: str
    unfinished: Unfinished = field(default_factory=Unfinished)
    library: LibraryCall | None = None
    least: Mapping[str, int] = field(default_factory=dict[str, int])
    divided: Mapping[str, str] = field(default_factory=dict[str, str])
    by: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    launches: tuple[Launch, ...] = ()
    takes_tf32: bool = False
    early: bool = False
    parts: tuple[KernelSource, ...] = ()
    joined: tuple[KernelSource, ...] = ()
    smaller: tuple[UpTo, ...] = ()
    combined: LastBlock | None = None
    scratch: tuple[Tensor, ...] = ()
    counters: int = 0
    over: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def kernels(self) -> tuple[KernelSource, ...]:
        """What is launched, in order; at the largest size, where others are at smaller ones."""
        return self.parts or (self,)

    @property
    def every(self) -> tuple[KernelSource, ...]:
        """What is launched at any size."""
        return (*self.kernels, *(kernel for one in self.smaller for kernel in one.source.kernels))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """In the order of `pointers`; counters are none."""
        return (*self.inputs, *self.scratch, *self.outputs)

    @property
    def made(self) -> tuple[Tensor, ...]:
        """Outputs that the launcher allocates and returns."""
        return tuple(tensor for tensor in self.outputs if tensor.name not in self.over)

    @property
    def settings(self) -> tuple[Tf32, ...]:
        """PyTorch's settings of TF32 that the calls of pre-defined kernels in it go by, where they are set."""
        return tuple(sorted({one.library.tf32 for one in self.every if one.library is not None and one.library.tf32}))

    @property
    def function(self) -> str:
        """Name of the @triton.jit function that is launched: the last one, where it calls others."""
        first = next((part for part in self.parts if part.jit), self)
        found = first.jit.rsplit("\ndef ", 1) if first.joined or first.combined else first.jit.split("def ", 1)
        return found[1].split("(", 1)[0].strip()

    def standalone(self) -> str:
        """A complete Python module holding the kernel and its launcher."""
        jit = f"{self.jit}\n\n\n" if self.jit else ""
        return f"import torch\nimport triton\nimport triton.language as tl\n\n\n{jit}{self.launcher}\n"
