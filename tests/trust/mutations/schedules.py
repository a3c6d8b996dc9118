"""Mutations of loops, tiles, grids, launches, and of which kernels run."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator

from tests.trust.memory import Json
from tests.trust.mutations.edits import Edit, blocks, generated, mutation, settle


def _scheduled(kernel: int, change: Callable[[Json], None]) -> Callable[[Json], None]:
    def apply(graph: Json) -> None:
        change(graph["kernels"][kernel]["schedule"])

    return apply


@mutation
def tile(graph: Json, _: random.Random) -> Iterator[Edit]:
    for number, kernel in generated(graph):
        sizes = kernel["block"]["sizes"]
        for at, (axis, old) in enumerate(kernel["schedule"]["grid"]):
            for new in (0, -5, 1, 3, 2 * old, old + 1, 4 * sizes.get(axis, 1), 1.5):

                def grid(schedule: Json, at: int = at, new: float = new) -> None:
                    schedule["grid"][at][1] = new

                yield f"grid tile of {axis} is {new}", _scheduled(number, grid)
        for axis, old in kernel["schedule"]["loops"].items():
            for new in (0, -5, 1, 3, 2 * old, old + 1, 4 * sizes.get(axis, 1)):

                def loop(schedule: Json, axis: str = axis, new: int = new) -> None:
                    schedule["loops"][axis] = new

                yield f"loop tile of {axis} is {new}", _scheduled(number, loop)


@mutation
def grid(graph: Json, _: random.Random) -> Iterator[Edit]:
    for number, kernel in generated(graph):
        schedule, sizes = kernel["schedule"], kernel["block"]["sizes"]
        on = [axis for axis, _ in schedule["grid"]]
        for at, axis in enumerate(on):

            def gone(schedule: Json, at: int = at) -> None:
                del schedule["grid"][at]

            def twice(schedule: Json, at: int = at) -> None:
                schedule["grid"].append(schedule["grid"][at])

            def unknown(schedule: Json, at: int = at) -> None:
                schedule["grid"][at][0] = "nowhere"

            yield f"{axis} off the grid", _scheduled(number, gone)
            yield f"{axis} twice on the grid", _scheduled(number, twice)
            yield f"{axis} unknown on the grid", _scheduled(number, unknown)
        for axis in sizes:
            if axis not in on:
                for new in (1, 4, 16, 4 * sizes[axis]):

                    def more(schedule: Json, axis: str = axis, new: int = new) -> None:
                        schedule["grid"].append([axis, new])

                    yield f"{axis} on the grid by {new}", _scheduled(number, more)
        if len(on) > 1:
            yield "the grid turned", _scheduled(number, lambda schedule: schedule["grid"].reverse())
        yield (
            "an unknown axis on the grid",
            _scheduled(number, lambda schedule: schedule["grid"].append(["nowhere", 1])),
        )


@mutation
def launch(graph: Json, _: random.Random) -> Iterator[Edit]:
    for number, _kernel in generated(graph):
        for key, values in {"num_warps": (-1, 0, 3, 64, 8), "num_stages": (0, -2, 2), "swap": (True,),
                            "library": (True,)}.items():  # fmt: skip
            for value in values:

                def change(schedule: Json, key: str = key, value: object = value) -> None:
                    schedule[key] = value

                yield f"{key} is {value}", _scheduled(number, change)


@mutation
def loops(graph: Json, _: random.Random) -> Iterator[Edit]:
    """The nest: loops dropped with and without their tiles, put inside one another otherwise, doubled, new."""
    for number, kernel in generated(graph):
        block = kernel["block"]
        axes = _axes(block["loops"])

        def nest(
            new: list[Json], number: int = number, tiles: Callable[[dict[str, int]], dict[str, int]] | None = None
        ) -> Callable[[Json], None]:
            def apply(graph: Json) -> None:
                kernel = graph["kernels"][number]
                kernel["block"]["loops"] = copy.deepcopy(new)
                if tiles is not None:
                    kernel["schedule"]["loops"] = tiles(kernel["schedule"]["loops"])

            return apply

        def tiles_alone(new: dict[str, int], number: int = number) -> Callable[[Json], None]:
            def apply(graph: Json) -> None:
                graph["kernels"][number]["schedule"]["loops"] = new

            return apply

        for axis in block["sizes"]:
            if axis not in axes:
                added = [*block["loops"], {"axis": axis, "body": []}]
                yield f"a loop over {axis} beside", nest(added, tiles=lambda old, axis=axis: {**old, axis: 4})
                around = [{"axis": axis, "body": block["loops"]}]
                yield f"a loop over {axis} around", nest(around, tiles=lambda old, axis=axis: {**old, axis: 4})
                yield f"a tile for {axis}, no loop", tiles_alone({**kernel["schedule"]["loops"], axis: 4})
        if not axes:
            continue
        yield "no loops, their tiles stay", nest([])
        yield "no loops and no tiles", nest([], tiles=lambda _: {})
        yield "loops without tiles", tiles_alone({})
        for axis in axes:
            without = _without(block["loops"], axis)
            yield f"no loop over {axis}", nest(without)
            yield (
                f"no loop over {axis}, no tile",
                nest(without, tiles=lambda old, axis=axis: {a: t for a, t in old.items() if a != axis}),
            )
            rest = {a: t for a, t in kernel["schedule"]["loops"].items() if a != axis}
            yield f"no tile for {axis}", tiles_alone(rest)
        yield "loops twice", nest([*block["loops"], *block["loops"]])
        yield (
            "an unknown loop",
            nest([{"axis": "nowhere", "body": block["loops"]}], tiles=lambda old: {**old, "nowhere": 4}),
        )
        if len(axes) > 1:
            yield "loops beside one another", nest([{"axis": axis, "body": []} for axis in axes])
            yield "the nest turned inside out", nest(_nested(axes[::-1]))
            yield "one nest of all", nest(_nested(axes))


@mutation
def order(graph: Json, rng: random.Random) -> Iterator[Edit]:
    """Operators in another order: some of it before what it needs."""
    for number, block in blocks(graph):
        count = len(block["ops"])
        for _ in range(4):
            one, other = sorted(rng.sample(range(count), 2)) if count > 1 else (0, 0)

            def apply(graph: Json, number: int = number, one: int = one, other: int = other) -> None:
                ops = graph["kernels"][number]["block"]["ops"]
                ops[one], ops[other] = ops[other], ops[one]

            yield f"operators {one} and {other} exchanged", apply


@mutation
def stores(graph: Json, _: random.Random) -> Iterator[Edit]:
    for number, block in blocks(graph):
        for at, op in enumerate(block["ops"]):
            if op["kind"] != "store":
                continue

            def gone(graph: Json, number: int = number, at: int = at) -> None:
                del graph["kernels"][number]["block"]["ops"][at]

            def twice(graph: Json, number: int = number, op: Json = op) -> None:
                ops = graph["kernels"][number]["block"]["ops"]
                ops.append({**copy.deepcopy(op), "name": f"{op['name']}_again"})

            yield f"{op['name']} gone", gone
            yield f"{op['name']} twice", twice
            for other in block["ops"][:at]:
                if other["kind"] != "store" and other["name"] != op["inputs"][0]:

                    def instead(graph: Json, number: int = number, at: int = at, name: str = other["name"]) -> None:
                        graph["kernels"][number]["block"]["ops"][at]["inputs"] = [name]
                        settle(graph, number)

                    yield f"{op['name']} stores {other['name']}", instead


@mutation
def declared_axes(graph: Json, _: random.Random) -> Iterator[Edit]:
    """The axes that an operator is said to have, alone."""
    for number, block in blocks(graph):
        for at, op in enumerate(block["ops"]):
            for axis in block["sizes"]:
                new = sorted({*op["axes"]} ^ {axis})

                def apply(graph: Json, number: int = number, at: int = at, new: list[str] = new) -> None:
                    graph["kernels"][number]["block"]["ops"][at]["axes"] = new

                yield f"{op['name']} said to have axes {new}", apply


@mutation
def kernels(graph: Json, _: random.Random) -> Iterator[Edit]:
    count = len(graph["kernels"])
    yield "no kernels", lambda graph: graph.update(kernels=[])
    for at in range(count):

        def gone(graph: Json, at: int = at) -> None:
            del graph["kernels"][at]

        def twice(graph: Json, at: int = at) -> None:
            again = copy.deepcopy(graph["kernels"][at])
            again["name"] += "_again"
            graph["kernels"].insert(at, again)

        def unsaid(graph: Json, at: int = at) -> None:
            kernel = graph["kernels"][at]
            block = kernel["block"]
            reads = [op["tensor"] for op in block["ops"] if op["kind"] == "load"]
            writes = [op["tensor"] for op in block["ops"] if op["kind"] == "store"]
            call = f"torch.mm({', '.join(reads)})"
            graph["kernels"][at] = {
                "kind": "library", "name": kernel["name"], "call": call,
                "inputs": reads, "outputs": writes, "block": None,
            }  # fmt: skip

        def said(graph: Json, at: int = at) -> None:
            block = graph["kernels"][at]["block"]
            unsaid(graph, at)
            graph["kernels"][at]["block"] = block

        if count > 1:
            yield f"kernel {at} gone", gone
        yield f"kernel {at} twice", twice
        yield f"kernel {at} a library's, which does not say what it computes", unsaid
        yield f"kernel {at} a library's product", said
    if count > 1:
        yield "kernels in another order", lambda graph: graph["kernels"].reverse()


def _axes(nest: list[Json]) -> list[str]:
    return [axis for loop in nest for axis in (loop["axis"], *_axes(loop.get("body", [])))]


def _without(nest: list[Json], axis: str) -> list[Json]:
    found: list[Json] = []
    for loop in nest:
        body = _without(loop.get("body", []), axis)
        found += body if loop["axis"] == axis else [{"axis": loop["axis"], "body": body}]
    return found


def _nested(axes: list[str]) -> list[Json]:
    return [{"axis": axes[0], "body": _nested(axes[1:])}] if axes else []
