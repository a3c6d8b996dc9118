"""Names and text of indices, masks, strides and pointers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from mugraph.codegen.tile.axes import Dim, Plan, Role
from mugraph.codegen.tile.text import Expr, Item, Line, plus
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.names import Scope
from mugraph.ir.tensors import Run, Tensor
from mugraph.ir.windows import Window

GRID_LIMITS = (2**31 - 1, 65_535, 65_535)
"""Thread blocks a launch may have along x, y, z."""
REACH = 2**31
"""Numbers from 0 on that have 32 bits, as Triton's indices do unless the text says more."""
WIDE = ".to(tl.int64)"


@dataclass(frozen=True)
class Names:
    """What the kernel calls its sizes and tiles.

    size, block: axis -> constexpr parameter. index: axis -> its offsets, or its scalar index.
    part: axis of which a thread block has one part -> constexpr parameter, the elements of a part
    """

    scope: Scope
    pointer: Mapping[str, str]
    size: Mapping[str, str]
    block: Mapping[str, str]
    index: Mapping[str, str]
    loop: Mapping[str, str]
    part: Mapping[str, str] = field(default_factory=dict[str, str])


def kernel_names(tensors: Sequence[Tensor], plan: Plan) -> Names:
    scope = Scope()
    pointer = {tensor.name: scope.unique(f"{tensor.name}_ptr") for tensor in tensors}
    size = {axis: scope.unique(axis.upper()) for axis in plan}
    exact = {a for a, p in plan.items() if p.role is Role.WHOLE and not p.padded}
    block = {axis: size[axis] if axis in exact else scope.unique(f"BLOCK_{axis.upper()}") for axis in plan}
    part = {axis: scope.unique(f"PART_{axis.upper()}") for axis, p in plan.items() if p.split}
    index: dict[str, str] = {}
    loop: dict[str, str] = {}
    for axis, p in plan.items():
        if p.wide:
            index[axis] = scope.unique(f"offs_{axis}")
            loop[axis] = scope.unique(f"{axis}0") if p.role is Role.LOOP else ""
        else:
            index[axis] = scope.unique(f"pid_{axis}" if p.role is Role.GRID else f"{axis}_i")
            loop[axis] = index[axis]
    return Names(scope, pointer, size, block, index, loop, part)


@dataclass(frozen=True)
class Grid:
    """launch: blocks along x, y, z. lines: `pid_*` of every grid axis. pids: axis -> its variable.
    axes: along each of x, y, z"""

    launch: tuple[int, int, int]
    lines: tuple[Line, ...]
    pids: Mapping[str, str]
    axes: tuple[tuple[str, ...], ...] = ()


def grid_of(schedule: Schedule, plan: Plan, names: Names) -> Grid:
    """Program ids, the schedule's first axis on x. More than three axes, or too many blocks for y or z, share x."""
    axes = [axis for axis, _ in schedule.grid if axis in plan and plan[axis].role is Role.GRID]
    counts = [plan[axis].count for axis in axes]
    pids = {axis: names.scope.unique(f"pid_{axis}") if plan[axis].wide else names.index[axis] for axis in axes}
    lines: list[Line] = []
    if len(axes) <= 3 and all(count <= limit for count, limit in zip(counts, GRID_LIMITS, strict=False)):
        for at, axis in enumerate(axes):
            lines.append(_line(pids[axis], f"tl.program_id({at})"))
        x, y, z = (*counts, 1, 1, 1)[:3]
        return Grid((x, y, z), tuple(lines), pids, tuple((axis,) for axis in axes))
    total = prod(counts)
    if total > GRID_LIMITS[0]:
        raise Rejected(f"the grid has {total} thread blocks, more than a launch may have.")
    rest = names.scope.unique("pid")
    lines.append(_line(rest, "tl.program_id(0)"))
    for at, axis in enumerate(axes):
        blocks = names.size[axis] if not plan[axis].wide else f"tl.cdiv({names.size[axis]}, {names.block[axis]})"
        if at == len(axes) - 1:
            lines.append(_line(pids[axis], rest))
            break
        lines.append(_line(pids[axis], f"{rest} % {blocks}"))
        following = names.scope.unique("pid_rest")
        lines.append(_line(following, f"{rest} // {blocks}"))
        rest = following
    return Grid((total, 1, 1), tuple(lines), pids, (tuple(axes),))


class Indices:
    """Text that addresses tensors, once the order of dimensions is known."""

    def __init__(self, plan: Plan, dims: Sequence[Dim], sizes: Mapping[str, int], names: Names, grid: Grid) -> None:
        self.plan = plan
        self.sizes = sizes
        self.names = names
        self.grid = grid
        self.dim_of = {axis: dim for dim in dims for axis in dim.axes}
        self.mask = {dim: names.scope.unique(f"mask_{dim.name}") for dim in dims}

    def head(self, dim: Dim) -> list[Item]:
        """Offsets and mask of one dimension; of a loop's in the loop's body."""
        lines: list[Item] = []
        names, plan = self.names, self.plan
        local: dict[str, str] = {}
        if len(dim.axes) == 1:
            local[dim.axes[0]] = f"tl.arange(0, {names.block[dim.axes[0]]})"
        else:
            joint = names.scope.unique(f"offs_{dim.name}")
            lines.append(_line(joint, f"tl.arange(0, {' * '.join(names.block[axis] for axis in dim.axes)})"))
            inner = list[str]()
            for at, axis in reversed(list(enumerate(dim.axes))):
                text = f"{joint} // {_factor(inner)}" if inner else joint
                local[axis] = text if at == 0 else f"{text} % {names.block[axis]}"
                inner.insert(0, names.block[axis])
        for axis in dim.axes:
            text = local[axis]
            if plan[axis].role is Role.GRID:
                wide = WIDE if self._is_beyond(axis) else ""
                text = f"{self.grid.pids[axis]}{wide} * {names.block[axis]} + {text}"
            elif plan[axis].role is Role.LOOP:
                text = f"{names.loop[axis]} + {text}"
            lines.append(_line(names.index[axis], text))
        if dim.padded(plan):
            tests = [f"{names.index[axis]} < {names.size[axis]}" for axis in dim.axes if plan[axis].padded]
            text = tests[0] if len(tests) == 1 else " & ".join(f"({test})" for test in tests)
            lines.append(_line(self.mask[dim], text))
        return lines

    def broadcast(self, dim: Dim, dims: Sequence[Dim]) -> str:
        """What makes a vector along `dim` broadcast in a tile of `dims`."""
        return subscript((dim,), dims)

    def pointer(
        self, tensor: Tensor, dims: Sequence[Dim], places: Mapping[int, str] | None = None, without: str = ""
    ) -> str:
        """Address of every element of the tile: base + index * stride, in memory order.

        places: of dimensions whose places are no sums of indices (Window.edge), the text that says which is read
        without: an axis that is left out
        """
        placed = places or {}
        strides = tensor.axis_strides(self.sizes)
        varying = frozenset(axis for axis in tensor.axes if axis in self.plan and self.plan[axis].dynamic)
        symbols = stride_symbols(tensor, self.sizes, self.names.size, varying)
        self._check_strides(tensor, strides, symbols)
        reach = sum(abs(stride) * (self.sizes[axis] - 1) for axis, stride in strides.items())
        far = reach + sum(tensor.strides[dim] * one.rows for dim, one in tensor.looked_up.items()) >= REACH
        before = {
            axis: begins(window, axis, self.names.size, self.sizes)
            for window in tensor.windows
            if window.begins_by_size
            for axis in tensor.dims[window.dim]
        }
        terms = [self.names.pointer[tensor.name]]
        if tensor.origin:
            terms = [f"{terms[0]} {'-' if tensor.origin < 0 else '+'} {abs(tensor.origin)}"]
        for dim, place in placed.items():
            wide = WIDE if far and not place.isdecimal() else ""
            terms.append(f"{place}{wide} * {tensor.strides[dim]}" if tensor.strides[dim] != 1 else f"{place}{wide}")
        summed = [
            a
            for at, axes in enumerate(tensor.dims)
            if at not in placed
            for a in axes
            if a in self.plan and a != without
        ]
        for axis in sorted(summed, key=lambda a: -abs(strides[a])):
            if strides[axis] == 0 and not self.plan[axis].wide:
                continue
            wide = WIDE if far and not self._is_beyond(axis) else ""
            index = self.at(axis, dims, wide, turned=axis in tensor.reversed)
            if axis in before:
                index = f"({index} - {before[axis]})"
            terms.append(index if symbols[axis] == "1" else f"{index} * {symbols[axis]}")
        return " + ".join(terms)

    def _is_beyond(self, axis: str) -> bool:
        """Does an axis of the grid have more elements than 32 bits number? (A loop's index has the bits of its end.)"""
        plan = self.plan[axis]
        return plan.role is Role.GRID and plan.wide and self.sizes[axis] > REACH

    def at(self, axis: str, dims: Sequence[Dim], suffix: str = "", *, turned: bool = False) -> str:
        """The axis's index, as it broadcasts in a tile of `dims`. suffix: a conversion of it. turned: counted from the
        axis's end"""
        index = self.names.index[axis] + suffix
        index = index + self.broadcast(self.dim_of[axis], dims) if self.plan[axis].wide else index
        return f"({self.names.size[axis]} - 1 - {index})" if turned else index

    def _check_strides(self, tensor: Tensor, strides: Mapping[str, int], symbols: Mapping[str, str]) -> None:
        """A stride that is written as a number must not vary with a size that lies inside of it. What a program reads
        has been looked at with other sizes (units/ranged.py): there a number is the same with all of them."""
        if tensor.source:
            return
        for inner in (axis for axis in tensor.axes if axis in self.plan and self.plan[axis].dynamic):
            for axis in (a for a in symbols if a != inner and 0 < strides[inner] < strides[a]):
                if self.names.size[inner] not in symbols[axis].split(" * "):
                    raise Rejected(f"{tensor.name} has gaps around axis {inner}, whose size varies.")

    def masks(self, dims: Sequence[Dim]) -> str:
        """Conjunction of the masks of a tile's padded dimensions, "" when there is none."""
        return " & ".join(self.mask[dim] + self.broadcast(dim, dims) for dim in dims if dim.padded(self.plan))


def subscript(have: Sequence[Dim], want: Sequence[Dim]) -> str:
    if not have or tuple(have) == tuple(want):
        return ""
    return "[" + ", ".join(":" if dim in have else "None" for dim in want) + "]"


def stride_symbols(
    tensor: Tensor, sizes: Mapping[str, int], names: Mapping[str, str], varying: Collection[str] = ()
) -> dict[str, str]:
    """Each axis's stride: a product of sizes where the tensor has no gaps up to that axis, else a number.

    varying: axes whose sizes vary. The stride of an axis around one of them is a product also where there is a gap
             inside, as between the rows of a part of a tensor's columns
    """
    strides = tensor.axis_strides(sizes)
    lengths = {axis: (names[axis], sizes[axis]) for axis in tensor.axes if axis in names}
    for run in tensor.runs(sizes):
        if run.window is not None and run.window.lookup is not None:
            rows = run.window.lookup.rows
            lengths |= dict.fromkeys(run.axes, (str(rows), rows))
        elif run.window is not None and not set(varying).isdisjoint(run.axes):
            (axis,) = run.axes
            lengths[axis] = _extent(run, axis, names, sizes), run.extent
    within = {lengths[axis][0] for axis in varying} - {str(run.extent) for run in tensor.runs(sizes)}
    symbols: dict[str, str] = {}
    inner, packed, gap = list[str](), 1, False
    for axis in sorted((a for a in tensor.axes if sizes[a] > 1), key=lambda a: abs(strides[a])):
        text, length = lengths[axis]
        symbols[axis] = str(strides[axis])
        if strides[axis] == packed:
            if not gap or not within.isdisjoint(inner):
                symbols[axis] = " * ".join(reversed(inner)) or "1"
            inner.append(text)
            packed *= length
        elif varying and strides[axis] > packed and within.isdisjoint(inner):
            inner, packed, gap = [symbols[axis], text], strides[axis] * length, True
    return symbols


def _extent(run: Run, axis: str, names: Mapping[str, str], sizes: Mapping[str, int]) -> str:
    """Elements of a dimension that a window slides along. names: of sizes"""
    assert run.window is not None
    size, by = names[axis], run.window.by
    if by:
        return (
            names[by] if run.window.keeps else f"({plus(f'{size} - {names[by]}', -sum(run.window.fixed(sizes[by])))})"
        )
    if run.window.keeps:
        return str(run.extent)
    more = run.window.rest - run.window.pad
    return f"({plus(size, more)})" if more else size


def begins(window: Window, axis: str, names: Mapping[str, str], largest: Mapping[str, int]) -> str:
    """The pad of a window that begins by a size. axis: of its positions. names, largest: of sizes"""
    if window.by and window.keeps:
        return f"({plus(f'{names[axis]} - {names[window.by]}', window.rest)})"
    if window.by:
        first, _ = window.fixed(largest[window.by])
        return f"({plus(names[window.by], first)})" if first else names[window.by]
    before = plus(names[axis], window.pad - largest[axis])
    return f"({before})" if " " in before else before


def _factor(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({' * '.join(names)})"


def _line(target: str, text: str) -> Line:
    return Line(target, Expr((text,)), prunable=True)
