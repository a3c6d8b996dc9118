"""Reads the text form of text.py. Every error is one sentence with its line number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, cast

from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph, ThreadGraph
from mugraph.ir.ops import ARITY, LARGEST, REDUCING, Kind, Op
from mugraph.ir.packing import packed
from mugraph.ir.placement import placement
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import ITEMSIZE, DType, Tensor, contiguous_strides
from mugraph.ir.text_printer import WINDOW_FIGURES, maps
from mugraph.ir.windows import Window


class TextError(ValueError):
    """The text is no program; the message starts with the line number (1-based)."""


NAME = r"[^\s,()\[\]{}=:/*\"]+"
OP = re.compile(rf"({NAME})\[([^\]]*)\](: f32)? = ({NAME})\(([^()]*)\)(?:  (.+))?")
TENSOR = re.compile(rf"({NAME}) ({NAME})\[([^\]]*)\](?: strides \[([^\]]*)\])?(?: from (\".*\"))?")
WINDOW = re.compile(
    rf"window ({NAME}(?:\*{NAME})*) over ({NAME}(?:\*{NAME})*)"
    + "".join(rf"(?: {name} (-?\d+))?" for name in WINDOW_FIGURES)
)
CALL = re.compile(rf"({NAME})\(([^()]*)\)(?: (.*))?")
OUTPUT = re.compile(rf"({NAME}) -> (.*)")
LAUNCH = re.compile(r"warps=(\d+) stages=(\d+)( swap)?")


@dataclass(frozen=True)
class Line:
    number: int
    indent: int
    text: str

    @property
    def keyword(self) -> str:
        return "" if OP.fullmatch(self.text) else self.text.split(" ", 1)[0]

    @property
    def rest(self) -> str:
        return self.text.partition(" ")[2]

    def fail(self, message: str) -> NoReturn:
        raise TextError(f"line {self.number}: {message}")

    def match(self, pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
        found = pattern.fullmatch(text)
        return found if found else self.fail(f"{text!r} is not {what}")

    def integer(self, text: str) -> int:
        return int(text) if re.fullmatch(r"-?\d+", text) else self.fail(f"{text!r} is no integer")


def parse_mugraph(text: str) -> MuGraph:
    """Raises TextError."""
    lines = _lines(text, "mugraph")
    head = lines.take("mugraph")
    found = head.match(CALL, head.rest, "a name, inputs in parentheses, `->` and outputs")
    name, inputs, tail = found.groups()
    if not (tail or "").startswith("-> "):
        head.fail("the outputs are missing: `mugraph name(inputs) -> outputs`")
    sizes = _axes(lines)
    tensors = _tensors(lines, sizes)
    kernels: list[GraphKernel | LibraryKernel] = []
    while lines.has("kernel", "library"):
        is_graph = lines.has("kernel")
        kernels.append(_kernel(lines, sizes, tensors) if is_graph else _library(lines, sizes, tensors))
    lines.end()
    return MuGraph(name, sizes, tuple(tensors.values()), _names(inputs), _names(tail[3:]), tuple(kernels))


def parse_program(text: str) -> TensorProgram:
    """Raises TextError."""
    lines = _lines(text, "program")
    name = lines.take("program").rest
    least: dict[str, int] = {}
    sizes = _axes(lines, least)
    tensors = _tensors(lines, sizes)
    ops: list[Op] = []
    while lines.has(""):
        line = lines.take("")
        op, shown = _op(line)
        if shown:
            line.fail("an operator of a tensor program has no maps")
        ops.append(op)
    outputs: dict[str, Tensor] = {}
    while lines.has("output"):
        line = lines.take("output")
        value, tensor = line.match(OUTPUT, line.rest, "`value -> tensor`").groups()
        outputs[value] = _tensor(line, tensor, sizes)
    lines.end()
    return TensorProgram(name, sizes, tuple(tensors.values()), tuple(ops), outputs, least)


def parse_block(text: str) -> BlockGraph:
    """Raises TextError."""
    lines = _lines(text, "block")
    name = lines.take("block").rest
    sizes = _axes(lines)
    tensors = _tensors(lines, sizes)
    loops, _ = _loops(lines)
    body = _body(lines)
    lines.end()
    block = BlockGraph(name, sizes, tuple(tensors.values()), tuple(placed.op for placed in body), loops)
    _check_derived(block, None, body)
    return block


@dataclass
class _Lines:
    lines: list[Line]
    last: int
    at: int = 0

    def has(self, *keywords: str) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].keyword in keywords

    def take(self, keyword: str) -> Line:
        if not self.has(keyword):
            where = self.lines[self.at] if self.at < len(self.lines) else Line(self.last, 0, "the end")
            where.fail(f"expected `{keyword}`, found {where.text!r}")
        self.at += 1
        return self.lines[self.at - 1]

    def end(self) -> None:
        if self.at < len(self.lines):
            line = self.lines[self.at]
            line.fail(f"{line.text!r} is not understood here")


def _lines(text: str, keyword: str) -> _Lines:
    lines = [
        Line(number, len(raw) - len(raw.lstrip(" ")), raw.strip())
        for number, raw in enumerate(text.splitlines(), 1)
        if raw.strip() and not raw.lstrip().startswith("#")
    ]
    if not lines:
        raise TextError(f"line 1: expected `{keyword}`, found nothing")
    return _Lines(lines, lines[-1].number)


def _names(text: str, separator: str = ",") -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator)) if text.strip() else ()


def _axes(lines: _Lines, least: dict[str, int] | None = None) -> dict[str, int]:
    """least: takes the lower ends of ranges, where they may stand"""
    sizes: dict[str, int] = {}
    while lines.has("axes"):
        line = lines.take("axes")
        for part in _names(line.rest):
            axis, _, size = part.partition("=")
            if axis in sizes:
                line.fail(f"axis {axis} has two sizes")
            if least is not None and ".." in size:
                low, _, size = size.partition("..")
                least[axis] = line.integer(low)
            sizes[axis] = line.integer(size)
    return sizes


def _tensors(lines: _Lines, sizes: Mapping[str, int]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    while lines.has("tensor"):
        line = lines.take("tensor")
        tensor = _tensor(line, line.rest, sizes)
        if tensor.name in tensors:
            line.fail(f"there are two tensors {tensor.name}")
        tensors[tensor.name] = tensor
    return tensors


def _tensor(line: Line, text: str, sizes: Mapping[str, int]) -> Tensor:
    found = line.match(TENSOR, text, 'a tensor: `name dtype[dims] strides [..] from ".."`')
    name, dtype, shown, strides, source = cast("tuple[str, str, str, str | None, str | None]", found.groups())
    if dtype not in ITEMSIZE:
        line.fail(f"{dtype} is no element type; there are {', '.join(ITEMSIZE)}")
    windows: list[Window] = []
    dims = tuple(_dimension(line, dim, number, windows) for number, dim in enumerate(_names(shown)))
    for axis in (axis for dim in dims for axis in dim):
        if axis not in sizes:
            line.fail(f"axis {axis} of tensor {name} has no size")
    steps = contiguous_strides(dims, sizes)
    if strides is not None:
        steps = tuple(line.integer(part) for part in _names(strides))
    if len(steps) != len(dims):
        line.fail(f"tensor {name} has {len(dims)} dimensions and {len(steps)} strides")
    return Tensor(name, dims, steps, cast("DType", dtype), _string(line, source) if source else "", tuple(windows))


def _dimension(line: Line, text: str, number: int, windows: list[Window]) -> tuple[str, ...]:
    """Its axes. A window is put with the others."""

    def axes(part: str) -> tuple[str, ...]:
        return () if part == "1" else _names(part, "*")

    if not text.startswith("window "):
        return axes(text)
    found = line.match(WINDOW, text, "a window: `window p over r stride 2 pad 1`").groups()
    positions, taps = (axes(part) for part in found[:2])
    figures = {name: int(value) for name, value in zip(WINDOW_FIGURES, found[2:], strict=True) if value is not None}
    windows.append(Window(number, len(taps), **figures))
    return (*positions, *taps)


def _op(line: Line) -> tuple[Op, str]:
    """The operator, and the maps shown behind it."""
    name, axes, f32, called, given, shown = line.match(OP, line.text, "an operator").groups()
    kind, _, fn = called.partition(".")
    if kind not in Kind.__members__.values() or (kind == Kind.UNARY or called == f"{Kind.ACCUM}.{LARGEST}") != bool(fn):
        line.fail(f"{called} is no operator; there are {', '.join(Kind)} (unary as unary.silu)")
    kind = Kind(kind)
    arguments = list(_names(given))
    over: tuple[str, ...] = ()
    tensor, value = "", 0.0
    if kind is Kind.MASK:
        return _mask(line, name, _names(axes), arguments), shown or ""
    if kind in REDUCING or kind is Kind.ACCUM:
        if not arguments or not arguments[-1].startswith("over="):
            line.fail(f"{kind} needs `over=` as its last argument")
        over = _names(arguments.pop().removeprefix("over="), "*")
    elif kind in (Kind.LOAD, Kind.STORE, Kind.CONST):
        if not arguments:
            line.fail(f"{kind} needs an argument")
        tensor = arguments.pop()
        if kind is Kind.CONST:
            value, tensor = _number(line, tensor), ""
    if len(arguments) != ARITY[kind]:
        line.fail(f"{kind} takes {ARITY[kind]} values, not {len(arguments)}")
    return Op(name, kind, tuple(arguments), _names(axes), over, tensor, value, fn, bool(f32)), shown or ""


def _mask(line: Line, name: str, axes: tuple[str, ...], arguments: list[str]) -> Op:
    wanted = ("rows", "columns", "diagonal")
    given = {name: value for name, _, value in (argument.partition("=") for argument in arguments)}
    if tuple(given) != wanted:
        line.fail(f"{Kind.MASK} needs {', '.join(f'`{argument}=`' for argument in wanted)}")
    rows, columns = _names(given["rows"], "*"), _names(given["columns"], "*")
    return Op(name, Kind.MASK, (), axes, value=float(line.integer(given["diagonal"])), rows=rows, columns=columns)


def _number(line: Line, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        line.fail(f"{text!r} is no number")


@dataclass(frozen=True)
class _Placed:
    """An operator and the derived text around it, to be checked once the whole graph is known."""

    op: Op
    line: Line
    around: tuple[str, ...]
    tiles: tuple[str, ...]
    shown: str


def _body(lines: _Lines) -> list[_Placed]:
    placed: list[_Placed] = []
    open_loops: list[tuple[int, str, str]] = []
    while lines.has("", "for"):
        line = lines.take("for") if lines.has("for") else lines.take("")
        while open_loops and open_loops[-1][0] >= line.indent:
            open_loops.pop()
        if line.keyword == "for":
            axis, _, tile = line.rest.removesuffix(":").partition("/")
            open_loops.append((line.indent, axis, tile))
            continue
        op, shown = _op(line)
        around = tuple(axis for _, axis, _ in open_loops)
        placed.append(_Placed(op, line, around, tuple(tile for _, _, tile in open_loops), shown))
    return placed


def _check_derived(block: BlockGraph, schedule: Schedule | None, body: list[_Placed]) -> None:
    where = placement(block)
    tensors = {tensor.name: tensor for tensor in block.tensors}
    tiles = schedule.loops if schedule else dict[str, int]()
    known = set(block.sizes).issuperset(axis for placed in body for axis in (*placed.op.axes, *placed.op.over))
    found = packed(block, schedule) if schedule and known else ()
    for placed in body:
        op, line = placed.op, placed.line
        if op.tensor and op.tensor not in tensors:
            line.fail(f"there is no tensor {op.tensor} in kernel {block.name}")
        if op.kind is not Kind.CONST and placed.around != where[op.name]:
            line.fail(f"{op.name} runs {_loops_named(where[op.name])}, not {_loops_named(placed.around)}")
        if placed.tiles != tuple(str(tiles.get(axis, "")) for axis in placed.around):
            line.fail(f"the loops around {op.name} show tiles that are not those of `loops`")
        expected = maps(op, tensors, schedule, placed.around, found).strip()
        if placed.shown.strip() != expected:
            line.fail(f"the maps of {op.name} follow from its axes: {expected or 'none'}, not {placed.shown or 'none'}")


def _loops_named(around: tuple[str, ...]) -> str:
    return "inside " + " and ".join(f"`for {axis}`" for axis in around) if around else "outside all loops"


@dataclass
class _LoopReader:
    """Recursive descent over `n/64(k/32, h)`."""

    line: Line
    tokens: list[str]
    tiles: dict[str, int] = field(default_factory=dict[str, int])

    def body(self) -> tuple[Loop, ...]:
        loops = [self.loop()]
        while self.tokens and self.tokens[0] == ",":
            self.tokens.pop(0)
            loops.append(self.loop())
        return tuple(loops)

    def loop(self) -> Loop:
        if not self.tokens or self.tokens[0] in "(),":
            self.line.fail("a loop is missing its axis")
        axis, _, tile = self.tokens.pop(0).partition("/")
        if tile:
            self.tiles[axis] = self.line.integer(tile)
        if not self.tokens or self.tokens[0] != "(":
            return Loop(axis)
        self.tokens.pop(0)
        body = self.body()
        if not self.tokens or self.tokens.pop(0) != ")":
            self.line.fail(f"the body of loop {axis} is not closed")
        return Loop(axis, body)


def _loops(lines: _Lines) -> tuple[tuple[Loop, ...], dict[str, int]]:
    if not lines.has("loops"):
        return (), {}
    line = lines.take("loops")
    reader = _LoopReader(line, re.findall(r"[(),]|[^\s(),]+", line.rest))
    loops = reader.body()
    if reader.tokens:
        line.fail(f"{reader.tokens[0]!r} is left over after the loops")
    return loops, reader.tiles


def _library(lines: _Lines, outer: dict[str, int], known: Mapping[str, Tensor]) -> LibraryKernel:
    """Operators below it, if any, say what it computes."""
    line = lines.take("library")
    name, called, tail = line.match(CALL, line.rest, "a library kernel").groups()
    found = line.match(re.compile(r'-> (.*?) = (".*")'), tail or "", '`-> outputs = "call"`')
    call, inputs, outputs = _string(line, found[2]), _names(called), _names(found[1])
    if not lines.has("axes", "tensor", ""):
        return LibraryKernel(name, call, inputs, outputs)
    sizes, tensors = _borders(line, lines, (*inputs, *outputs), outer, known)
    body = _body(lines)
    block = BlockGraph(name, sizes, tensors, tuple(placed.op for placed in body))
    _check_derived(block, None, body)
    return LibraryKernel(name, call, inputs, outputs, block)


def _borders(
    head: Line, lines: _Lines, names: tuple[str, ...], outer: dict[str, int], known: Mapping[str, Tensor]
) -> tuple[dict[str, int], tuple[Tensor, ...]]:
    """A kernel's own axes and tensors, or the kernel graph's."""
    sizes = _axes(lines) if lines.has("axes") else outer
    own = _tensors(lines, sizes)
    for name in names:
        if name not in own and name not in known:
            head.fail(f"there is no tensor {name}")
    return sizes, tuple(own.get(name) or known[name] for name in names)


def _string(line: Line, text: str) -> str:
    try:
        return cast("str", json.loads(text))
    except json.JSONDecodeError:
        line.fail(f"{text} is no string")


def _kernel(lines: _Lines, outer: dict[str, int], known: Mapping[str, Tensor]) -> GraphKernel:
    head = lines.take("kernel")
    name, called, tail = head.match(CALL, head.rest, "a kernel: `name(tensors)`").groups()
    sizes, tensors = _borders(head, lines, _names(called), outer, known)
    grid = _grid(lines.take("grid")) if lines.has("grid") else ()
    loops, tiles = _loops(lines)
    launch = lines.take("launch")
    warps, stages, swap = launch.match(LAUNCH, launch.rest, "`warps=4 stages=3` and perhaps `swap`").groups()
    schedule = Schedule(grid, tiles, bool(swap), int(warps), int(stages))
    body = _body(lines)
    block_name = (tail or f"block {name}").removeprefix("block ")
    block = BlockGraph(block_name, sizes, tensors, tuple(placed.op for placed in body), loops)
    _check_derived(block, schedule, body)
    return GraphKernel(name, block, schedule, tuple(_threads(lines, block)))


def _grid(line: Line) -> tuple[tuple[str, int], ...]:
    parts = (part.partition("/") for part in _names(line.rest))
    return tuple((axis, line.integer(tile)) for axis, _, tile in parts)


def _threads(lines: _Lines, block: BlockGraph) -> Iterator[ThreadGraph]:
    ops = {op.name: op for op in block.ops}
    while lines.has("thread"):
        line = lines.take("thread")
        name, inputs, tail = line.match(CALL, line.rest, "a thread graph").groups()
        members = _names((tail or "").removeprefix("= "))
        for member in members:
            if member not in ops:
                line.fail(f"thread graph {name} holds {member}, which the block graph does not")
        yield ThreadGraph(name, _names(inputs), tuple(ops[member] for member in members))
