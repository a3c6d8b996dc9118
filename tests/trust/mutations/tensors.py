"""Mutations of tensors: dimensions, strides, types, sizes, windows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations

from tests.trust.memory import Json
from tests.trust.mutations.edits import Edit, all_tensors, blocks, mutation, settle

_SCOPES = {"everywhere": (True, True), "in the kernels": (True, False), "in the kernel graph": (False, True)}


def _in_scopes(what: str, name: str, change: Callable[[Json], None]) -> Iterator[Edit]:
    """The change of a tensor, wherever it is declared, or on one level alone."""
    for scope, (kernels, frame) in _SCOPES.items():

        def apply(graph: Json, kernels: bool = kernels, frame: bool = frame) -> None:
            for tensor in all_tensors(graph, name, kernels, frame):
                change(tensor)
            for number, _ in blocks(graph):
                keep = graph["kernels"][number].get("threads")
                settle(graph, number)
                if keep:
                    graph["kernels"][number]["threads"] = keep

        yield f"{what} of {name} {scope}", apply


@mutation
def dims_exchanged(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Two dimensions' axes exchanged; strides stay where they are, or go with them."""
    for tensor in graph["tensors"]:
        for one, other in combinations(range(len(tensor["dims"])), 2):
            for with_strides in (False, True):

                def change(tensor: Json, one: int = one, other: int = other, with_strides: bool = with_strides) -> None:
                    for key in ("dims", "strides") if with_strides else ("dims",):
                        tensor[key][one], tensor[key][other] = tensor[key][other], tensor[key][one]

                what = f"dimensions {one} and {other}{' with strides' if with_strides else ''}"
                yield from _in_scopes(what, tensor["name"], change)


@mutation
def axes_renamed_in_one(graph: Json, _: random.Random) -> Iterator[Edit]:
    """A tensor along another axis than it has: other maps for grid and loops."""
    for kernel, block in blocks(graph):
        for at, tensor in enumerate(block["tensors"]):
            held = [axis for dim in tensor["dims"] for axis in dim]
            for old in held:
                for new in block["sizes"]:

                    def apply(graph: Json, kernel: int = kernel, at: int = at, old: str = old, new: str = new) -> None:
                        tensor = graph["kernels"][kernel]["block"]["tensors"][at]
                        tensor["dims"] = [
                            [{old: new, new: old}.get(axis, axis) for axis in dim] for dim in tensor["dims"]
                        ]
                        settle(graph, kernel)

                    if new != old:
                        yield f"{tensor['name']} along {new} for {old}", apply


@mutation
def strides(graph: Json, _: random.Random) -> Iterator[Edit]:
    for tensor in graph["tensors"]:
        rank = len(tensor["strides"])
        for at in range(rank):
            changes: dict[str, Callable[[int], int]] = {
                "doubled": lambda x: 2 * x, "zero": lambda x: 0, "one more": lambda x: x + 1,
                "negative": lambda x: -x, "halved": lambda x: x // 2,
            }  # fmt: skip
            for what, new in changes.items():

                def change(tensor: Json, at: int = at, new: Callable[[int], int] = new) -> None:
                    tensor["strides"][at] = new(tensor["strides"][at])

                yield from _in_scopes(f"stride {at} {what}", tensor["name"], change)
        for one, other in combinations(range(rank), 2):

            def swap(tensor: Json, one: int = one, other: int = other) -> None:
                found = tensor["strides"]
                found[one], found[other] = found[other], found[one]

            yield from _in_scopes(f"strides {one} and {other} exchanged", tensor["name"], swap)


@mutation
def transposed_strides(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Dense, but the first dimension fastest."""
    for tensor in graph["tensors"]:
        if len(tensor["dims"]) < 2:
            continue

        def change(tensor: Json) -> None:
            step = 1
            for at, dim in enumerate(tensor["dims"]):
                tensor["strides"][at] = step
                for axis in dim:
                    step *= graph["sizes"].get(axis, 1)

        yield from _in_scopes("column-major strides", tensor["name"], change)


@mutation
def dtype(graph: Json, _: random.Random) -> Iterator[Edit]:
    for tensor in graph["tensors"]:
        for new in ("f16", "bf16", "f32", "f64"):
            if new != tensor["dtype"]:

                def change(tensor: Json, new: str = new) -> None:
                    tensor["dtype"] = new

                yield from _in_scopes(f"type {new}", tensor["name"], change)


@mutation
def size(graph: Json, _: random.Random) -> Iterator[Edit]:
    changes: dict[str, Callable[[int], int]] = {
        "halved": lambda x: max(1, x // 2), "doubled": lambda x: 2 * x, "one more": lambda x: x + 1,
        "one less": lambda x: x - 1, "one": lambda x: 1,
    }  # fmt: skip
    frames = [("the kernel graph", -1), *((f"kernel {number}", number) for number, _ in blocks(graph))]
    for axis in sorted({axis for _, block in blocks(graph) for axis in block["sizes"]}):
        for what, new in changes.items():

            def everywhere(graph: Json, axis: str = axis, new: Callable[[int], int] = new) -> None:
                for sizes in (graph["sizes"], *(block["sizes"] for _, block in blocks(graph))):
                    if axis in sizes:
                        sizes[axis] = new(sizes[axis])

            yield f"size of {axis} {what} everywhere", everywhere
            for where, number in frames:

                def alone(graph: Json, axis: str = axis, new: Callable[[int], int] = new, number: int = number) -> None:
                    sizes = graph["sizes"] if number < 0 else graph["kernels"][number]["block"]["sizes"]
                    if axis in sizes:
                        sizes[axis] = new(sizes[axis])

                yield f"size of {axis} {what} in {where}", alone


@mutation
def dense_size(graph: Json, _: random.Random) -> Iterator[Edit]:
    """An axis of another size everywhere, with the strides of tensors of that size."""
    for axis in graph["sizes"]:
        for new in (lambda x: max(1, x // 2), lambda x: 2 * x, lambda x: x + 8):

            def apply(graph: Json, axis: str = axis, new: Callable[[int], int] = new) -> None:
                for frame in (graph, *(block for _, block in blocks(graph))):
                    if axis in frame["sizes"]:
                        frame["sizes"][axis] = new(frame["sizes"][axis])
                    for tensor in frame["tensors"]:
                        step = 1
                        for at in range(len(tensor["dims"]) - 1, -1, -1):
                            tensor["strides"][at] = step
                            for one in tensor["dims"][at]:
                                step *= frame["sizes"].get(one, 1)

            yield f"{axis} of another size, dense", apply


@mutation
def parts_exchanged(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Of a dimension that is made of several axes: their order."""
    for kernel, block in blocks(graph):
        for at, tensor in enumerate(block["tensors"]):
            for number, dim in enumerate(tensor["dims"]):
                if len(dim) > 1:

                    def apply(graph: Json, kernel: int = kernel, at: int = at, number: int = number) -> None:
                        tensor = graph["kernels"][kernel]["block"]["tensors"][at]
                        tensor["dims"][number] = tensor["dims"][number][::-1]

                    yield f"axes of dimension {number} of {tensor['name']} turned", apply


@mutation
def window(graph: Json, _: random.Random) -> Iterator[Edit]:
    """A window moved, stepped otherwise, dropped; a change that keeps the extent of the dimension, too."""
    for tensor in graph["tensors"]:
        for at in range(len(tensor.get("windows", ()))):
            changes: dict[str, dict[str, int]] = {
                f"{key} {step:+d}": {key: step}
                for key in ("pad", "rest", "stride", "dilation", "spread", "taps", "dim")
                for step in (1, -1)
            }
            changes |= {
                "moved back": {"pad": 1, "rest": 1},
                "moved on": {"pad": -1, "rest": -1},
                "far back": {"pad": 2, "rest": 2},
            }
            for what, steps in changes.items():

                def change(tensor: Json, at: int = at, steps: dict[str, int] = steps) -> None:
                    for key, step in steps.items():
                        tensor["windows"][at][key] = tensor["windows"][at].get(key, 1) + step

                yield from _in_scopes(f"window {at} {what}", tensor["name"], change)
            for key in ("stride", "dilation"):

                def held(tensor: Json, at: int = at, key: str = key) -> None:
                    """The same extent: `rest` makes up for it."""
                    window = tensor["windows"][at]
                    dim = tensor["dims"][window["dim"]]
                    axes = dim[: len(dim) - window["taps"]] if key == "stride" else dim[len(dim) - window["taps"] :]
                    count = 1
                    for axis in axes:
                        count *= graph["sizes"].get(axis, 1)
                    window[key] += 1
                    window["rest"] -= count - 1

                yield from _in_scopes(f"window {at} of {key} one more, same extent", tensor["name"], held)

            def edge(tensor: Json, at: int = at) -> None:
                """Zeros beyond the dimension for elements of the window, or the other way round."""
                window = tensor["windows"][at]
                window["edge"] = not window.get("edge", False)

            yield from _in_scopes(f"window {at} of another edge", tensor["name"], edge)

            def gone(tensor: Json, at: int = at) -> None:
                del tensor["windows"][at]

            yield from _in_scopes(f"window {at} gone", tensor["name"], gone)
