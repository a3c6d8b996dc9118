"""What the literal algorithm and the search find of one program, to be compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.research.reference import LiteralSearch, canonical
from mugraph.research.reference.canonical import Canonical
from mugraph.research.reference.sizes import Sizes, every
from mugraph.search import Limits, Search
from mugraph.search.topologies.softmax import is_shift_invariant

PREFIXES = 12_000
"""Of one literal search: a program with more of them is compared with fewer operators."""


def resized(program: TensorProgram, size: int) -> TensorProgram:
    """All axes of one size, densely stored."""
    sizes = dict.fromkeys(program.sizes, size)

    def dense(tensor: Tensor) -> Tensor:
        return replace(tensor, strides=contiguous_strides(tensor.dims, sizes))

    outputs = {name: dense(tensor) for name, tensor in program.outputs.items()}
    return replace(program, sizes=sizes, tensors=tuple(map(dense, program.tensors)), outputs=outputs)


def first_only(program: TensorProgram, loops: tuple[str, ...]) -> Iterator[Sizes]:
    return itertools.islice(every(program, loops), 1)


def literal(program: TensorProgram, max_ops: int, prefixes: int = PREFIXES) -> list[BlockGraph] | None:
    """With one choice of sizes for each set of loops, unsafe forms of softmax left out; None if that is too long."""
    search = LiteralSearch(program, max_ops, choices=first_only, cancelled=lambda: search.counts.prefixes > prefixes)
    blocks = [block for _, block in search.run()]
    return None if search.stopped else [b for b in blocks if keeps_softmax(program, b)]


def keeps_softmax(program: TensorProgram, block: BlockGraph) -> bool:
    return not is_shift_invariant(program.ops) or is_shift_invariant(block.ops)


def searched(program: TensorProgram, max_ops: int) -> list[BlockGraph]:
    search = Search(program, Limits(max_block_ops=max_ops, slack=max_ops, max_topologies=100_000))
    blocks = [found.block for found in search.run()]
    assert search.stats.complete
    return [block for block in blocks if len(block.block_ops) <= max_ops]


def once(blocks: list[BlockGraph]) -> set[Canonical]:
    """Their canonical forms; none was found twice."""
    forms = {canonical(block) for block in blocks}
    assert len(forms) == len(blocks)
    return forms
