"""Random small expressions over arrays with named axes, what they are as programs, and changes to them.

An expression is a nested tuple: ("x",) an input, ("const", 2.0), ("add", a, b), ("sum", a, "j"), ("exp", a) and so on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor, contiguous_strides

Node = tuple[Any, ...]
INPUTS = {"x": ("i", "j"), "y": ("i", "j"), "v": ("j",), "u": ("i",)}
BINARY = {"add": Kind.ADD, "mul": Kind.MUL, "div": Kind.DIV}
UNARY = {"exp": Kind.EXP, "sqrt": Kind.SQRT}
CONSTANTS = (-1.0, 2.0, 0.5, 3.0, -2.0, 0.25, 1.0)


def axes(node: Node) -> frozenset[str]:
    match node:
        case (("add" | "mul" | "div"), a, b):
            return axes(a) | axes(b)
        case ("sum", a, axis):
            return axes(a) - {axis}
        case ("const", _):
            return frozenset()
        case (("exp" | "sqrt"), a):
            return axes(a)
        case (name,):
            return frozenset(INPUTS[name])
        case _:
            raise ValueError(node)


def drawn(rng: random.Random, depth: int, wanted: frozenset[str] = frozenset()) -> Node:
    """An expression of about this depth."""
    if depth == 0 or rng.random() < 0.12:
        return (rng.choice(list(INPUTS)),) if rng.random() < 0.85 else ("const", rng.choice(CONSTANTS))
    match rng.choices(("add", "mul", "div", "sum", "exp", "sqrt"), (30, 30, 12, 16, 7, 5))[0]:
        case ("add" | "mul" | "div") as op:
            return (op, drawn(rng, depth - 1), drawn(rng, depth - 1))
        case "sum":
            inner = drawn(rng, depth - 1)
            along = sorted(axes(inner))
            return ("sum", inner, rng.choice(along)) if along else inner
        case op:
            return (op, drawn(rng, depth - 1))


def size(node: Node) -> int:
    return 1 + sum(size(part) for part in node[1:] if isinstance(part, tuple))


def has(node: Node, op: str) -> bool:
    return node[0] == op or any(has(part, op) for part in node[1:] if isinstance(part, tuple))


# --- changes


def rewritten(rng: random.Random, node: Node) -> Node:
    """One place changed: by an identity, by one that holds under conditions, or by one that does not hold."""
    places = list(_places(node))
    for path, part in rng.sample(places, len(places)):
        found = [one for one in (*_identities(part), *_doubtful(part, rng)) if axes(one) == axes(part)]
        if found:
            return _put(node, path, rng.choice(found))
    return node


def _places(node: Node, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    yield path, node
    for at, part in enumerate(node):
        if at and isinstance(part, tuple):
            yield from _places(part, (*path, at))


def _put(node: Node, path: tuple[int, ...], new: Node) -> Node:
    if not path:
        return new
    at, *rest = path
    return (*node[:at], _put(node[at], tuple(rest), new), *node[at + 1 :])


def _identities(node: Node) -> Iterator[Node]:
    match node:
        case (("add" | "mul") as op, a, b):
            yield (op, b, a)
    match node:
        case ("add", a, ("add", b, c)):
            yield ("add", ("add", a, b), c)
        case ("mul", a, ("mul", b, c)):
            yield ("mul", ("mul", a, b), c)
        case ("mul", a, ("add", b, c)):
            yield ("add", ("mul", a, b), ("mul", a, c))
        case ("add", ("mul", a, b), ("mul", c, d)) if a == c:
            yield ("mul", a, ("add", b, d))
        case ("div", ("add", a, b), c):
            yield ("add", ("div", a, c), ("div", b, c))
        case ("div", a, ("div", b, c)):
            yield ("div", ("mul", a, c), b)
        case ("div", ("mul", a, b), c):
            yield ("mul", a, ("div", b, c))
        case ("sum", ("add", a, b), axis) if axis in axes(a) & axes(b):
            yield ("add", ("sum", a, axis), ("sum", b, axis))
        case ("sum", ("mul" | "div" as op, a, b), axis):
            if axis not in axes(b):
                yield (op, ("sum", a, axis), b)
            if op == "mul" and axis not in axes(a):
                yield (op, a, ("sum", b, axis))
        case ("mul", a, ("sum", b, axis)) if axis not in axes(a):
            yield ("sum", ("mul", a, b), axis)
        case ("sum", ("sum", a, one), other):
            yield ("sum", ("sum", a, other), one)
        case ("exp", ("add", a, b)):
            yield ("mul", ("exp", a), ("exp", b))
        case ("mul", ("exp", a), ("exp", b)):
            yield ("exp", ("add", a, b))
        case ("sqrt", ("mul", a, b)):
            yield ("mul", ("sqrt", a), ("sqrt", b))
        case ("exp", ("mul", a, ("const", 2.0))):
            yield ("mul", ("exp", a), ("exp", a))
    yield ("mul", node, ("const", 1.0))
    yield ("div", ("mul", node, ("const", 2.0)), ("const", 2.0))
    yield ("add", node, ("add", node, ("mul", node, ("const", -1.0))))


def _doubtful(node: Node, rng: random.Random) -> Iterator[Node]:
    """Hold seldom, or under conditions."""
    match node:
        case (("add" | "mul" | "div") as op, a, b):
            yield (rng.choice([one for one in BINARY if one != op]), a, b)
            yield (op, a, a) if axes(a) == axes(node) else (op, b, b)
            if op == "div":
                yield (op, b, a)
        case ("sum", a, axis):
            yield ("sum", ("mul", a, a), axis)
            yield from (("sum", a, other) for other in sorted(axes(a)) if other != axis)
        case ("const", value):
            yield ("const", rng.choice([one for one in CONSTANTS if one != value]))
        case (name,) if name in INPUTS:
            yield (rng.choice([one for one in INPUTS if one != name]),)
        case ("exp", a):
            yield ("exp", ("mul", a, ("const", -1.0)))
        case ("sqrt", a):
            yield ("sqrt", ("add", a, ("const", 0.25)))
        case _:
            pass
    match node:
        case ("sum", (("mul" | "div") as op, a, b), axis) if axis in axes(a) & axes(b):
            yield (op, ("sum", a, axis), ("sum", b, axis))
        case ("exp", ("sum", a, axis)):
            yield ("sum", ("exp", a), axis)
        case ("exp", ("mul", a, b)):
            yield ("mul", ("exp", a), ("exp", b))
        case ("sqrt", ("add", a, b)):
            yield ("add", ("sqrt", a), ("sqrt", b))
        case ("mul", ("sqrt", a), ("sqrt", b)) if a == b:
            yield a
        case ("sqrt", ("mul", a, b)) if a == b:
            yield a
        case ("div", a, ("add", b, c)):
            yield ("add", ("div", a, b), ("div", a, c))
        case _:
            pass
    yield ("mul", node, ("const", -1.0))


# --- as programs


def program(node: Node, sizes: dict[str, int]) -> TensorProgram:
    tensors, ops, last = _lowered(node, sizes)
    out = _output(node, sizes)
    return TensorProgram("pair", sizes, tuple(tensors), tuple(ops), {last: out})


def block(node: Node, sizes: dict[str, int], of: TensorProgram) -> BlockGraph:
    """The tensors are the program's, read or not."""
    _, ops, last = _lowered(node, sizes)
    out = _output(node, sizes)
    own = {op.tensor for op in ops}
    ops.append(Op("stored", Kind.STORE, (last,), tuple(sorted(axes(node))), tensor=out.name))
    tensors = (*(tensor for tensor in of.tensors if tensor.name in own), out)
    return BlockGraph("pair", sizes, tensors, tuple(ops))


def _output(node: Node, sizes: dict[str, int]) -> Tensor:
    dims = tuple((axis,) for axis in sorted(axes(node)))
    return Tensor("out", dims, contiguous_strides(dims, sizes), "f32")


def _lowered(node: Node, sizes: dict[str, int]) -> tuple[list[Tensor], list[Op], str]:
    known: dict[Node, Op] = {}
    tensors: list[Tensor] = []

    def value(part: Node) -> str:
        if part in known:
            return known[part].name
        name, along = f"v{len(known)}", tuple(sorted(axes(part)))
        match part:
            case ("const", number):
                op = Op(name, Kind.CONST, value=number)
            case ((("add" | "mul" | "div") as kind), a, b):
                op = Op(name, BINARY[kind], (value(a), value(b)), along)
            case ((("exp" | "sqrt") as kind), a):
                op = Op(name, UNARY[kind], (value(a),), along)
            case ("sum", a, axis):
                op = Op(name, Kind.SUM, (value(a),), along, over=(axis,))
            case (own,):
                dims = tuple((axis,) for axis in INPUTS[own])
                tensors.append(Tensor(own, dims, contiguous_strides(dims, sizes), "f32", own))
                op = Op(name, Kind.LOAD, (), along, tensor=own)
            case _:
                raise ValueError(part)
        known[part] = op = replace(op, name=f"v{len(known)}")
        return op.name

    last = value(node)
    return tensors, list(known.values()), last
