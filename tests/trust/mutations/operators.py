"""Mutations of operators: their kinds, operands, constants, functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.trust.memory import Json
from tests.trust.mutations.edits import (
    POINTWISE,
    Edit,
    blocks,
    inserted,
    mutation,
    new_op,
    op_edit,
    ops_of,
    settle,
    values,
)

_FUNCTIONS = ("silu", "relu", "sigmoid", "tanh", "abs", "erf", "gelu", "gelu_tanh", "sin")


@mutation
def operator_kind(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, at, op in ops_of(graph):
        if op["kind"] in POINTWISE:
            for kind in POINTWISE:
                if kind != op["kind"]:
                    yield f"{op['name']} becomes {kind}", op_edit(kernel, at, kind=kind)
        if op["kind"] in ("sqrt", "exp"):
            other = "exp" if op["kind"] == "sqrt" else "sqrt"
            yield f"{op['name']} becomes {other}", op_edit(kernel, at, kind=other)
            yield f"{op['name']} becomes relu", op_edit(kernel, at, kind="unary", fn="relu")


@mutation
def operands_swapped(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, at, op in ops_of(graph):
        if len(op["inputs"]) == 2 and op["inputs"][0] != op["inputs"][1]:
            yield f"operands of {op['name']} swapped", op_edit(kernel, at, inputs=op["inputs"][::-1])


@mutation
def other_operand(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, block in blocks(graph):
        before: list[str] = []
        for at, op in enumerate(block["ops"]):
            for position, name in enumerate(op["inputs"]):
                for other in before:
                    if other != name:
                        inputs = [other if p == position else n for p, n in enumerate(op["inputs"])]
                        yield f"{op['name']} reads {other} for {name}", op_edit(kernel, at, inputs=inputs)
            if op["kind"] != "store":
                before.append(op["name"])


@mutation
def dropped(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Its users read one of its operands."""
    for kernel, at, op in ops_of(graph):
        for operand in dict.fromkeys(op["inputs"]) if op["kind"] != "store" else ():

            def apply(graph: Json, kernel: int = kernel, at: int = at, operand: str = operand) -> None:
                ops = graph["kernels"][kernel]["block"]["ops"]
                name = ops.pop(at)["name"]
                for other in ops:
                    other["inputs"] = [operand if one == name else one for one in other["inputs"]]
                settle(graph, kernel)

            yield f"{op['name']} dropped for {operand}", apply


@mutation
def duplicated(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Applied once more to its own result."""
    for kernel, _, op in ops_of(graph):
        if op["kind"] in ("load", "const", "mask", "store"):
            continue
        for position in range(len(op["inputs"])):

            def again(value: str, op: Json = op, position: int = position) -> list[Json]:
                inputs = [value if at == position else name for at, name in enumerate(op["inputs"])]
                return [{**op, "name": f"{value}_again", "inputs": inputs}]

            yield f"{op['name']} applied twice", inserted(kernel, op["name"], again)


@mutation
def constant(graph: Json, _: random.Random) -> Iterator[Edit]:
    changes: dict[str, Callable[[float], object]] = {
        "doubled": lambda x: 2 * x,
        "halved": lambda x: x / 2,
        "negated": lambda x: -x,
        "nudged": lambda x: x * 1.01,
        "nudged a little": lambda x: x * 1.0001,
        "squared": lambda x: x * x,
        "inverted": lambda x: 1 / x if x else 1.0,
        "zero": lambda x: 0.0,
        "NaN": lambda x: {"float": "nan"},
        "infinite": lambda x: {"float": "inf"},
        "minus infinite": lambda x: {"float": "-inf"},
    }
    for kernel, at, op in ops_of(graph):
        if op["kind"] == "const" and isinstance(op["value"], int | float):
            for what, change in changes.items():
                yield f"{op['name']} {what}", op_edit(kernel, at, value=change(op["value"]))


@mutation
def scaled(graph: Json, rng: random.Random) -> Iterator[Edit]:
    """A value times, or plus, a constant that was not there."""
    for kernel, block in blocks(graph):
        for value in values(block):
            for kind, number in (("mul", 2.0), ("mul", 1.01), ("mul", -1.0), ("add", 0.5), ("add", 1e-3), ("mul", 1.0)):

                def made(value: str, kind: str = kind, number: float = number) -> list[Json]:
                    one = new_op(f"{value}_number", "const", [], value=number)
                    return [one, new_op(f"{value}_changed", kind, [value, one["name"]])]

                yield f"{value} {kind} {number}", inserted(kernel, value, made)


@mutation
def detour(graph: Json, _: random.Random) -> Iterator[Edit]:
    """What equals the value for some numbers and not for others, or for all of them."""
    forms: dict[str, list[tuple[str, list[int], str]]] = {
        "√y·√y": [("sqrt", [0], ""), ("mul", [1, 1], "")],
        "√(y·y)": [("mul", [0, 0], ""), ("sqrt", [1], "")],
        "y·y/y": [("mul", [0, 0], ""), ("div", [1, 0], "")],
        "relu(y)": [("unary", [0], "relu")],
        "|y|": [("unary", [0], "abs")],
        "max(y, y)": [("max", [0, 0], "")],
        "max(y, y·y)": [("mul", [0, 0], ""), ("max", [0, 1], "")],
        "(y+y)−y as y·(y+y)/(y+y)": [("add", [0, 0], ""), ("mul", [0, 1], ""), ("div", [2, 1], "")],
    }
    for kernel, block in blocks(graph):
        for value in values(block):
            for what, form in forms.items():

                def made(value: str, form: list[tuple[str, list[int], str]] = form) -> list[Json]:
                    names = [value, *(f"{value}_detour{number}" for number in range(len(form)))]
                    return [
                        new_op(names[number], kind, [names[i] for i in inputs], fn=fn)
                        for number, (kind, inputs, fn) in enumerate(form, 1)
                    ]

                yield f"{what} for {value}", inserted(kernel, value, made)


@mutation
def function(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, at, op in ops_of(graph):
        if op["kind"] == "unary":
            for fn in _FUNCTIONS:
                if fn != op["fn"]:
                    yield f"{op['name']} becomes {fn}", op_edit(kernel, at, fn=fn)


@mutation
def function_inserted(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, block in blocks(graph):
        for value in values(block):
            for fn in ("sigmoid", "tanh", "silu"):

                def made(value: str, fn: str = fn) -> list[Json]:
                    return [new_op(f"{value}_of", "unary", [value], fn=fn)]

                yield f"{fn} of {value}", inserted(kernel, value, made)


@mutation
def distributed_wrongly(graph: Json, _: random.Random) -> Iterator[Edit]:
    """f(a + b) as f(a) + f(b) for what is not linear, and a/(b+c) as a/b + a/c."""
    for kernel, block in blocks(graph):
        known = {op["name"]: op for op in block["ops"]}
        for op in block["ops"]:
            inner = known.get(op["inputs"][-1]) if op["inputs"] else None
            if (
                inner is None
                or inner["kind"] not in ("add", "mul")
                or op["kind"] not in ("exp", "sqrt", "unary", "div")
            ):
                continue

            def apply(graph: Json, kernel: int = kernel, name: str = op["name"]) -> None:
                ops = graph["kernels"][kernel]["block"]["ops"]
                at = next(number for number, one in enumerate(ops) if one["name"] == name)
                outer = ops[at]
                inner = next(one for one in ops if one["name"] == outer["inputs"][-1])
                parts = [
                    {**outer, "name": f"{name}_{side}", "inputs": [*outer["inputs"][:-1], operand]}
                    for side, operand in enumerate(inner["inputs"])
                ]
                ops[at : at + 1] = [*parts, new_op(name, inner["kind"], [part["name"] for part in parts])]
                settle(graph, kernel)

            yield f"{op['name']} of a sum or product taken apart", apply
