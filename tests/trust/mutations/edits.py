"""Edits of μGraph documents: what a mutation is, and how operators stay well formed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.trust.memory import Json

Edit = tuple[str, Callable[[Json], None]]
"""What is changed, and the change of a copy of the graph."""
Mutation = Callable[[Json, random.Random], Iterator[Edit]]
"""Every edit of one kind that a graph offers."""

MUTATIONS: dict[str, Mutation] = {}
"""Kind -> its edits."""

POINTWISE = ("add", "mul", "div", "max")
REDUCING = ("sum", "amax", "dot")


def mutation(function: Mutation) -> Mutation:
    MUTATIONS[function.__name__] = function
    return function


def blocks(graph: Json) -> list[tuple[int, Json]]:
    """Number of the kernel, and its block graph."""
    return [(number, kernel["block"]) for number, kernel in enumerate(graph["kernels"]) if kernel["block"]]


def generated(graph: Json) -> list[tuple[int, Json]]:
    """The kernels that have a schedule."""
    return [(number, kernel) for number, kernel in enumerate(graph["kernels"]) if kernel["kind"] == "graph"]


def ops_of(graph: Json) -> Iterator[tuple[int, int, Json]]:
    """Number of the kernel, number of the operator, the operator."""
    for number, block in blocks(graph):
        for at, op in enumerate(block["ops"]):
            yield number, at, op


def op_edit(kernel: int, at: int, **fields: Any) -> Callable[[Json], None]:
    """Fields of one operator changed; axes worked out again, thread graphs let go."""

    def apply(graph: Json) -> None:
        graph["kernels"][kernel]["block"]["ops"][at].update(fields)
        settle(graph, kernel)

    return apply


def settle(graph: Json, kernel: int) -> None:
    """After a change of operators or tensors: every operator's axes again from the loads down, no thread graphs, and a
    library kernel reads and writes what its block graph does."""
    node = graph["kernels"][kernel]
    block = node["block"]
    tensors = {tensor["name"]: tensor for tensor in block["tensors"]}
    axes: dict[str, set[str]] = {}
    for op in block["ops"]:
        if op["kind"] == "load":
            here = {axis for dim in tensors[op["tensor"]]["dims"] for axis in dim} if op["tensor"] in tensors else set()
        elif op["kind"] == "mask":
            here = {*op["rows"], *op["columns"]}
        else:
            here = set[str]().union(*(axes.get(name, set()) for name in op["inputs"]))
            if op["kind"] in REDUCING:
                here -= set(op["over"])
        axes[op["name"]] = here
        op["axes"] = sorted(here)
        op["over"] = sorted(op["over"])
    if "threads" in node:
        node["threads"] = []


def new_op(name: str, kind: str, inputs: list[str], **fields: Any) -> Json:
    empty: Json = {
        "axes": [],
        "over": [],
        "tensor": "",
        "value": 0.0,
        "fn": "",
        "f32": False,
        "rows": [],
        "columns": [],
    }
    return {"name": name, "kind": kind, "inputs": inputs, **empty, **fields}


def inserted(kernel: int, value: str, made: Callable[[str], list[Json]]) -> Callable[[Json], None]:
    """Operators after a value, whose users read the last of them in place of it. made: from the value's name"""

    def apply(graph: Json) -> None:
        block = graph["kernels"][kernel]["block"]
        at = next(number for number, op in enumerate(block["ops"]) if op["name"] == value)
        new = made(value)
        for op in block["ops"][at + 1 :]:
            op["inputs"] = [new[-1]["name"] if name == value else name for name in op["inputs"]]
        block["ops"][at + 1 : at + 1] = new
        settle(graph, kernel)

    return apply


def values(block: Json) -> list[str]:
    """Names of what operators compute, loads among them."""
    return [op["name"] for op in block["ops"] if op["kind"] not in ("store", "const")]


def all_tensors(graph: Json, name: str, kernels: bool = True, frame: bool = True) -> list[Json]:
    """Every declaration of a tensor: the kernels' own, and the kernel graph's."""
    found = list(graph["tensors"]) if frame else []
    for _, block in blocks(graph) if kernels else ():
        found += block["tensors"]
    return [tensor for tensor in found if tensor["name"] == name]
