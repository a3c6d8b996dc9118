"""Prints the text form that the package's docstring describes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.lookups import Lookup
from mugraph.ir.maps import fmap, format_map, imap, omap
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.packing import Packs, packed
from mugraph.ir.placement import placement
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides
from mugraph.ir.windows import Window

WINDOW_FIGURES = ("stride", "dilation", "pad", "rest", "spread")
WINDOW_MARKS = ("edge", "reverse")
"""Figures of a window in the order in which they are printed; default ones are not printed."""
PLACES = {Kind.MASK: ("rows", "columns", "diagonal"), Kind.POSITION: ("rows", "first")}
"""Arguments of what follows from places along axes; the last one is the operator's value."""


def format_mugraph(mugraph: MuGraph) -> str:
    """The whole μGraph; `parse_mugraph` gives an equal one back if it is valid (ir/spec)."""
    return "\n".join(_mugraph(mugraph)) + "\n"


def format_launch(kernel: GraphKernel | LibraryKernel) -> str:
    """One line: what runs, with its tiles."""
    if isinstance(kernel, LibraryKernel):
        return f"library {kernel.call}"
    return "; ".join((f"kernel {kernel.name}", *_schedule(kernel.block, kernel.schedule)))


def format_program(program: TensorProgram) -> str:
    """`parse_program` gives an equal one back."""
    return "\n".join(_program(program)) + "\n"


def format_block(block: BlockGraph) -> str:
    """A topology: no tiles, no maps. `parse_block` gives an equal one back."""
    return "\n".join(_block(block)) + "\n"


def format_op(op: Op) -> str:
    """One line: `z[b, n] = dot(x, w, over=h)`."""
    return f"{op.name}[{', '.join(op.axes)}]{_marks(op)} = {_expression(op)}"


def _marks(op: Op) -> str:
    return f": {' '.join(op.marks)}" if op.marks else ""


def format_tensor(tensor: Tensor, sizes: Sizes) -> str:
    """`w f16[h, n] strides [1, 1024] from "self.weight"`."""
    windows = {window.dim: window for window in tensor.windows}
    dims = ", ".join(_dimension(dim, windows.get(number)) for number, dim in enumerate(tensor.dims))
    strides = "" if tensor.strides == contiguous_strides(tensor.dims, sizes) else f" strides {list(tensor.strides)}"
    skew = f" skew {tensor.skew}" if tensor.skew else ""
    source = f" from {json.dumps(tensor.source, ensure_ascii=False)}" if tensor.source else ""
    rows = "".join(map(_lookup, tensor.looked_up.values()))
    return f"{tensor.name} {tensor.dtype}[{dims}]{strides}{skew}{source}{rows}"


def _lookup(one: Lookup) -> str:
    """` by index i64 of 8 wraps from "experts"`."""
    source = f" from {json.dumps(one.source, ensure_ascii=False)}" if one.source else ""
    return f" by {one.name} {one.dtype} of {one.rows}{' wraps' if one.wraps else ''}{source}"


def _dimension(axes: tuple[str, ...], window: Window | None) -> str:
    """`heads*head_dim`, or `window p over r stride 2 pad 1`, or `rows t*a`."""
    if window is None:
        return "*".join(axes) or "1"
    if window.lookup is not None:
        return f"rows {'*'.join(axes) or '1'}"
    positions, taps = ("*".join(part) or "1" for part in window.split(axes))
    plain = Window(window.dim, window.taps)
    figures = [
        f" {name} {value}" for name in WINDOW_FIGURES if (value := getattr(window, name)) != getattr(plain, name)
    ]
    marks = [f" {name}" for name in WINDOW_MARKS if getattr(window, name)]
    keeps = f" keeps {window.keeps}" if window.keeps else ""
    by = f" by {window.by}{' behind' if window.behind else ''}" if window.by else ""
    return f"window {positions} over {taps}{''.join((*figures, *marks))}{keeps}{by}"


def format_loops(loops: Iterable[Loop], tiles: Mapping[str, int]) -> str:
    """`n/64(k/32, h/64)`: a loop's body in parentheses; the tile where there is one."""
    return ", ".join(
        _tiled(loop.axis, tiles) + (f"({format_loops(loop.body, tiles)})" if loop.body else "") for loop in loops
    )


def _expression(op: Op) -> str:
    arguments = list(op.inputs)
    match op.kind:
        case Kind.CONST:
            arguments.append(repr(op.value))
        case Kind.MASK | Kind.POSITION:
            given = {"rows": "*".join(op.rows), "columns": "*".join(op.columns)}
            arguments += [f"{name}={given.get(name, int(op.value))}" for name in PLACES[op.kind]]
        case _:
            arguments += [op.tensor] if "tensor" in op.kind.fields else []
            arguments += ["over=" + "*".join(op.over)] if "over" in op.kind.fields else []
    return f"{f'{op.kind}.{op.fn}' if op.fn else op.kind}({', '.join(arguments)})"


def _tiled(axis: str, tiles: Mapping[str, int]) -> str:
    return f"{axis}/{tiles[axis]}" if axis in tiles else axis


def _axes(sizes: Sizes, least: Sizes | None = None) -> Iterator[str]:
    low = {axis: f"{size}.." for axis, size in (least or {}).items()}
    yield "  axes " + ", ".join(f"{axis}={low.get(axis, '')}{size}" for axis, size in sizes.items())


def _program(program: TensorProgram) -> Iterator[str]:
    yield f"program {program.name}"
    yield from _axes(program.sizes, program.least)
    if program.sized:
        yield "  together " + ", ".join(map(" ".join, program.varying_together))
    for tensor in program.tensors:
        yield f"  tensor {format_tensor(tensor, program.sizes)}"
    for op in program.ops:
        yield f"  {format_op(op)}"
    for value, tensor in program.outputs.items():
        yield f"  output {value} -> {format_tensor(tensor, program.sizes)}"


def _block(block: BlockGraph) -> Iterator[str]:
    yield f"block {block.name}"
    yield from _axes(block.sizes)
    for tensor in block.tensors:
        yield f"  tensor {format_tensor(tensor, block.sizes)}"
    if block.loops:
        yield f"  loops {format_loops(block.loops, {})}"
    yield from _operators(block, None, "  ")


def _mugraph(mugraph: MuGraph) -> Iterator[str]:
    yield f"mugraph {mugraph.name}({', '.join(mugraph.inputs)}) -> {', '.join(mugraph.outputs)}"
    yield from _axes(mugraph.sizes)
    for tensor in mugraph.tensors:
        yield f"  tensor {format_tensor(tensor, mugraph.sizes)}"
    for group in mugraph.one_launch:
        yield f"  one_launch {', '.join(group)}"
    for pair in mugraph.combined:
        yield f"  combined {', '.join(pair)}"
    for kernel in mugraph.kernels:
        yield ""
        if isinstance(kernel, LibraryKernel):
            call = json.dumps(kernel.call, ensure_ascii=False)
            yield f"  library {kernel.name}({', '.join(kernel.inputs)}) -> {', '.join(kernel.outputs)} = {call}"
            if kernel.block is not None:
                yield from _borders(kernel.block, mugraph)
                yield from _operators(kernel.block, None, "    ")
        else:
            yield from _kernel(kernel, mugraph)


def _kernel(kernel: GraphKernel, mugraph: MuGraph) -> Iterator[str]:
    block, schedule = kernel.block, kernel.schedule
    called = "" if block.name == kernel.name else f" block {block.name}"
    yield f"  kernel {kernel.name}({', '.join(tensor.name for tensor in block.tensors)}){called}"
    yield from _borders(block, mugraph)
    yield from (f"    {line}" for line in _schedule(block, schedule))
    yield from _operators(block, schedule, "    ")
    for thread in kernel.threads:
        ops = ", ".join(op.name for op in thread.ops)
        yield f"    thread {thread.name}({', '.join(thread.inputs)}) = {ops}"


def _schedule(block: BlockGraph, schedule: Schedule) -> Iterator[str]:
    if schedule.grid:
        yield "grid " + ", ".join(f"{axis}/{tile}" for axis, tile in schedule.grid)
    if block.loops:
        yield f"loops {format_loops(block.loops, schedule.loops)}"
    yield f"launch warps={schedule.num_warps} stages={schedule.num_stages}{_special(schedule)}"


def _special(schedule: Schedule) -> str:
    """What few schedules have."""
    precision = f" {schedule.precision}" if schedule.precision != "ieee" else ""
    part = f" part={schedule.part}" if schedule.part else ""
    evict = "" if schedule.evict is None else " evict" if schedule.evict else " keep"
    return f"{' swap' if schedule.swap else ''}{precision}{part}{evict}"


def _borders(block: BlockGraph, mugraph: MuGraph) -> Iterator[str]:
    """Names of axes belong to a kernel; they are shown where they differ from the kernel graph's."""
    if block.sizes != mugraph.sizes:
        yield from ("  " + line for line in _axes(block.sizes))
    known = {tensor.name: format_tensor(tensor, mugraph.sizes) for tensor in mugraph.tensors}
    for tensor in block.tensors:
        if known.get(tensor.name) != (line := format_tensor(tensor, block.sizes)):
            yield f"    tensor {line}"


def _operators(block: BlockGraph, schedule: Schedule | None, indent: str) -> Iterator[str]:
    tiles = schedule.loops if schedule else dict[str, int]()
    placed = placement(block)
    tensors = {tensor.name: tensor for tensor in block.tensors}
    found = packed(block, schedule) if schedule else ()
    current: tuple[str, ...] = ()
    for op in block.ops:
        # A constant has no place: it is shown where it stands, so that it does not interrupt a loop body.
        around = current if op.kind is Kind.CONST else placed[op.name]
        shared = 0
        while shared < min(len(current), len(around)) and current[shared] == around[shared]:
            shared += 1
        for depth in range(shared, len(around)):
            yield f"{indent}{'  ' * depth}for {_tiled(around[depth], tiles)}:"
        current = around
        yield f"{indent}{'  ' * len(around)}{format_op(op)}{maps(op, tensors, schedule, around, found)}"


def maps(
    op: Op, tensors: Mapping[str, Tensor], schedule: Schedule | None, around: tuple[str, ...], found: Packs = ()
) -> str:
    """The derived part of a load's or store's line, "" for other operators and where there is no schedule.

    found: axes packed into one dimension (packing.py). What has all of them is reshaped between memory and the tile
    (`reshape g*s`); what lacks some repeats along these (`repeat g`).
    """
    if schedule is None or op.tensor not in tensors:
        return ""
    tensor = tensors[op.tensor]
    shown: list[str] = []
    if schedule.grid:
        is_load = op.kind is Kind.LOAD
        mapping = imap(tensor, schedule) if is_load else omap(tensor, schedule)
        shown.append(f"{'imap' if is_load else 'omap'} {format_map(mapping)}")
    if around:
        shown.append(f"fmap {format_map(fmap(tensor, around))}")
    for pack in found:
        missing = [axis for axis in pack if axis not in op.axes]
        if len(missing) < len(pack):
            shown.append(f"repeat {'*'.join(missing)}" if missing else f"reshape {'*'.join(pack)}")
    return "  " + " ".join(shown) if shown else ""
