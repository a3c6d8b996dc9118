"""Reads the operators of the text form with the loops around them, and checks what is shown but follows from names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.calls import Corner
from mugraph.ir.ops import Op, Tf32
from mugraph.ir.packing import packed
from mugraph.ir.placement import placement
from mugraph.ir.text.lines import OP, Line, Lines, listed
from mugraph.ir.text.printer import PLACES, maps
from mugraph.kinds import Kind, accumulators, find_kind


@dataclass(frozen=True)
class Placed:
    """An operator and the derived text around it, to be checked once the whole graph is known."""

    op: Op
    line: Line
    around: tuple[str, ...]
    tiles: tuple[str, ...]
    shown: str


def read_body(lines: Lines) -> list[Placed]:
    """Operators up to a line of another kind, in their order."""
    placed: list[Placed] = []
    open_loops: list[tuple[int, str, str]] = []
    while lines.has("", "for"):
        line = lines.take("for") if lines.has("for") else lines.take("")
        while open_loops and open_loops[-1][0] >= line.indent:
            open_loops.pop()
        if line.keyword == "for":
            axis, _, tile = line.rest.removesuffix(":").partition("/")
            open_loops.append((line.indent, axis, tile))
            continue
        op, shown = read_op(line)
        around = tuple(axis for _, axis, _ in open_loops)
        placed.append(Placed(op, line, around, tuple(tile for _, _, tile in open_loops), shown))
    return placed


def read_op(line: Line) -> tuple[Op, str]:
    """The operator, and the maps shown behind it."""
    name, axes, marks, called, given, shown = line.match(OP, line.text, "an operator").groups()
    kind_name, _, fn = called.partition(".")
    kind = find_kind(kind_name)
    if kind is None or not _may_have(kind, fn):
        line.fail(f"{called} is no operator; there are {', '.join(map(str, Kind))} (unary as unary.silu)")
    arguments = list(listed(given))
    over: tuple[str, ...] = ()
    tensor, value = "", 0.0
    if kind.of_places:
        return replace(_of_places(line, name, kind, listed(axes), arguments), fn=fn), shown or ""
    if "over" in kind.fields:
        if not arguments or not arguments[-1].startswith("over="):
            line.fail(f"{kind} needs `over=` as its last argument")
        over = listed(arguments.pop().removeprefix("over="), "*")
    elif "tensor" in kind.fields or kind is Kind.CONST:
        if not arguments:
            line.fail(f"{kind} needs an argument")
        tensor = arguments.pop()
        if kind is Kind.CONST:
            value, tensor = line.decimal(tensor), ""
    if len(arguments) != kind.arity:
        line.fail(f"{kind} takes {kind.arity} values, not {len(arguments)}")
    f32, tf32 = _marks(line, kind, (marks or "").split())
    op = Op(name, kind, tuple(arguments), listed(axes), over, tensor, value, fn, f32, tf32=tf32)
    return op, shown or ""


def _may_have(kind: Kind, fn: str) -> bool:
    """Is there such an operator of this kind?"""
    if kind is Kind.ACCUM:
        return fn in accumulators()
    if kind is Kind.MASK:
        return fn in get_args(Corner)
    return ("fn" in kind.fields) == bool(fn)


def _marks(line: Line, kind: Kind, marks: list[str]) -> tuple[bool, Tf32]:
    """The precision marks: whether it is computed in float32, and by which setting it may take TF32."""
    known: dict[str, Tf32] = {f"tf32.{setting}": setting for setting in get_args(Tf32) if setting}
    f32 = marks[:1] == ["f32"]
    rest = marks[f32:]
    if rest and not (rest[0] in known and kind.contracts and len(rest) == 1):
        line.fail(f"`{' '.join(rest)}` is no precision of {kind}; there are `f32` and, of products, {', '.join(known)}")
    return f32, known[rest[0]] if rest else ""


def _of_places(line: Line, name: str, kind: Kind, axes: tuple[str, ...], arguments: list[str]) -> Op:
    """A mask, or a position."""
    wanted = PLACES[kind]
    given = {name: value for name, _, value in (argument.partition("=") for argument in arguments)}
    if tuple(given) != wanted:
        line.fail(f"{kind} needs {', '.join(f'`{argument}=`' for argument in wanted)}")
    rows, columns = (listed(given.get(side, ""), "*") for side in ("rows", "columns"))
    return Op(name, kind, (), axes, value=float(line.integer(given[wanted[-1]])), rows=rows, columns=columns)


def check_derived(block: BlockGraph, schedule: Schedule | None, body: list[Placed]) -> None:
    """Raises TextError where loops, tiles or maps shown around operators are not those that follow from their axes."""
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
