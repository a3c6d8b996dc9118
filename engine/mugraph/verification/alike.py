"""What the tests of a topology depend on: graphs of which all of it is equal have one verdict.

They run at small sizes. Programs that differ in their full sizes alone are mostly the same program there, and so are
their topologies: a convolutional network has one layer at a dozen sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.ir.transforms.unnamed import Unnamed
from mugraph.verification.evaluate import Malformed
from mugraph.verification.sizes import assignments, grid_axes
from mugraph.verification.weights import belongs_to_sizes


def verdict_key(program: TensorProgram, blocks: Sequence[BlockGraph]) -> Hashable | None:
    """Equal for graphs that `conditioning.verified` does the same with; None where it looks at full sizes as well, or
    finds no small ones."""
    graphs = (program.ops, *(block.ops for block in blocks))
    if any(op.kind is Kind.MASK for ops in graphs for op in ops) or belongs_to_sizes(*graphs):
        return None
    cut = [(block, grid_axes(block)) for block in blocks]
    try:
        both = assignments(program, cut)
    except Malformed:
        return None
    unnamed = Unnamed()
    parts: list[Hashable] = [
        unnamed.ops(program.ops),
        tuple(unnamed.value(value) for value in program.outputs),
        tuple((unnamed.ops(block.ops), block.loops, grid) for block, grid in cut),
        tuple(program.least),
        tuple(program.sized.items()),
    ]
    for assignment in both:
        parts += [tuple(assignment.sizes.items()), tuple(assignment.tiles.items())]
        for graph in (resize(program, assignment.sizes), *(resize_block(one, assignment.sizes) for one in blocks)):
            every = graph.tensors if isinstance(graph, BlockGraph) else (*graph.tensors, *graph.outputs.values())
            parts.append(
                (tuple(graph.sizes.items()), unnamed.tensors([(one, (one.strides, one.windows)) for one in every]))
            )
    return tuple(parts)
