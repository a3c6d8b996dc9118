"""Where each operator of a block graph runs: the loops its value varies in, and the loop body it stands in."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.ops import Kind


def loop_paths(loops: tuple[Loop, ...]) -> dict[str, tuple[str, ...]]:
    """Axis of each loop -> axes from the outermost loop down to it."""
    paths: dict[str, tuple[str, ...]] = {}

    def walk(body: tuple[Loop, ...], above: tuple[str, ...]) -> None:
        for loop in body:
            paths[loop.axis] = (*above, loop.axis)
            walk(loop.body, paths[loop.axis])

    walk(loops, ())
    return paths


def varying(block: BlockGraph) -> dict[str, frozenset[str]]:
    """Value -> loops it changes in. A load, mask or position varies in the loops over its axes; an accumulator no
    longer in its own."""
    loops = frozenset(block.loop_axes)
    axes = {tensor.name: frozenset(tensor.axes) for tensor in block.tensors}
    vary: dict[str, frozenset[str]] = {}
    for op in block.ops:
        if op.kind is Kind.LOAD or op.kind.of_places:
            own = axes.get(op.tensor, frozenset()) if op.kind is Kind.LOAD else frozenset(op.axes)
            vary[op.name] = own & loops
            continue
        below = frozenset[str]().union(*(vary.get(name, frozenset()) for name in op.inputs))
        vary[op.name] = below - frozenset(op.over) if op.kind is Kind.ACCUM else below
    return vary


def left_behind(block: BlockGraph) -> dict[str, frozenset[str]]:
    """Value -> loops that have ended when it is computed: those of the accumulators among its ancestors."""
    done: dict[str, frozenset[str]] = {}
    for op in block.ops:
        before = frozenset[str]().union(*(done.get(name, frozenset()) for name in op.inputs))
        done[op.name] = before.union(op.over) if op.kind is Kind.ACCUM else before
    return done


def placement(block: BlockGraph) -> dict[str, tuple[str, ...]]:
    """Value -> the loops around its operator, outermost first: the outermost body that binds all it varies in.

    An accumulator stands in the loop it closes; a loop-invariant value stands before the loop (hoisting).
    """
    paths = loop_paths(block.loops)
    vary = varying(block)
    placed: dict[str, tuple[str, ...]] = {}
    for op in block.ops:
        around = vary[op.name] | frozenset(op.over if op.kind is Kind.ACCUM else ())
        placed[op.name] = max((paths[axis] for axis in around if axis in paths), key=len, default=())
    return placed
