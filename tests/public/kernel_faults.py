"""Faults that are seeded into the text of a kernel: one small change each."""

from __future__ import annotations

import ast
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Change = tuple[str, str, Callable[[], None]]
"""Kind, what, and the change of a copy of the module."""

_OTHER: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}  # fmt: skip
_CALLS = {"max": "min", "maximum": "minimum", "exp": "exp2", "rsqrt": "sqrt", "sigmoid": "exp", "sqrt": "exp"}


@dataclass(frozen=True)
class Fault:
    kind: str
    what: str
    text: str


def faults(text: str, seed: str) -> Iterator[Fault]:
    """In a random order in which kinds alternate."""
    rng = random.Random(seed)
    sites: dict[str, list[int]] = {}
    for number, (kind, _, _) in enumerate(_changes(ast.parse(text))):
        sites.setdefault(kind, []).append(number)
    for every in sites.values():
        rng.shuffle(every)
    kinds = list(sites)
    rng.shuffle(kinds)
    while kinds:
        for kind in list(kinds):
            number = sites[kind].pop()
            if not sites[kind]:
                kinds.remove(kind)
            module = ast.parse(text)
            _, what, change = list(_changes(module))[number]
            change()
            changed = ast.unparse(ast.fix_missing_locations(module))
            if changed != ast.unparse(ast.parse(text)):
                yield Fault(kind, what, changed)


def _changes(module: ast.Module) -> Iterator[Change]:
    for function in module.body:
        if isinstance(function, ast.FunctionDef):
            is_kernel = any("jit" in ast.unparse(one) for one in function.decorator_list)
            yield from _of_kernel(function) if is_kernel else _of_launcher(function)


def _set(node: ast.AST, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, name, value)


def _of_kernel(function: ast.FunctionDef) -> Iterator[Change]:
    strides = sorted({one.arg for one in function.args.args if "stride" in one.arg.lower()})
    for node in (one for statement in function.body for one in ast.walk(statement)):
        said = ast.unparse(node)[:70] if isinstance(node, ast.expr | ast.stmt) else ""
        match node:
            case ast.Call(ast.Attribute(attr="load" | "store"), _, keywords):
                for keyword in keywords:
                    if keyword.arg == "mask":
                        kept = [one for one in keywords if one.arg not in ("mask", "other")]
                        yield "mask", f"without its mask: {said}", _set(node, "keywords", kept)
                    if keyword.arg == "other":
                        yield "mask", f"another `other`: {said}", _set(keyword, "value", ast.Constant(1.0))
            case ast.Call(ast.Attribute(attr="zeros") as called, [shape, *_]):
                yield "accumulator", f"begins with 1: {said}", _full(node, called, shape)
            case ast.Call(ast.Attribute(attr=attr) as called) if attr in _CALLS:
                yield "function", f"{_CALLS[attr]} for {attr}: {said}", _set(called, "attr", _CALLS[attr])
            case ast.Call(ast.Attribute(attr="program_id"), [ast.Constant(value=int(axis))]):
                yield "block", f"another axis: {said}", _set(node, "args", [ast.Constant(1 - min(axis, 1))])
            case ast.Compare(_, [ast.Lt()], [bound]):
                for step in (1, -1):
                    yield (
                        "bound",
                        f"{step:+}: {said}",
                        _set(node, "comparators", [ast.BinOp(bound, ast.Add(), ast.Constant(step))]),
                    )
            case ast.AugAssign(_, ast.Add(), _):
                yield "accumulator", f"subtracted: {said}", _set(node, "op", ast.Sub())
            case ast.AugAssign(_, ast.Mult(), _):
                yield "rescale", f"left out: {said}", _set(node, "value", ast.Constant(1))
            case ast.BinOp(_, ast.Mult(), ast.Name(id=name)) if name in strides and len(strides) > 1:
                other = strides[(strides.index(name) + 1) % len(strides)]
                yield "stride", f"{other} for {name}: {said}", _set(node, "right", ast.Name(other, ast.Load()))
            case ast.BinOp(_, op, _) if type(op) in _OTHER:
                yield "operator", f"another operator: {said}", _set(node, "op", _OTHER[type(op)]())
            case ast.Constant(value=float(value)) if value == value and abs(value) != float("inf"):
                yield "constant", f"{value} and a half", _set(node, "value", value + 0.5)
            case ast.Call(ast.Name(id="range"), [start, stop, *rest]):
                shorter = ast.BinOp(stop, ast.Sub(), rest[0] if rest else ast.Constant(1))
                yield "loop", f"ends early: {said}", _set(node, "args", [start, shorter, *rest])
            case _:
                pass


def _full(node: ast.Call, called: ast.Attribute, shape: ast.expr) -> Callable[[], None]:
    def change() -> None:
        dtype = [one.value for one in node.keywords if one.arg == "dtype"] or node.args[1:]
        called.attr, node.args, node.keywords = "full", [shape, ast.Constant(1.0), *dtype], []

    return change


def _of_launcher(function: ast.FunctionDef) -> Iterator[Change]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            grid = node.func.slice
            for at, size in enumerate(grid.elts if isinstance(grid, ast.Tuple) else ()):
                less = ast.BinOp(size, ast.Sub(), ast.Constant(1))
                yield "grid", f"one block less: {ast.unparse(grid)}", _element(grid, at, less)
            places = [at for at, one in enumerate(node.args) if "stride" in ast.unparse(one)]
            for one, other in itertools.pairwise(places):
                yield "stride", f"arguments {one} and {other} exchanged", _exchanged(node.args, one, other)


def _element(grid: ast.expr, at: int, value: ast.expr) -> Callable[[], None]:
    def change() -> None:
        assert isinstance(grid, ast.Tuple)
        grid.elts[at] = value

    return change


def _exchanged(values: list[ast.expr], one: int, other: int) -> Callable[[], None]:
    def change() -> None:
        values[one], values[other] = values[other], values[one]

    return change
