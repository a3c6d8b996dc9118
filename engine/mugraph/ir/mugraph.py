"""μGraphs: kernel graphs whose nodes are library kernels or graph-defined kernels (Mirage §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Op
from mugraph.ir.tensors import Tensor


@dataclass(frozen=True)
class ThreadGraph:
    """Operators of a block graph that run as one, the values between them in registers (Mirage §4.2, Table 1: Matmul,
    Sum and what is element-wise; registers.py says what stays there).

    name:   of the value it leaves in the block graph (its last operator's)
    inputs: values of the block graph it reads, a product's operands among them
    ops:    in dependency order
    """

    name: str
    inputs: tuple[str, ...]
    ops: tuple[Op, ...]


@dataclass(frozen=True)
class GraphKernel:
    """A graph-defined kernel: a block graph, its schedule, and the thread graphs inside it."""

    name: str
    block: BlockGraph
    schedule: Schedule
    threads: tuple[ThreadGraph, ...] = ()


@dataclass(frozen=True)
class LibraryKernel:
    """A pre-defined kernel: one PyTorch call (cuBLAS, cuDNN, or an operator no rule covers).

    call:  the call as it is shown to a person, e.g. "torch.cat((a, b), dim=-1)"
    block: what it computes, without tiles, where a search chose it: then it can be verified. None for a call that the
           user's code makes
    """

    name: str
    call: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    block: BlockGraph | None = None


@dataclass(frozen=True)
class MuGraph:
    """A kernel graph: the program of one region.

    tensors: everything in device memory between and around the kernels
    inputs, outputs: names of tensors
    kernels: in the order they run
    one_launch: those of them, by their names, that are launched together: none needs what another one makes, and each
             has blocks of its own of one grid
    combined: pairs of them, by their names, that are one launch, too: the second combines what blocks of the first
             store, in the last of those blocks
    """

    name: str
    sizes: Mapping[str, int]
    tensors: tuple[Tensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernels: tuple[GraphKernel | LibraryKernel, ...]
    one_launch: tuple[tuple[str, ...], ...] = ()
    combined: tuple[tuple[str, str], ...] = ()

    def combines(self, kernel: str) -> str:
        """The kernel whose sums this one combines in the same launch; "" where it does not."""
        return {second: first for first, second in self.combined}.get(kernel, "")

    def beside(self, kernel: str) -> tuple[str, ...]:
        """The other kernels of its launch."""
        return tuple(one for group in self.one_launch if kernel in group for one in group if one != kernel)
