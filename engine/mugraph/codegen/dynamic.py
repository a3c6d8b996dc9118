"""Kernels whose sizes are arguments: what they cannot be, where their sizes come from, and the table of launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mugraph.codegen.arguments import argument_lines
from mugraph.codegen.tile.axes import Plan
from mugraph.codegen.tile.index import Grid
from mugraph.codegen.tile.text import plus
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource, Launch, Rejected
from mugraph.ir.masks import may_vary
from mugraph.ir.names import Scope
from mugraph.ir.ops import Kind
from mugraph.ir.parts import parts_of, undivided
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window

EARLY = "launch_pdl=True"
"""The option of a launch that may begin before the kernel before it has ended."""


def check_dynamic(block: BlockGraph, program: TensorProgram | None, schedule: Schedule | None = None) -> None:
    """Raises Rejected for a kernel that needs a dynamic axis of the program to be of one size. schedule: says whether
    parts of one are as long as a launch chooses"""
    if program is None or not program.least:
        return
    parts = parts_of(block, program) if schedule is not None and schedule.part else None
    if schedule is not None and parts is not None:
        if parts.part not in block.loop_axes:
            raise Rejected(f"a part of axis {parts.axis}, whose size varies, would be held as a whole.")
        block, _ = undivided(block, schedule, parts)
    known = {tensor.name: tensor for tensor in (*program.tensors, *program.outputs.values())}
    for tensor in block.tensors:
        if tensor.name in known:
            for axis in program.least.keys() & set(known[tensor.name].axes) - set(tensor.axes):
                raise Rejected(f"axis {axis}, whose size varies, would be cut into parts of one size.")
    for tensor in block.tensors:
        strides = tensor.axis_strides(block.sizes)
        if tensor.source and tensor.name in known:
            own = known[tensor.name].axis_strides(program.sizes)  # they have been looked at with other sizes
            changed = any(strides[axis] != own[axis] for axis in strides.keys() & own.keys())
            for axis in program.least.keys() & strides.keys() if changed else ():
                raise Rejected(f"{tensor.name} has gaps around axis {axis} that the program's does not have.")
        for axis in (axis for axis in tensor.measures if axis not in block.sizes):
            raise Rejected(f"how much is joined to {tensor.name} is the size of axis {axis}, which the kernel has not.")
        looked_up = {axis for dim in tensor.looked_up for axis in tensor.dims[dim]}
        for axis in program.least.keys() & set(tensor.axes) - looked_up if tensor.windows else ():
            if axis in tensor.slid:
                begins = any(
                    window.pad and not window.begins_by_size and axis in tensor.dims[window.dim]
                    for window in tensor.windows
                )
                inner = [other for other in program.least if 0 < strides.get(other, 0) < strides[axis]]
                if begins and inner:
                    raise Rejected(f"{tensor.name} is read from a place that depends on the size of axis {inner[0]}.")
                continue
            if axis in tensor.windowed or any(strides[other] > strides[axis] for other in tensor.axes):
                raise Rejected(
                    f"{tensor.name} is read through a window, and axis {axis}, whose size varies, is inside."
                )
    for op in block.ops:
        if op.kind is Kind.MASK:
            for axis in program.least.keys() & {*op.rows, *op.columns}:
                if may_vary(op, program.sizes, program.varying_together):
                    continue
                raise Rejected(f"the mask {op.name} runs over axis {axis}, whose size varies.")


def grid_terms(grid: Grid, plan: Plan) -> tuple[str, str, str]:
    """The launch as text; a size that varies stands in braces."""
    terms: list[str] = []
    for axes, count in zip(grid.axes, grid.launch, strict=False):
        fixed = prod(plan[axis].count for axis in axes if not plan[axis].dynamic)
        factors = [_count(axis, plan) for axis in axes if plan[axis].dynamic]
        terms.append(" * ".join([*factors, *([str(fixed)] if fixed > 1 or not factors else [])]) or str(count))
    x, y, z = (*terms, "1", "1", "1")[:3]
    return x, y, z


def _count(axis: str, plan: Plan) -> str:
    return f"triton.cdiv({{{axis}}}, {plan[axis].block})" if plan[axis].wide else f"{{{axis}}}"


def size_lines(
    inputs: Sequence[Tensor],
    called: Mapping[str, str],
    sizes: Mapping[str, int],
    least: Mapping[str, int],
    scope: Scope,
) -> tuple[list[str], dict[str, str]]:
    """Lines that read dynamic sizes off the inputs, and the variables: axis -> name.

    An input's number of elements says its size whatever its dimensions are. Where every input has several axes whose
    sizes are not known yet, a dimension says it (`read_by_shape`). Raises Rejected where none has the axis.
    """
    lines: list[str] = []
    names: dict[str, str] = {}
    for axis, tensor, dim in _read(inputs, least):
        within = tensor.axes if dim is None else tensor.dims[dim]
        window = next((one for one in tensor.windows if one.dim == dim and tensor.slid.issuperset(within)), None)
        if window is not None and window.by:
            read = f"{called[tensor.name]}.shape[{dim}]"
            if not window.keeps:
                read = _joined(window, axis, within[0], read, sizes, names)
            names[axis] = scope.unique(axis)
            lines.append(f"{names[axis]} = {read}")
            continue
        if window is not None:
            names[axis] = scope.unique(axis)
            lines.append(f"{names[axis]} = {plus(f'{called[tensor.name]}.shape[{dim}]', window.pad - window.rest)}")
            continue
        shape = tensor.shape(sizes) if dim is None else tensor.shape(sizes)[dim : dim + 1]
        rest = prod(shape) // prod(sizes[other] for other in within if other in least)
        factors = [names[other] for other in within if other != axis and other in least]
        factors += [str(rest)] if rest > 1 or not factors else []
        names[axis] = scope.unique(axis)
        over = factors[0] if len(factors) == 1 else f"({' * '.join(factors)})"
        read = f"{called[tensor.name]}.numel()" if dim is None else f"{called[tensor.name]}.shape[{dim}]"
        lines.append(f"{names[axis]} = {read}" + (f" // {over}" if over != "1" else ""))
    return lines, {axis: names[axis] for axis in least}


def _joined(
    window: Window, axis: str, along: str, read: str, sizes: Mapping[str, int], names: Mapping[str, str]
) -> str:
    """The size of an axis as text: of one along which two lengths that vary are joined, or of the one that has the
    length that `read` is not."""
    fixed = sum(window.fixed(sizes[window.by]))
    if axis == window.by:
        return plus(f"{names[along]} - {read}", -fixed)
    return plus(f"{read} + {names[window.by]}", fixed)


def read_by_shape(inputs: Sequence[Tensor], least: Mapping[str, int]) -> dict[str, int]:
    """Inputs that must have the dimensions that the kernel's program gives them, up to which one: a size is read off
    one of these."""
    found: dict[str, int] = {}
    for _, tensor, dim in _read(inputs, least):
        if dim is not None:
            found[tensor.name] = max(dim, found.get(tensor.name, 0))
    return found


def _read(inputs: Sequence[Tensor], least: Mapping[str, int]) -> list[tuple[str, Tensor, int | None]]:
    """For each dynamic axis, in an order in which they can be read, the input and the dimension (None: the number of
    all elements) that says its size."""
    found: dict[str, tuple[str, Tensor, int | None]] = {}

    def alone(axis: str, axes: Sequence[str]) -> bool:
        return axis in axes and all(other == axis or other not in least or other in found for other in axes)

    while waiting := [axis for axis in least if axis not in found]:
        before = len(found)
        for axis in waiting:
            having = [
                tensor
                for tensor in inputs
                if alone(axis, tensor.axes) and tensor.slid.isdisjoint(least) and not _looks_up(tensor, least)
            ]
            if having:
                found[axis] = axis, min(having, key=lambda one: len(one.axes)), None
        if len(found) > before:
            continue
        dims = [
            (axis, tensor, number)
            for axis in waiting
            for tensor in inputs
            for number in range(len(tensor.dims))
            if alone(axis, _told(tensor, number))
        ]
        if not dims:
            raise Rejected(
                f"no input of the kernel has axis {waiting[0]}, whose size varies, in a dimension of its own."
            )
        found[dims[0][0]] = dims[0]
    return [*found.values()]


def _told(tensor: Tensor, number: int) -> tuple[str, ...]:
    """The axes of which a dimension's length tells the size of one, where those of the others are known."""
    for window in (one for one in tensor.windows if one.dim == number):
        if window.by:
            return (window.by,) if window.keeps else (*tensor.dims[number], window.by)
        if window.keeps or window.lookup:
            return ()
    return tensor.dims[number]


def _looks_up(tensor: Tensor, least: Mapping[str, int]) -> bool:
    """Does an axis whose size varies count rows that are looked up? Then the tensor does not say how many there are."""
    return any(axis in least for dim in tensor.looked_up for axis in tensor.dims[dim])


def shape_text(tensor: Tensor, sizes: Mapping[str, int], names: Mapping[str, str]) -> str:
    """A tensor's shape as a tuple, with the variables in `names` for dynamic axes."""
    dims: list[str] = []
    for dim in tensor.dims:
        fixed = prod(sizes[axis] for axis in dim if axis not in names)
        factors = [names[axis] for axis in dim if axis in names]
        dims.append(" * ".join([*factors, *([str(fixed)] if fixed > 1 or not factors else [])]))
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


def part_lines(kernel: KernelSource, axis: str, sizes: Mapping[str, str], scope: Scope) -> tuple[list[str], str]:
    """Lines that choose the parts of a divided axis by its size, and the variable that says how many there are."""
    count = scope.unique(kernel.divided[axis])
    rows: list[Launch] = []
    for launch in kernel.launches:
        if rows and rows[-1].part == launch.part:
            rows.pop()
        rows.append(launch)
    if len(rows) == 1:
        return [f"{count} = triton.cdiv({sizes[axis]}, {rows[0].part})"], count
    part, lines = scope.unique(f"{axis}_part"), list[str]()
    for number, row in enumerate(rows):
        word = "if" if number == 0 else "elif"
        lines.append(f"{word} {sizes[kernel.by]} <= {row.largest}:" if number < len(rows) - 1 else "else:")
        lines.append(f"    {part} = {row.part}")
    return [*lines, f"{count} = triton.cdiv({sizes[axis]}, {part})"], count


def launch_lines(kernel: KernelSource, called: Mapping[str, str], sizes: Mapping[str, str]) -> list[str]:
    """Lines that launch a kernel with the schedule for its size.

    called: tensor -> variable. sizes: dynamic axis -> variable
    """
    tensors = ", ".join(called[tensor.name] for tensor in (*kernel.inputs, *kernel.outputs))
    own = "".join(f", {sizes[axis]}" for axis in kernel.arguments.values())
    last = kernel.launches[-1]
    shared = {key: value for key, value in last.constexprs.items() if _is_shared(key, kernel.launches)}
    fixed = [f"{key}={value!r}" for key, value in shared.items()]
    early = [EARLY] if kernel.early else []
    if len(kernel.launches) == 1:
        ends = [f"num_warps={last.num_warps}", f"num_stages={last.num_stages}", *early]
        return [
            f"{kernel.function}[{_grid(last, sizes)}](",
            f"    {tensors}{own},",
            *(f"    {line}" for line in argument_lines(fixed)),
            *(f"    {line}" for line in argument_lines(ends)),
            ")",
        ]
    lines: list[str] = []
    for number, launch in enumerate(kernel.launches):
        rest = [f"{key}={value!r}" for key, value in launch.constexprs.items() if key not in shared]
        rest += [f"num_warps={launch.num_warps}", f"num_stages={launch.num_stages}"]
        word = "if" if number == 0 else "elif"
        lines.append(f"{word} {sizes[kernel.by]} <= {launch.largest}:" if launch is not last else "else:")
        lines += [f"    grid = {_grid(launch, sizes)}", f"    schedule = dict({', '.join(rest)})"]
    return [
        *lines,
        f"{kernel.function}[grid](",
        f"    {tensors}{own},",
        *(f"    {line}" for line in argument_lines([*fixed, *early])),
        "    **schedule,",
        ")",
    ]


def _is_shared(key: str, launches: Sequence[Launch]) -> bool:
    return len({launch.constexprs[key] for launch in launches}) == 1


def _grid(launch: Launch, sizes: Mapping[str, str]) -> str:
    return f"({', '.join(term.format_map(sizes) for term in launch.terms)})"
