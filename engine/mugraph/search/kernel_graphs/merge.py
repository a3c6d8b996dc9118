"""Several outputs in one kernel: block graphs laid over one another, what both compute computed once."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op


def merged(one: BlockGraph, other: BlockGraph) -> BlockGraph | None:
    """A block graph that stores what both store. None if their loops do not go together, or no grid suits both.

    Loops go together if they are equal, or if one graph has none and reduces no axis that the other loops over: values
    computed element by element can as well be computed a tile in each iteration. A grid suits both if one graph has all
    axes that the other can be parallel over: then no block computes what only another block needs.
    """
    if any(one.sizes.get(axis, size) != size for axis, size in other.sizes.items()):
        return None
    if one.loops != other.loops:
        looped, flat = (one, other) if one.loops else (other, one)
        if flat.loops or any(set(op.over) & set(looped.loop_axes) for op in flat.ops):
            return None
    loops = one.loops or other.loops
    reduced = {axis for op in (*one.ops, *other.ops) for axis in op.over}.union(one.loop_axes, other.loop_axes)
    mine, yours = ({axis for tensor in block.outputs for axis in tensor.axes} - reduced for block in (one, other))
    if not (mine <= yours or yours <= mine):
        return None
    ops = [op for op in one.ops if op.kind is not Kind.STORE]
    stores = [op for op in one.ops if op.kind is Kind.STORE]
    known = {_meaning(op): op.name for op in ops}
    taken = {op.name for op in one.ops}
    names: dict[str, str] = {}
    for op in other.ops:
        here = replace(op, inputs=tuple(names[name] for name in op.inputs))
        same = known.get(_meaning(here))
        if same is not None:
            names[op.name] = same
            continue
        names[op.name] = name = take(numbered(op.name), taken)
        here = replace(here, name=name)
        if op.kind is Kind.STORE:
            stores.append(here)
        else:
            known[_meaning(here)] = name
            ops.append(here)
    tensors = {tensor.name: tensor for tensor in (*one.inputs, *other.inputs, *one.outputs, *other.outputs)}
    return BlockGraph(one.name, {**one.sizes, **other.sizes}, tuple(tensors.values()), (*ops, *stores), loops)


def _meaning(op: Op) -> Op:
    """Equal for operators that compute one value."""
    return replace(op, name="", inputs=tuple(sorted(op.inputs)) if op.kind.commutes else op.inputs)
