"""The canonical form of block graphs: equal where two differ in names of values and axes and in order only.

Tensors keep their names; an axis is known by where it stands in them. Operands of commutative operators, operators and
independent loops have no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind, Op
from mugraph.ir.placement import placement, varying


@dataclass(frozen=True, slots=True)
class Canonical:
    """operators: a digest of each value, of its operator and its operands' digests; loops: the tiling expression."""

    operators: frozenset[str]
    loops: str


def canonical(block: BlockGraph) -> Canonical:
    """Of a block graph whose axes all occur in its tensors. Values that are computed twice in one way count once."""
    axes = _axes(block)
    digests: dict[str, str] = {}
    for op in block.ops:
        digests[op.name] = _digest(op, axes, [digests[name] for name in op.inputs])
    return Canonical(frozenset(digests.values()), _text(block, block.loops, axes))


def _axes(block: BlockGraph) -> dict[str, str]:
    """Axis -> the first place it has: tensors by name, dimensions as they lie in memory."""
    names: dict[str, str] = {}
    for tensor in sorted(block.tensors, key=lambda tensor: tensor.name):
        for position, axis in enumerate(tensor.axes):
            names.setdefault(axis, f"{tensor.name}.{position}")
    return names


def _digest(op: Op, axes: dict[str, str], operands: list[str]) -> str:
    if op.kind.commutes:
        operands = sorted(operands)
    own = (op.kind.name, op.fn, op.tensor, op.value, sorted(axes[axis] for axis in op.over), operands)
    return blake2b(repr(own).encode(), digest_size=16).hexdigest()


def _sorted(block: BlockGraph, loops: tuple[Loop, ...], axes: dict[str, str]) -> list[Loop]:
    """Loops in a row: of those whose inputs are there, the one whose axis sorts first comes first."""
    waits = {loop.axis: _results_used(block, loop, {other.axis for other in loops}) for loop in loops}
    ordered: list[Loop] = []
    while len(ordered) < len(loops):
        done = {loop.axis for loop in ordered}
        ready = [loop for loop in loops if loop.axis not in done and waits[loop.axis] <= done]
        if not ready:
            raise ValueError(f"the loops of '{block.name}' wait for each other")
        ordered.append(min(ready, key=lambda loop: axes[loop.axis]))
    return ordered


def _results_used(block: BlockGraph, loop: Loop, among: set[str]) -> set[str]:
    """Other loops whose results a statement in this one uses."""
    inside, vary = placement(block), varying(block)
    results: dict[str, set[str]] = {}
    found: set[str] = set()
    for op in block.ops:
        below = {axis for name in op.inputs for axis in results[name]}
        around = set(inside[op.name]) | vary[op.name]
        if loop.axis in around:
            found |= below & among
        results[op.name] = below | set(op.over) if op.kind is Kind.ACCUM else below
    return found - {loop.axis}


def _text(block: BlockGraph, loops: tuple[Loop, ...], axes: dict[str, str]) -> str:
    return ",".join(f"{axes[loop.axis]}({_text(block, loop.body, axes)})" for loop in _sorted(block, loops, axes))
