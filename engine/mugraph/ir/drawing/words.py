"""The words both drawings use: operators as a person writes them, shapes of tiles, grids, loops."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.packing import held, packed
from mugraph.kinds import accumulator


def number(value: float) -> str:
    """As short as it stays readable: 1024, 0.125, 1e-06."""
    return f"{value:g}"


def constants(block: BlockGraph) -> dict[str, str]:
    """Value -> number, for constants: they are written where they are used."""
    return {op.name: number(op.value) for op in block.ops if op.kind is Kind.CONST}


def expression(op: Op, numbers: Mapping[str, str]) -> str:
    """What the operator computes, in one line: `X × G`, `xg @ W over h`."""
    if op.kind.of_places:
        return triangle(op) if op.kind is Kind.MASK else place(op)
    shown = accumulator(op.fn).shown if op.kind is Kind.ACCUM else op.kind.shown
    inputs = [numbers.get(name, name) for name in op.inputs]
    return shown.format(*inputs, over=" ".join(op.over), tensor=op.tensor, fn=op.fn, value=op.value)


def triangle(op: Op) -> str:
    """Where a mask is 1: `1 where t <= s + 4`."""
    columns, rows = (" ".join(axes) or "0" for axes in (op.columns, op.rows))
    offset = int(op.value)
    if op.fn == "last":
        columns, rows = f"{columns} from the last", f"{rows} from the last"
    return f"1 where {columns} <= {rows}" + (f" {'+' if offset > 0 else '-'} {abs(offset)}" if offset else "")


def place(op: Op) -> str:
    """What a position counts: `place along j`, `4 + place along j`."""
    return (f"{int(op.value)} + " if op.value else "") + f"place along {' '.join(op.rows)}"


def symbol(op: Op, numbers: Mapping[str, str]) -> str:
    """The operator alone, for a node: `×`, `÷ 1024`, `matmul`, `Σ h`."""
    kind = op.kind
    sign = (accumulator(op.fn).symbol if kind is Kind.ACCUM else kind.symbol).format(over=" ".join(op.over), fn=op.fn)
    if not kind.is_elementwise:
        return sign
    left, right = (numbers.get(name, "") for name in (op.inputs[0], op.inputs[-1]))
    if len(op.inputs) == 1 or not (left or right):
        return kind.of_itself if kind.of_itself and op.inputs[0] == op.inputs[-1] else sign
    return " ".join(part for part in (left, sign, right) if part)


def axis_order(block: BlockGraph) -> tuple[str, ...]:
    """Axes as the outputs have them in memory, then as the inputs have them: the order shapes are shown in."""
    tensors = (*block.outputs, *block.inputs)
    return tuple(dict.fromkeys(axis for tensor in tensors for axis in tensor.axes))


def tile_shape(op: Op, block: BlockGraph, schedule: Schedule) -> dict[str, int]:
    """Axis -> elements in one tile of the value, in `axis_order`; `g*s` for axes that are packed into one dimension."""
    found = packed(block, schedule)
    name = {axis: "*".join(pack) for pack in found for axis in pack}
    shape: dict[str, int] = {}
    for axis in (axis for axis in axis_order(block) if axis in held(op.axes, found)):
        size = min(schedule.tile(axis, block.sizes[axis]), block.sizes[axis])
        shape[name.get(axis, axis)] = shape.get(name.get(axis, axis), 1) * size
    return shape


def loop_words(axis: str, block: BlockGraph, schedule: Schedule) -> str:
    """`for h: 4 × 256`, iterations by tile."""
    size = block.sizes[axis]
    tile = schedule.tile(axis, size)
    return f"for {axis}: {ceil(size / tile)} × {tile}"


def grid_words(kernel: GraphKernel) -> str:
    """`grid n/64, b/16: 64 blocks`."""
    blocks = kernel.schedule.blocks(kernel.block.sizes)
    tiles = ", ".join(f"{axis}/{tile}" for axis, tile in kernel.schedule.grid)
    return f"{f'grid {tiles}: ' if tiles else ''}{blocks} block{'' if blocks == 1 else 's'}"


def beside_words(mugraph: MuGraph, kernel: str) -> str:
    """`; one launch with k, v` of a kernel that is launched together with others, `; combined in the same launch as k`
    of one that combines another one's sums; "" of another."""
    combined = mugraph.combines(kernel)
    if combined:
        return f"; combined in the same launch as {combined}"
    others = mugraph.beside(kernel)
    return f"; one launch with {', '.join(others)}" if others else ""


def launch_words(schedule: Schedule) -> str:
    """`4 warps, 3 stages, swapped, products of float32 as tf32x3`."""
    warps = f"{schedule.num_warps} warp{'' if schedule.num_warps == 1 else 's'}"
    stages = f"{schedule.num_stages} stage{'' if schedule.num_stages == 1 else 's'}"
    swapped = ", swapped" if schedule.swap else ""
    precise = f", products of float32 as {schedule.precision}" if schedule.precision != "ieee" else ""
    evict = ""
    if schedule.evict is not None:
        evict = f", what is read once {'leaves the cache first' if schedule.evict else 'stays in the cache as long'}"
    return f"{warps}, {stages}{swapped}{precise}{evict}"
