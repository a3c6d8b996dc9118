"""What is true of a μGraph document: is it the program, by memory and in float64?

At the graph's own sizes and tiles; then at smaller sizes, of a program with a range; then with other tiles. A graph is
wrong where it touches memory it must not, has no meaning, takes a tensor for another than PyTorch hands over, leaves a
result unwritten, or gives other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.trust.interpreter import run_block
from tests.trust.library import run_library
from tests.trust.memory import Buffer, Floats, Json, Wrong, shape_of
from tests.trust.numbers import close_to
from tests.trust.pool import Entry
from tests.trust.reference import SETS, Interface, Reference, reference
from tests.trust.threads import run_by_threads, thread_violation


@dataclass(frozen=True)
class Truth:
    """wrong: "" where the graph is the program; else "interface", "memory" (or no meaning), "numbers", "threads",
    "sizes" (wrong at a smaller size of the range alone) or "tiles" (wrong with other tiles alone)"""

    wrong: str
    reason: str = ""


def judge(entry: Entry, graph: Json) -> Truth:
    """Never raises for a wrong graph."""
    whole = reference(entry, entry.steps[-1])
    try:
        bound = bindings(entry, graph, whole)
        found = different_interface(graph, bound, whole)
        if found:
            return Truth("interface", found)
        difference = differs(whole, run_graph(graph, bound, whole, {}))
        if difference:
            return Truth("numbers", difference)
    except Wrong as error:
        return Truth("memory", str(error))
    try:
        for kernel in graph["kernels"]:
            found = thread_violation(kernel)
            if found:
                return Truth("threads", found)
        if run_by_threads(graph) is not graph:
            difference = differs(whole, run_graph(run_by_threads(graph), bound, whole, {}))
            if difference:
                return Truth("threads", f"by its thread graphs, {difference}")
    except Wrong as error:
        return Truth("threads", str(error))
    try:
        for step in entry.steps[:-1]:
            small = reference(entry, step)
            difference = differs(small, run_graph(graph, bound, small, sizes_at(entry, graph, bound, step)))
            if difference:
                return Truth("sizes", f"at {step}, {difference}")
    except Wrong as error:
        return Truth("sizes", f"at {step}, {error}")
    try:
        for other in other_tiles(graph):
            difference = differs(whole, run_graph(other, bound, whole, {}))
            if difference:
                return Truth("tiles", difference)
    except Wrong as error:
        return Truth("tiles", str(error))
    return Truth("")


def bindings(entry: Entry, graph: Json, whole: Reference) -> dict[str, str]:
    """Graph's tensor -> the program's: by name; where names differ, by position; a tensor that the graph does not list
    is the same memory as a listed one of its source."""
    bound: dict[str, str] = {}
    for theirs, ours in ((graph["inputs"], list(whole.inputs)), (graph["outputs"], list(whole.results))):
        if len(set(theirs)) != len(theirs):
            raise Wrong("a tensor is listed twice")
        if set(theirs) <= set(ours):
            bound.update({name: name for name in theirs})
        elif len(theirs) == len(ours):
            bound.update(zip(theirs, ours, strict=True))
        else:
            raise Wrong(f"the graph has {len(theirs)} tensors for {len(ours)} of the program")
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    sources = {tensors[name]["source"]: of for name, of in bound.items() if name in tensors and tensors[name]["source"]}
    for name, tensor in tensors.items():
        if name in bound:
            continue
        if name in whole.inputs:
            bound[name] = name
        elif tensor.get("source") in sources and sources[tensor["source"]] in whole.inputs:
            bound[name] = sources[tensor["source"]]
    if not set(whole.results) <= set(bound.values()) or not bound.keys() <= tensors.keys():
        raise Wrong("an output of the program is none of the graph, or a listed name is no tensor")
    return bound


def different_interface(graph: Json, bound: Mapping[str, str], whole: Reference) -> str:
    """A tensor that the graph, or a kernel in it, takes for another than PyTorch has; "" if there is none."""
    real = {**whole.inputs, **whole.results}
    own = {tensor["name"]: tensor for tensor in graph["tensors"]}
    places = [("the graph", graph), *((kernel["name"], kernel["block"]) for kernel in graph["kernels"])]
    for where, frame in places:
        if frame is None:
            continue
        for tensor in frame["tensors"]:
            name = tensor["name"]
            dtype, shape = tensor["dtype"], shape_of(tensor, frame["sizes"])
            if name in bound:
                expected = real[bound[name]]
                seen = Interface(dtype, shape, tuple(tensor["strides"]))
                if (dtype, shape) != (expected.dtype, expected.shape) or _steps(seen) != _steps(expected):
                    return f"{where} takes {name} for {seen}; PyTorch has {expected}"
            elif name in own and dtype != own[name]["dtype"]:
                return f"{where} takes {name} for {dtype}; it is {own[name]['dtype']}"
    return ""


def _steps(tensor: Interface) -> list[int]:
    """Of a dimension of one element the stride says nothing."""
    if len(tensor.shape) != len(tensor.strides):
        return [-1]
    return [stride for size, stride in zip(tensor.shape, tensor.strides, strict=True) if size > 1]


def sizes_at(entry: Entry, graph: Json, bound: Mapping[str, str], step: int) -> dict[str, int]:
    """Graph's axes that vary with the program's size, at a step. Raises Wrong where an axis is cut that varies."""
    varying = entry.program.get("least", {})
    ours = {tensor["name"]: tensor for tensor in (*entry.program["tensors"], *entry.program["outputs"].values())}
    found: dict[str, int] = {}
    for frame in (graph, *(kernel["block"] for kernel in graph["kernels"])):
        for tensor in frame["tensors"] if frame else ():
            if tensor["name"] not in bound:
                continue
            for dim, own in zip(tensor["dims"], ours[bound[tensor["name"]]]["dims"], strict=True):
                for axis in set(own) & set(varying):
                    if len(own) != 1 or len(dim) != 1:
                        raise Wrong(f"axis {axis} varies and is cut")
                    found[dim[0]] = step
    return found


def run_graph(graph: Json, bound: Mapping[str, str], whole: Reference, sizes: Mapping[str, int]) -> dict[str, Floats]:
    """Output -> its numbers, [sets, *shape], NaN where nothing was written. Raises Wrong."""
    memory: dict[str, Buffer] = {}
    for tensor in graph["tensors"]:
        name = tensor["name"]
        if name in bound and bound[name] in whole.inputs:
            memory[name] = whole.buffers[bound[name]]
        elif name in bound:
            memory[name] = Buffer(len(SETS), whole.results[bound[name]].extent)
        else:
            known = {**graph["sizes"], **{axis: n for axis, n in sizes.items() if axis in graph["sizes"]}}
            shape = shape_of(tensor, known)
            memory[name] = Buffer(len(SETS), _elements(shape, tensor["strides"], name))
    inputs = {name for name, of in bound.items() if of in whole.inputs}
    for kernel in graph["kernels"]:
        block = kernel["block"]
        if block is None:
            raise Wrong(f"{kernel['name']} does not say what it computes")
        written = {op["tensor"] for op in block["ops"] if op["kind"] == "store"}
        if written & inputs:
            raise Wrong(f"{kernel['name']} writes to an input")
        if kernel["kind"] == "library":
            run_library(kernel, memory, sizes)
        else:
            run_block(block, kernel["schedule"], memory, sizes)
    found: dict[str, Floats] = {}
    for name, of in bound.items():
        if of in whole.results:
            buffer, places = memory[name], whole.results[of].places()
            if not buffer.written[places].all():
                raise Wrong(f"elements of {of} are never written")
            found[of] = buffer.data[:, places]
    return found


def _elements(shape: tuple[int, ...], strides: list[int], name: str) -> int:
    if len(shape) != len(strides) or any(not isinstance(stride, int) or stride < 0 for stride in strides):
        raise Wrong(f"{name} has strides that no memory has")
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def differs(whole: Reference, found: Mapping[str, Floats]) -> str:
    """Where, by how much; "" where the numbers are the program's."""
    for name, expected in whole.values.items():
        close = close_to(found[name], expected)
        if not close.all():
            sets = [kind for kind, right in zip(SETS, close.reshape(len(SETS), -1).all(1), strict=True) if not right]
            return f"{int((~close).sum())} of {close.size} elements of {name} differ, at inputs {', '.join(sets)}"
    return ""


def other_tiles(graph: Json) -> Iterator[Json]:
    """The graph with the tiles of its loops and of the axes that are cut halved, and doubled."""
    for change in (lambda tile: max(1, tile // 2), lambda tile: tile * 2):
        kernels: list[Json] = []
        changed = False
        for kernel in graph["kernels"]:
            if kernel["kind"] == "library":
                kernels.append(kernel)
                continue
            schedule, sizes = kernel["schedule"], kernel["block"]["sizes"]
            grid = [[axis, change(tile) if tile < sizes[axis] else tile] for axis, tile in schedule["grid"]]
            loops = {axis: change(tile) for axis, tile in schedule["loops"].items()}
            changed = changed or grid != schedule["grid"] or loops != schedule["loops"]
            kernels.append({**kernel, "schedule": {**schedule, "grid": grid, "loops": loops}})
        if changed:
            yield {**graph, "kernels": kernels}
