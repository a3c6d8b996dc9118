"""Mutations of names: tensors called otherwise, taken for one another, listed otherwise."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations

from tests.trust.memory import Json
from tests.trust.mutations.edits import Edit, blocks, mutation, ops_of, settle


@mutation
def names_exchanged(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Two tensors' names: everywhere but in the lists of inputs and outputs, or in one kernel's loads and stores."""
    names = [tensor["name"] for tensor in graph["tensors"]]
    for one, other in combinations(names, 2):
        names_of = {one: other, other: one}

        def everywhere(graph: Json, names_of: dict[str, str] = names_of) -> None:
            for frame in (graph, *(block for _, block in blocks(graph))):
                for tensor in frame["tensors"]:
                    tensor["name"] = names_of.get(tensor["name"], tensor["name"])
            for kernel, _, op in ops_of(graph):
                op["tensor"] = names_of.get(op["tensor"], op["tensor"])
                settle(graph, kernel)
            for kernel in graph["kernels"]:
                if kernel["kind"] == "library":
                    for key in ("inputs", "outputs"):
                        kernel[key] = [names_of.get(name, name) for name in kernel[key]]

        yield f"{one} and {other} exchanged everywhere", everywhere
        for number, _ in blocks(graph):

            def loads(graph: Json, number: int = number, names_of: dict[str, str] = names_of) -> None:
                for op in graph["kernels"][number]["block"]["ops"]:
                    op["tensor"] = names_of.get(op["tensor"], op["tensor"])
                settle(graph, number)

            yield f"loads and stores of {one} and {other} exchanged in kernel {number}", loads


@mutation
def name_changed(graph: Json, _: random.Random) -> Iterator[Edit]:
    for tensor in graph["tensors"]:
        name = tensor["name"]

        def frame(graph: Json, name: str = name) -> None:
            for tensor in graph["tensors"]:
                tensor["name"] = "other" if tensor["name"] == name else tensor["name"]

        yield f"{name} called otherwise in the kernel graph", frame
        for number, _ in blocks(graph):

            def kernel(graph: Json, name: str = name, number: int = number) -> None:
                block = graph["kernels"][number]["block"]
                for one in (*block["tensors"], *block["ops"]):
                    key = "tensor" if "tensor" in one else "name"
                    one[key] = "other" if one[key] == name else one[key]

            yield f"{name} called otherwise in kernel {number}", kernel


@mutation
def borders(graph: Json, _: random.Random) -> Iterator[Edit]:
    """The lists of inputs and outputs."""
    for key in ("inputs", "outputs"):
        names = graph[key]

        def set_to(new: list[str], key: str = key) -> Callable[[Json], None]:
            def apply(graph: Json) -> None:
                graph[key] = new

            return apply

        for one, other in combinations(range(len(names)), 2):
            new = list(names)
            new[one], new[other] = new[other], new[one]
            yield f"{key} {one} and {other} exchanged", set_to(new)
            yield (
                f"{names[one]} listed for {names[other]} too",
                set_to([*names[:other], names[one], *names[other + 1 :]]),
            )
        for at, name in enumerate(names):
            yield f"{name} not listed among {key}", set_to([*names[:at], *names[at + 1 :]])
            yield f"an unknown name among {key}", set_to([*names[:at], "unknown", *names[at + 1 :]])
        yield f"no {key}", set_to([])
