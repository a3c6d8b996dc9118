"""Rewrites of names, order and axes: another way to say the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.trust.memory import Json
from tests.trust.mutations.edits import Edit, blocks, generated, settle
from tests.trust.rewrites.sites import rewrite


def _axes_renamed(graph: Json, _: random.Random) -> Iterator[Edit]:
    def renamed(names: Callable[[int, str], str]) -> Callable[[Json], None]:
        """names: from the number of the kernel (-1 for the kernel graph) and the axis"""

        def apply(graph: Json) -> None:
            _rename_axes(graph, lambda axis: names(-1, axis))
            for number, kernel in enumerate(graph["kernels"]):
                if kernel["block"]:
                    _rename_axes(kernel["block"], lambda axis, number=number: names(number, axis))
                if "schedule" in kernel:
                    schedule = kernel["schedule"]
                    schedule["grid"] = [[names(number, axis), tile] for axis, tile in schedule["grid"]]
                    schedule["loops"] = {names(number, axis): tile for axis, tile in schedule["loops"].items()}
                for thread in kernel.get("threads", ()):
                    _rename_ops(thread["ops"], lambda axis, number=number: names(number, axis))

        return apply

    yield "every axis", renamed(lambda _, axis: f"{axis}_axis")
    yield "in the kernels alone", renamed(lambda number, axis: axis if number < 0 else f"{axis}_axis")
    yield "in each kernel otherwise", renamed(lambda number, axis: f"{axis}_{number + 1}")
    axes = sorted({axis for _, block in blocks(graph) for axis in block["sizes"]})
    turned = dict(zip(axes, axes[1:] + axes[:1], strict=True))
    yield "names of axes exchanged", renamed(lambda _, axis: turned.get(axis, axis))


def _rename_ops(ops: list[Json], name: Callable[[str], str]) -> None:
    for op in ops:
        for key in ("rows", "columns"):
            op[key] = [name(axis) for axis in op[key]]
        for key in ("axes", "over"):
            op[key] = sorted(name(axis) for axis in op[key])


def _rename_axes(frame: Json, name: Callable[[str], str]) -> None:
    def loops(nest: list[Json]) -> list[Json]:
        return [{"axis": name(loop["axis"]), "body": loops(loop.get("body", []))} for loop in nest]

    frame["sizes"] = {name(axis): size for axis, size in frame["sizes"].items()}
    for tensor in frame["tensors"]:
        tensor["dims"] = [[name(axis) for axis in dim] for dim in tensor["dims"]]
    if "ops" in frame:
        _rename_ops(frame["ops"], name)
        frame["loops"] = loops(frame["loops"])


def _values_renamed(graph: Json, _: random.Random) -> Iterator[Edit]:
    def apply(graph: Json) -> None:
        for number, block in blocks(graph):
            for op in block["ops"]:
                op["name"] = f"value_{op['name']}"
                op["inputs"] = [f"value_{name}" for name in op["inputs"]]
            settle(graph, number)

    yield "values", apply


def _tensors_renamed(graph: Json, _: random.Random) -> Iterator[Edit]:
    """All of them, matched by position then; or what kernels hand to one another."""
    listed = {*graph["inputs"], *graph["outputs"]}
    aliases = {t["name"] for t in graph["tensors"]} - listed - _written(graph)

    def renamed(name: Callable[[str], str]) -> Callable[[Json], None]:
        def apply(graph: Json) -> None:
            for frame in (graph, *(block for _, block in blocks(graph))):
                for tensor in frame["tensors"]:
                    tensor["name"] = name(tensor["name"])
            for number, block in blocks(graph):
                for op in block["ops"]:
                    op["tensor"] = name(op["tensor"]) if op["tensor"] else ""
                settle(graph, number)
            for key in ("inputs", "outputs"):
                graph[key] = [name(one) for one in graph[key]]
            for kernel in graph["kernels"]:
                if kernel["kind"] == "library":
                    for key in ("inputs", "outputs"):
                        kernel[key] = [name(one) for one in kernel[key]]

        return apply

    has_calls = any(kernel["kind"] == "library" for kernel in graph["kernels"])
    if not has_calls and not aliases:
        yield "every tensor", renamed(lambda name: f"{name}_tensor")
    handed = {t["name"] for t in graph["tensors"]} - listed - aliases
    if handed and not has_calls:
        yield "what kernels hand on", renamed(lambda name: f"{name}_tensor" if name in handed else name)


def _written(graph: Json) -> set[str]:
    return {op["tensor"] for _, block in blocks(graph) for op in block["ops"] if op["kind"] == "store"}


def _another_order(graph: Json, rng: random.Random) -> Iterator[Edit]:
    """Operators in another order in which each comes after what it needs."""
    for number, block in blocks(graph):
        for _ in range(2):
            waiting, ordered = list(block["ops"]), list[Json]()
            done = set[str]()
            while waiting:
                ready = [op for op in waiting if set(op["inputs"]) <= done]
                chosen = rng.choice(ready)
                waiting.remove(chosen)
                ordered.append(chosen)
                done.add(chosen["name"])
            names = [op["name"] for op in ordered]

            def apply(graph: Json, number: int = number, names: list[str] = names) -> None:
                ops = {op["name"]: op for op in graph["kernels"][number]["block"]["ops"]}
                graph["kernels"][number]["block"]["ops"] = [ops[name] for name in names]
                settle(graph, number)

            yield f"operators of kernel {number}", apply


def _axis_split(graph: Json, _: random.Random) -> Iterator[Edit]:
    """An axis as two: a summed one, whose sum is over both; or one of the output."""
    for number, kernel in generated(graph):
        block = kernel["block"]
        taken = {axis for axis, _ in kernel["schedule"]["grid"]} | set(kernel["schedule"]["loops"])
        masked = {axis for op in block["ops"] for axis in (*op["rows"], *op["columns"])}
        windowed = {a for t in block["tensors"] for w in t.get("windows", ()) for a in t["dims"][w["dim"]]}
        for axis, size in block["sizes"].items():
            part = next((part for part in (8, 5, 4, 3, 2) if size % part == 0 and size > part), None)
            if part is None or axis in taken or axis in windowed:
                continue

            def apply(graph: Json, number: int = number, axis: str = axis, part: int = part) -> None:
                block = graph["kernels"][number]["block"]
                outer, inner = f"{axis}_outer", f"{axis}_inner"

                def split(axes: list[str]) -> list[str]:
                    return [one for old in axes for one in ([outer, inner] if old == axis else [old])]

                block["sizes"] = {
                    **{a: n for a, n in block["sizes"].items() if a != axis},
                    outer: block["sizes"][axis] // part,
                    inner: part,
                }
                for tensor in block["tensors"]:
                    tensor["dims"] = [split(dim) for dim in tensor["dims"]]
                for op in block["ops"]:
                    for key in ("over", "rows", "columns"):
                        op[key] = split(op[key])
                settle(graph, number)

            yield f"axis {axis} split in kernel {number}{' (of a mask)' if axis in masked else ''}", apply


def _loop_split(graph: Json, _: random.Random) -> Iterator[Edit]:
    """A looped axis as two: a loop over one of them, all of the other in a tile."""
    for number, kernel in generated(graph):
        block = kernel["block"]
        windowed = {a for t in block["tensors"] for w in t.get("windows", ()) for a in t["dims"][w["dim"]]}
        for loop in block["loops"]:
            axis, size = loop["axis"], block["sizes"][loop["axis"]]
            part = next((part for part in (8, 5, 4, 3, 2) if size % part == 0 and size > part), None)
            if part is None or loop.get("body") or axis in windowed:
                continue

            def apply(graph: Json, number: int = number, axis: str = axis, part: int = part) -> None:
                kernel = graph["kernels"][number]
                block, schedule = kernel["block"], kernel["schedule"]
                outer, inner = f"{axis}_outer", f"{axis}_inner"

                def split(axes: list[str]) -> list[str]:
                    return [one for old in axes for one in ([outer, inner] if old == axis else [old])]

                count = block["sizes"].pop(axis) // part
                block["sizes"].update({outer: count, inner: part})
                for tensor in block["tensors"]:
                    tensor["dims"] = [split(dim) for dim in tensor["dims"]]
                for op in block["ops"]:
                    for key in ("rows", "columns"):
                        op[key] = split(op[key])
                    op["over"] = [outer] if op["kind"] == "accum" and op["over"] == [axis] else split(op["over"])
                for one in block["loops"]:
                    one["axis"] = outer if one["axis"] == axis else one["axis"]
                del schedule["loops"][axis]
                schedule["loops"][outer] = 1  # as one dimension of a product both cannot be in a tile
                settle(graph, number)

            yield f"loop over {axis} split in kernel {number}", apply


def _schedule(graph: Json, _: random.Random) -> Iterator[Edit]:
    """Other tiles, another order of the grid, other warps."""
    for number, kernel in generated(graph):
        if kernel["schedule"]["loops"]:

            def tiles(graph: Json, number: int = number) -> None:
                loops = graph["kernels"][number]["schedule"]["loops"]
                loops.update({axis: max(1, tile // 2) for axis, tile in loops.items()})

            yield f"smaller tiles in kernel {number}", tiles

        def turned(graph: Json, number: int = number) -> None:
            schedule = graph["kernels"][number]["schedule"]
            schedule["grid"].reverse()
            schedule.update(num_warps=8, num_stages=2)

        yield f"another launch of kernel {number}", turned


rewrite("axes_renamed", _axes_renamed)
rewrite("values_renamed", _values_renamed)
rewrite("tensors_renamed", _tensors_renamed)
rewrite("another_order", _another_order)
rewrite("axis_split", _axis_split)
rewrite("loop_split", _loop_split)
rewrite("schedule", _schedule)
