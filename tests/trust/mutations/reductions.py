"""Mutations of reductions, accumulators and masks."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.trust.memory import Json
from tests.trust.mutations.edits import (
    REDUCING,
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


@mutation
def reduced_axes(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, block in blocks(graph):
        for at, op in enumerate(block["ops"]):
            if op["kind"] not in REDUCING:
                continue
            for axis in block["sizes"]:
                if axis not in op["over"]:
                    for old in op["over"]:
                        over = [axis if one == old else one for one in op["over"]]
                        yield f"{op['name']} over {axis}, not {old}", op_edit(kernel, at, over=over)
                    yield f"{op['name']} over {axis} as well", op_edit(kernel, at, over=[*op["over"], axis])
                else:
                    rest = [one for one in op["over"] if one != axis]
                    yield f"{op['name']} no longer over {axis}", op_edit(kernel, at, over=rest)


@mutation
def reduction_kind(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, at, op in ops_of(graph):
        if op["kind"] in ("sum", "amax"):
            other = "amax" if op["kind"] == "sum" else "sum"
            yield f"{op['name']} becomes {other}", op_edit(kernel, at, kind=other)
        if op["kind"] == "dot":
            for kind in ("mul", "add", "max"):
                yield f"{op['name']} becomes {kind}", op_edit(kernel, at, kind=kind, over=[])


@mutation
def summed_again(graph: Json, _: random.Random) -> Iterator[Edit]:
    """A sum over an axis that the value has, put in."""
    for kernel, block in blocks(graph):
        axes = {op["name"]: op["axes"] for op in block["ops"]}
        for value in values(block):
            for axis in axes[value]:

                def made(value: str, axis: str = axis) -> list[Json]:
                    return [new_op(f"{value}_summed", "sum", [value], over=[axis])]

                yield f"{value} summed over {axis}", inserted(kernel, value, made)


@mutation
def accumulator(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, block in blocks(graph):
        for at, op in enumerate(block["ops"]):
            if op["kind"] != "accum":
                continue
            for fn in ("", "max", "min", "sum", "MAX"):
                if fn != op["fn"]:
                    yield f"{op['name']} keeps {fn!r}", op_edit(kernel, at, fn=fn)
            for axis in block["sizes"]:
                if axis not in op["over"]:
                    yield f"{op['name']} over {axis}", op_edit(kernel, at, over=[axis])
            yield f"{op['name']} over nothing", op_edit(kernel, at, over=[])


@mutation
def accumulator_moved(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Behind the operators that use it, or before the one that feeds it."""
    for kernel, block in blocks(graph):
        known = {op["name"]: op for op in block["ops"]}
        for op in block["ops"]:
            if op["kind"] != "accum":
                continue
            users = [user for user in block["ops"] if op["name"] in user["inputs"] and user["kind"] != "store"]
            for user in users:

                def behind(graph: Json, kernel: int = kernel, name: str = op["name"], user: str = user["name"]) -> None:
                    ops = graph["kernels"][kernel]["block"]["ops"]
                    accum = next(one for one in ops if one["name"] == name)
                    ops.remove(accum)
                    for one in ops:
                        one["inputs"] = [accum["inputs"][0] if i == name else i for i in one["inputs"]]
                    at = next(number for number, one in enumerate(ops) if one["name"] == user)
                    for one in ops[at + 1 :]:
                        one["inputs"] = [name if i == user else i for i in one["inputs"]]
                    ops.insert(at + 1, {**accum, "inputs": [user]})
                    settle(graph, kernel)

                yield f"{op['name']} behind {user['name']}", behind
            feeder = known[op["inputs"][0]]
            for position, operand in enumerate(feeder["inputs"]):

                def before(
                    graph: Json, kernel: int = kernel, op: Json = op, feeder: str = feeder["name"],
                    position: int = position, operand: str = operand,
                ) -> None:  # fmt: skip
                    ops = graph["kernels"][kernel]["block"]["ops"]
                    for one in ops:
                        one["inputs"] = [feeder if i == op["name"] else i for i in one["inputs"]]
                    at = next(number for number, one in enumerate(ops) if one["name"] == feeder)
                    ops[at]["inputs"][position] = op["name"]
                    accum = next(one for one in ops if one["name"] == op["name"])
                    ops.remove(accum)
                    ops.insert(at, {**accum, "inputs": [operand]})
                    settle(graph, kernel)

                yield f"{op['name']} before {feeder['name']}", before


@mutation
def accumulator_added(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, block in blocks(graph):
        for loop in _axes(block["loops"]):
            for value in values(block):

                def made(value: str, loop: str = loop) -> list[Json]:
                    return [new_op(f"{value}_kept", "accum", [value], over=[loop])]

                yield f"{value} accumulated over {loop}", inserted(kernel, value, made)


@mutation
def mask(graph: Json, _: random.Random) -> Iterator[Edit]:
    for kernel, block in blocks(graph):
        for at, op in enumerate(block["ops"]):
            if op["kind"] != "mask":
                continue
            for step in (1, -1, 2, -2, 5, 100, -100):
                moved = {"value": op["value"] + step}
                yield f"{op['name']} starts {step} from where it did", op_edit(kernel, at, **moved)
            yield f"{op['name']} starts half way", op_edit(kernel, at, value=op["value"] + 0.5)
            turned = {"rows": op["columns"], "columns": op["rows"]}
            yield f"{op['name']} turned", op_edit(kernel, at, **turned)
            yield f"{op['name']} turned and moved", op_edit(kernel, at, **turned, value=-op["value"])
            for field in ("rows", "columns"):
                for axis in block["sizes"]:
                    if axis not in op["rows"] and axis not in op["columns"]:
                        yield f"{op['name']} has {field} {axis}", op_edit(kernel, at, **{field: [axis]})
                yield f"{op['name']} has no {field}", op_edit(kernel, at, **{field: []})
                if len(op[field]) > 1:
                    yield f"{op['name']} has {field} turned", op_edit(kernel, at, **{field: op[field][::-1]})


@mutation
def mask_ignored(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Ones everywhere: a constant in its place."""
    for kernel, at, op in ops_of(graph):
        if op["kind"] == "mask":
            gone = {"kind": "const", "value": 1.0, "rows": [], "columns": []}
            yield f"{op['name']} is one everywhere", op_edit(kernel, at, **gone)
            yield f"{op['name']} is zero everywhere", op_edit(kernel, at, **{**gone, "value": 0.0})


def _axes(loops: list[Json]) -> list[str]:
    return [axis for loop in loops for axis in (loop["axis"], *_axes(loop.get("body", [])))]
