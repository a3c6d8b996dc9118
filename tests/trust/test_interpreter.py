"""The interpreter tells right from wrong where the truth is known: it is what all other truth here rests on."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.trust.judge import judge
from tests.trust.memory import OUTSIDE, Buffer, Json, Wrong, places_of
from tests.trust.mutations.edits import new_op
from tests.trust.pool import entry, names
from tests.trust.reference import SETS, reference


def tensor(dims: list[list[str]], strides: list[int], **fields: object) -> Json:
    return {"name": "x", "dims": dims, "strides": strides, **fields}


def test_places_are_torch_strides() -> None:
    places = places_of(tensor([["a"], ["b", "c"]], [100, 3]), ["a", "b", "c"], {"a": 2, "b": 3, "c": 4})
    assert places[1, 2, 3] == 100 + 3 * (2 * 4 + 3)
    assert places.shape == (2, 3, 4)


def test_a_window_reads_zero_where_there_is_no_place() -> None:
    window = {"dim": 0, "taps": 1, "stride": 2, "dilation": 1, "pad": 1, "rest": -1}
    read = tensor([["p", "t"]], [5], windows=[window])
    # Places -1 0 1 | 1 2 3 | 3 4 5 of a dimension of 5 elements.
    assert places_of(read, ["p", "t"], {"p": 3, "t": 3}).tolist() == [
        [OUTSIDE, 0, 5], [5, 10, 15], [15, 20, OUTSIDE]
    ]  # fmt: skip


def test_a_window_with_an_edge_reads_another_element_of_it() -> None:
    window = {"dim": 0, "taps": 1, "stride": 2, "dilation": 2, "pad": 3, "rest": -2, "edge": True}
    read = tensor([["p", "t"]], [5], windows=[window])
    # Places -3 -1 1 | -1 1 3 | 1 3 5 of a dimension of 4 elements.
    assert places_of(read, ["p", "t"], {"p": 3, "t": 3}).tolist() == [[5, 5, 5], [5, 5, 15], [5, 15, 15]]


def test_memory_says_what_is_wrong_with_an_access() -> None:
    memory = Buffer(1, 4)
    memory.write(np.array([0, 1]), np.array([[1.0, 2.0]]), "kernel")
    assert memory.read(np.array([1, OUTSIDE]), "kernel").tolist() == [[2.0, 0.0]]
    with pytest.raises(Wrong, match="never written"):
        memory.read(np.array([2]), "kernel")
    for place in (-1, 4):
        with pytest.raises(Wrong, match="outside"):
            memory.read(np.array([place]), "kernel")
        with pytest.raises(Wrong, match="outside"):
            memory.write(np.array([place]), np.array([[1.0]]), "kernel")
    memory.write(np.array([1]), np.array([[2.0]]), "kernel")
    with pytest.raises(Wrong, match="twice"):
        memory.write(np.array([1]), np.array([[3.0]]), "kernel")
    with pytest.raises(Wrong, match="twice"):
        memory.write(np.array([2, 2]), np.array([[3.0, 4.0]]), "kernel")


def test_what_pytorch_hands_over_is_in_its_own_memory() -> None:
    """A part of a tensor keeps the whole's strides, and what lies between its rows is not to be read."""
    rotary = entry("rotary_scores")
    whole = reference(rotary, 1)
    assert whole.inputs["q_part"].strides == (320, 16, 1)
    assert whole.inputs["q_part"].shape == (2, 20, 8)
    written = whole.buffers["q_part"].written
    assert written[:8].all()
    assert not written[8:16].any()


def test_inputs_are_of_several_kinds_and_a_range_of_three_sizes() -> None:
    ranged = entry("norm_linear_of_any_batch")
    assert len(SETS) >= 4
    assert ranged.steps[0] == 1
    assert [reference(ranged, step).inputs["x"].shape[0] for step in ranged.steps] == list(ranged.steps)


def _op(graph: Json, kind: str) -> Json:
    return next(op for kernel in graph["kernels"] for op in kernel["block"]["ops"] if op["kind"] == kind)


def _shift(graph: Json) -> None:
    for declared in (graph["tensors"], graph["kernels"][0]["block"]["tensors"]):
        next(one for one in declared if one["name"] == "x")["strides"] = [1, 20]


def _retiled(graph: Json) -> None:
    graph["kernels"][0]["schedule"]["grid"].append(["k", 8])


def _eps(graph: Json) -> None:
    eps = [op for op in graph["kernels"][0]["block"]["ops"] if op["kind"] == "const" and op["value"] == 1e-6]
    eps[0]["value"] = 1.02e-6


def _shorter(graph: Json) -> None:
    for frame in (graph, graph["kernels"][0]["block"]):
        frame["sizes"]["k"] = 32


def _half(graph: Json) -> None:
    for frame in (graph, graph["kernels"][0]["block"]):
        frame["sizes"]["m"] = 10


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda graph: None, ""),
        (_shift, "interface"),
        (_shorter, "interface"),
        (_half, "interface"),
        (_retiled, "memory"),
        (_eps, "numbers"),
        (lambda graph: graph["kernels"][0]["schedule"].update(num_warps=-1), "memory"),
        (lambda graph: graph["kernels"][0]["schedule"].update(grid=[]), ""),
        (lambda graph: graph["kernels"][0]["schedule"].update(grid=[["m", 0]]), "memory"),
        (lambda graph: _op(graph, "div").update(inputs=_op(graph, "div")["inputs"][::-1]), "numbers"),
        (lambda graph: graph["kernels"][0].update(threads=[]), ""),
        (lambda graph: graph["kernels"][0]["threads"][0].update(inputs=[]), "threads"),
        (lambda graph: graph.update(outputs=[]), "memory"),
    ],
)
def test_rms_norm(change: Callable[[Json], object], wrong: str) -> None:
    known = entry("rms_norm_linear")
    graph = copy.deepcopy(known.graphs[0])
    change(graph)
    truth = judge(known, graph)
    assert truth.wrong == wrong, truth


def test_a_sum_that_one_tile_holds_is_right_with_its_own_tiles_alone() -> None:
    """A loop's accumulator that is gone is no matter where the loop runs once; it is one with other tiles."""
    known = entry("gated_mlp")
    graph = copy.deepcopy(next(one for one in known.graphs if one["kernels"][0]["block"]["loops"]))
    accum = _op(graph, "accum")
    ops = graph["kernels"][0]["block"]["ops"]
    ops.remove(accum)
    for op in ops:
        op["inputs"] = [accum["inputs"][0] if name == accum["name"] else name for name in op["inputs"]]
    graph["kernels"][0]["threads"] = []
    assert judge(known, graph).wrong in ("memory", "numbers")
    loops = graph["kernels"][0]["schedule"]["loops"]
    loops.update(dict.fromkeys(loops, 64))
    for kernel in graph["kernels"][1:]:
        assert kernel["kind"] == "graph"
    assert judge(known, graph).wrong in ("tiles", "memory")


def test_a_range_is_judged_at_its_smaller_sizes() -> None:
    """The result times the number of rows over the most there may be."""
    known = entry("norm_linear_of_any_batch")
    graph = copy.deepcopy(known.graphs[0])
    kernel = graph["kernels"][0]
    kernel["schedule"]["grid"] = [pair for pair in kernel["schedule"]["grid"] if pair[0] != "m"]
    kernel["threads"] = []
    ops, store = kernel["block"]["ops"], _op(graph, "store")
    ops[-1:] = [
        new_op("ones", "mask", [], axes=["k", "m"], rows=["m"], columns=["k"], value=100.0),
        new_op("count", "sum", ["ones"], over=["k", "m"]),
        new_op("most", "const", [], value=1 / (20 * 40)),
        new_op("share", "mul", ["count", "most"]),
        new_op("scaled", "mul", [store["inputs"][0], "share"], axes=["m", "n"]),
        {**store, "inputs": ["scaled"]},
    ]
    assert judge(known, graph).wrong == "sizes"


def test_the_reference_is_no_tensor_program() -> None:
    """What PyTorch computes in float64, for every program: finite, and not zero."""
    for name in names():
        for step in entry(name).steps:
            for values in reference(entry(name), step).values.values():
                assert np.isfinite(values).all(), name
                assert (np.abs(values).reshape(len(SETS), -1).max(1) > 0).all(), name


def test_nothing_that_says_what_is_true_is_the_engine() -> None:
    """Nor asks for anything that is."""
    folder = Path(__file__).parent
    waiting, seen = ["judge"], set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))):
            imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in imported:
                assert not module.startswith("mugraph"), name
                own = module.removeprefix("tests.trust.")
                if own != module and own not in seen:
                    waiting.append(own)
    assert seen == {"judge", "interpreter", "library", "meaning", "memory", "numbers", "pool", "reference", "threads"}
