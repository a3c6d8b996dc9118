"""Of recorded code the call that computes it, that call run, and the kernel graph that it is alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.drawing import draw_svg, draw_tree
from mugraph.ir.json import mugraph_from_json, mugraph_to_json
from mugraph.ir.library import LibraryCall, library_call
from mugraph.ir.mugraph import LibraryKernel, MuGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.text import format_mugraph, parse_mugraph
from mugraph.optimizer.nodes import LIBRARY, node_of
from mugraph.search.direct import as_block
from mugraph.triton_text.check import check_text
from mugraph.verification.document import verify_mugraph

from tests.engine.ops.harness import lower_region, record

Made = Callable[..., torch.Tensor]
Tensors = Mapping[str, torch.Tensor]


def program_of(function: Made, tensors: Tensors) -> TensorProgram:
    return lower_region(record(function, tensors)).program


def call_of(function: Made, tensors: Tensors) -> LibraryCall | None:
    return library_call(as_block(program_of(function, tensors)))


def check_call(call: LibraryCall, function: Made, tensors: Tensors, atol: float = 1e-12) -> None:
    """It computes what the code does, in float64, and knows the shape of its result without memory."""
    wide = {name: tensor.double() for name, tensor in tensors.items()}
    lying = {view.tensor.name: view.own_shape for view in (*call.operands, call.out)}  # dimensions may lie as one
    expected = function(**wide).reshape(lying["out"])
    wide = {name: tensor.reshape(lying[name]) for name, tensor in wide.items() if name in lying}
    for device, given in (("cpu", wide), ("meta", {name: tensor.to("meta") for name, tensor in wide.items()})):
        out = torch.full(expected.shape, float("nan"), dtype=torch.float64, device=device)
        scope: dict[str, Any] = {"torch": torch, **given, "out": out}
        exec(call.text({name: name for name in (*wide, "out")}), scope)
        assert scope["out"].shape == expected.shape
        assert scope["out"].is_contiguous()
        if device == "cpu":
            torch.testing.assert_close(scope["out"], expected, rtol=atol, atol=atol)


def graph_of(program: TensorProgram) -> tuple[MuGraph, LibraryKernel]:
    """The program as one pre-defined kernel."""
    block = as_block(program)
    kernel = node_of(block, LIBRARY)
    assert isinstance(kernel, LibraryKernel)
    names = tuple(tensor.name for tensor in block.inputs), tuple(tensor.name for tensor in block.outputs)
    return MuGraph("alone", program.sizes, block.tensors, *names, (kernel,)), kernel


def check_graph(program: TensorProgram, *wrong: tuple[str, str]) -> None:
    """It is verified, and the text of its launcher is read as the program over the fields; no longer with a part of
    its call replaced."""
    graph, kernel = graph_of(program)
    verdict = verify_mugraph(program, graph, 1)
    assert verdict.passed, verdict.reason
    assert parse_mugraph(format_mugraph(graph)) == graph
    assert mugraph_from_json(mugraph_to_json(graph)) == graph
    function = kernel.call.partition("(")[0]
    assert function in format_mugraph(graph)
    assert function in draw_tree(graph)
    assert function.rpartition(".")[2] in draw_svg(graph)
    changed = replace(kernel, call=kernel.call + " ")
    assert not verify_mugraph(program, replace(graph, kernels=(changed,)), 1).passed
    source = lower_kernels([(as_block(program), LIBRARY)])
    names = [tensor.name for tensor in source.inputs], [tensor.name for tensor in source.outputs]
    text, launcher = source.standalone(), f"launch_{source.name}"
    found = check_text(program, text, launcher, *names, seed=2)
    assert found.passed, found.reason
    for old, new in wrong:
        assert old in text
        assert not check_text(program, text.replace(old, new), launcher, *names, seed=2).passed, new
