"""Values of a block graph that are computed element by element and reduced at once, as the exponentials of a
cross-entropy, and its logits where they are compared with the target's place.

A thread computes a few of them at a time, so they never stand in registers all together. (Compiled for compute
capability 9.0, a tile of 128 by 256 logits takes 204 registers of a thread of 256, of which the tile itself is 128; one
of 128 by 128 takes 108.)
"""

from __future__ import annotations

from collections.abc import Iterator

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind


def summed(block: BlockGraph) -> Iterator[str]:
    """Their names, the last first."""
    found: set[str] = set()
    users: dict[str, list[str]] = {}
    at_once = {op.name for op in block.ops if op.kind.reduces and not op.kind.contracts and op.kind is not Kind.ACCUM}
    for op in block.ops:
        for name in op.inputs:
            users.setdefault(name, []).append(op.name)
    for op in reversed(block.ops):
        own = users.get(op.name, [])
        if op.kind.is_elementwise and own and all(user in at_once or user in found for user in own):
            found.add(op.name)
            yield op.name
