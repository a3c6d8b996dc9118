"""Where a rewrite applies: an operator, seen with what it reads, and what stands in its place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.trust.memory import Json
from tests.trust.mutations.edits import Edit, Mutation, generated, new_op, settle

REWRITES: dict[str, Mutation] = {}


def rewrite(kind: str, sites: Mutation) -> None:
    REWRITES[kind] = sites


@dataclass
class Site:
    """An operator that is to be replaced, and the new operators so far. What a method returns is a value's name."""

    op: Json
    known: dict[str, Json]
    sizes: dict[str, int]
    made: list[Json] = field(default_factory=list)

    def of(self, name: str) -> Json:
        """The operator that computes an operand."""
        return self.known[name]

    def add(self, kind: str, *inputs: str, **fields: object) -> str:
        name = f"{self.op['name']}_r{len(self.made)}"
        self.made.append(new_op(name, kind, list(inputs), **fields))
        return name

    def number(self, value: float) -> str:
        return self.add("const", value=value)

    def copy(self, op: Json, *inputs: str) -> str:
        """An operator like another one, of other operands."""
        name = f"{self.op['name']}_r{len(self.made)}"
        self.made.append({**op, "name": name, "inputs": list(inputs)})
        return name


Form = Callable[[Site], str | None]
"""Adds operators that compute what the site's does, and returns the last one's name; None where it does not apply."""


def each(*forms: Form) -> Mutation:
    """Every site of a graph where one of the forms applies."""

    def sites(graph: Json, _: random.Random) -> Iterator[Edit]:
        for kernel, node in generated(graph):  # a library kernel's call says what its block graph has to be
            block = node["block"]
            known = {op["name"]: op for op in block["ops"]}
            for op in block["ops"]:
                if op["kind"] == "store":
                    continue
                for form in forms:
                    site = Site(op, known, block["sizes"])
                    last = form(site)
                    if last is not None:
                        yield f"{op['name']}, {form.__name__}", _replacing(kernel, op["name"], site.made, last)

    return sites


def _replacing(kernel: int, name: str, made: list[Json], last: str) -> Callable[[Json], None]:
    """The new operators in place of the old one, the last of them under its name."""

    def apply(graph: Json) -> None:
        block = graph["kernels"][kernel]["block"]
        at = next(number for number, op in enumerate(block["ops"]) if op["name"] == name)
        names = {last: name}
        new = [
            {**op, "name": names.get(op["name"], op["name"]), "inputs": [names.get(i, i) for i in op["inputs"]]}
            for op in made
        ]
        block["ops"][at : at + 1] = new
        _without_unused(block)
        settle(graph, kernel)

    return apply


def _without_unused(block: Json) -> None:
    """Operators that nothing uses any more go, but loads: an input is loaded."""
    used = set[str]()
    kept: list[Json] = []
    for op in reversed(block["ops"]):
        if op["kind"] in ("store", "load") or op["name"] in used:
            used.update(op["inputs"])
            kept.append(op)
    block["ops"][:] = kept[::-1]
