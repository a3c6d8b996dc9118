"""Several outputs in one kernel: block graphs of equal loops laid over one another, what both compute computed once."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op


def merged(one: BlockGraph, other: BlockGraph) -> BlockGraph | None:
    """A block graph that stores what both store; None where their loops differ, or where no grid suits both: their
    outputs' axes must be the same, so that each block has a tile of every output."""
    if one.loops != other.loops or any(
        set(a.axes) != set(b.axes) for a in one.outputs for b in (*one.outputs, *other.outputs)
    ):
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
        name, number = op.name, 2
        while name in taken:
            name, number = f"{op.name}_{number}", number + 1
        taken.add(name)
        names[op.name] = name
        here = replace(here, name=name)
        if op.kind is Kind.STORE:
            stores.append(here)
        else:
            known[_meaning(here)] = name
            ops.append(here)
    tensors = {tensor.name: tensor for tensor in (*one.inputs, *other.inputs, *one.outputs, *other.outputs)}
    return BlockGraph(one.name, {**one.sizes, **other.sizes}, tuple(tensors.values()), (*ops, *stores), one.loops)


def _meaning(op: Op) -> Op:
    """Equal for operators that compute one value."""
    return replace(op, name="")
