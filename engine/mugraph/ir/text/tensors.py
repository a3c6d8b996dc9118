"""Reads axes and tensors of the text form: `axes b=16, h=1024` and `tensor x f16[b, h]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from mugraph.ir.calls import Corner
from mugraph.ir.dtypes import COMPARED, ITEMSIZE, DType
from mugraph.ir.lookups import Lookup
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.ir.text.lines import NAME, Line, Lines, listed
from mugraph.ir.text.printer import WINDOW_FIGURES, WINDOW_MARKS
from mugraph.ir.windows import Window

_STRING = r'"(?:[^"\\]|\\.)*"'
TENSOR = re.compile(
    rf"({NAME}) ({NAME})\[([^\]]*)\](?: strides \[([^\]]*)\])?(?: skew (\d+))?(?: from ({_STRING}))?(?: (by .*))?"
)
LOOKUP = re.compile(rf"by ({NAME}) ({NAME}) of (\d+)( wraps)?(?: from ({_STRING}))?")
WINDOW = re.compile(
    rf"window ({NAME}(?:\*{NAME})*) over ({NAME}(?:\*{NAME})*)"
    + "".join(rf"(?: {name} (-?\d+))?" for name in WINDOW_FIGURES)
    + "".join(rf"( {name})?" for name in WINDOW_MARKS)
    + rf"(?: keeps (first|last))?(?: by ({NAME})( behind)?)?"
)


def read_axes(lines: Lines, least: dict[str, int] | None = None) -> dict[str, int]:
    """least: takes the lower ends of ranges, where they may stand"""
    sizes: dict[str, int] = {}
    while lines.has("axes"):
        line = lines.take("axes")
        for part in listed(line.rest):
            axis, _, size = part.partition("=")
            if axis in sizes:
                line.fail(f"axis {axis} has two sizes")
            if least is not None and ".." in size:
                low, _, size = size.partition("..")
                least[axis] = line.integer(low)
            sizes[axis] = line.integer(size)
    return sizes


def read_together(lines: Lines, least: Mapping[str, int]) -> dict[str, str]:
    """Which of the axes that vary have one size. least: those axes"""
    sized: dict[str, str] = {}
    while lines.has("together"):
        line = lines.take("together")
        for group in listed(line.rest):
            first, *others = group.split()
            for axis in (first, *others):
                if axis not in least or axis in sized:
                    line.fail(f"axis {axis} is no axis with a range, or is here twice")
                sized[axis] = first
    return sized


def read_tensors(lines: Lines, sizes: Mapping[str, int]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    while lines.has("tensor"):
        line = lines.take("tensor")
        tensor = read_tensor(line, line.rest, sizes)
        if tensor.name in tensors:
            line.fail(f"there are two tensors {tensor.name}")
        tensors[tensor.name] = tensor
    return tensors


def read_tensor(line: Line, text: str, sizes: Mapping[str, int]) -> Tensor:
    found = line.match(TENSOR, text, 'a tensor: `name dtype[dims] strides [..] from ".."`')
    parts = cast("tuple[str, str, str, str | None, str | None, str | None, str | None]", found.groups())
    name, dtype, shown, strides, skew, source, index = parts
    if dtype not in ITEMSIZE:
        line.fail(f"{dtype} is no element type; there are {', '.join(ITEMSIZE)}")
    windows: list[Window] = []
    lookup = None if index is None else _lookup(line, index)
    dims = tuple(_dimension(line, dim, number, windows, lookup) for number, dim in enumerate(listed(shown)))
    if lookup is not None and all(window.lookup is None for window in windows):
        line.fail(f"tensor {name} has no dimension of rows for its index")
    for axis in (axis for dim in dims for axis in dim):
        if axis not in sizes:
            line.fail(f"axis {axis} of tensor {name} has no size")
    steps = contiguous_strides(dims, sizes)
    if strides is not None:
        steps = tuple(line.integer(part) for part in listed(strides))
    if len(steps) != len(dims):
        line.fail(f"tensor {name} has {len(dims)} dimensions and {len(steps)} strides")
    source = line.string(source) if source else ""
    return Tensor(name, dims, steps, cast("DType", dtype), source, tuple(windows), line.integer(skew or "0"))


def _lookup(line: Line, text: str) -> Lookup:
    found = line.match(LOOKUP, text, 'an index: `by name dtype of rows wraps from ".."`').groups()
    name, dtype, rows, wraps, source = cast("tuple[str, str, str, str | None, str | None]", found)
    if dtype not in COMPARED:
        line.fail(f"an index is of {' or '.join(COMPARED)}, not {dtype}")
    return Lookup(name, cast("DType", dtype), int(rows), wraps is not None, line.string(source) if source else "")


def _dimension(
    line: Line, text: str, number: int, windows: list[Window], lookup: Lookup | None = None
) -> tuple[str, ...]:
    """Its axes. A window is put with the others."""

    def axes(part: str) -> tuple[str, ...]:
        return () if part == "1" else listed(part, "*")

    if text.startswith("rows "):
        if lookup is None:
            line.fail("a dimension of rows needs an index: `by name dtype of rows`")
        windows.append(Window(number, 0, lookup=lookup))
        return axes(text.removeprefix("rows "))
    if not text.startswith("window "):
        return axes(text)
    found = line.match(WINDOW, text, "a window: `window p over r stride 2 pad 1`").groups()
    positions, taps = (axes(part) for part in found[:2])
    figures = {name: int(value) for name, value in zip(WINDOW_FIGURES, found[2:-5], strict=True) if value is not None}
    edge, reverse = (word is not None for word in found[-5:-3])
    keeps = cast("Corner", found[-3] or "")
    by, behind = found[-2] or "", found[-1] is not None
    plain = Window(number, len(taps), edge=edge, reverse=reverse, keeps=keeps, by=by, behind=behind)
    windows.append(replace(plain, **figures))
    return (*positions, *taps)
