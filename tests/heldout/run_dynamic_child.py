"""Runs a program with kernels of a dynamic size at several sizes, on the CPU; prints what happened as JSON.

A process of its own, as run_child.py is. Arguments: the original file, the edited one, its kernel module, "traced"
or "eager", the sizes: "7", or of several "b=2,t=7".
For each size: {"error", "eager": ||out - ref|| / ||ref|| of the kernel's and the original's result, ref in float64,
"same": it is the original to the bit, "strides", "launches"}; and what torch.compile and torch.export made of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from mugraph.ir.ranges import SizeRange
from mugraph.trace.run.entries import find_definitions
from mugraph.trace.syntax.shapes import TensorSpec
from mugraph.trace.syntax.source import Source
from mugraph.verification.interpreter import patch_interpreter
from torch import nn

from tests.heldout.run_child import DTYPES, counted, distance, load, made, strides


def inputs_at(path: Path, size: str) -> list[torch.Tensor]:
    point = {name: int(at) for name, _, at in (part.rpartition("=") for part in size.split(","))}
    (entry,) = find_definitions(
        Source(str(path), path.read_text()), pick=lambda one: point.get(one.name, point.get("", 0))
    ).entries
    generator = torch.Generator().manual_seed(sum(point.values()))
    specs = [entry.arguments[name] for name in entry.positional]
    tensors = [spec for spec in specs if isinstance(spec, TensorSpec)]
    return [torch.randn(spec.shape, generator=generator).to(DTYPES[spec.dtype]) for spec in tensors]


def at_size(before: Any, after: Any, exact: Any, path: Path, size: str, launches: list[str]) -> dict[str, Any]:
    inputs = inputs_at(path, size)
    eager = before(*inputs)
    reference = exact(*(tensor.double() for tensor in inputs)).double()
    launches.clear()
    result = after(*inputs)
    return {
        "error": distance(result, reference),
        "eager": distance(eager, reference),
        "same": bool(torch.equal(eager, result)),
        "strides": strides(eager) == strides(result) and eager.shape == result.shape,
        "launches": list(launches),
    }


def compiled(after: Any, path: Path, sizes: list[str], launches: list[str]) -> dict[str, Any]:
    """One graph for all sizes, without a break; the operator is in it, and it computes what the code does."""
    graphs: list[str] = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(graph.code)
        return graph

    function = torch.compile(after, dynamic=True, fullgraph=True, backend=backend)
    equal = all(torch.equal(function(*inputs_at(path, size)), after(*inputs_at(path, size))) for size in sizes)
    return {"graphs": len(graphs), "operator": all("mugraph" in code for code in graphs), "equal": equal}


def exported(after: Any, path: Path, sizes: list[str], ranges: Sequence[SizeRange]) -> dict[str, Any]:
    """torch.export with dimensions of the same ranges."""
    module = after if isinstance(after, nn.Module) else Called(after)
    dims = {one.name: torch.export.Dim(one.name, min=2, max=one.largest) for one in ranges}
    largest = inputs_at(path, ",".join(f"{one.name}={one.largest}" for one in ranges))
    shapes: list[dict[int, Any]] = [{} for _ in largest]
    for one in ranges:
        less = ",".join(f"{other.name}={other.largest - (other is one)}" for other in ranges)
        for shape, full, part in zip(shapes, largest, inputs_at(path, less), strict=True):
            shape |= {
                at: dims[one.name] for at, (n, m) in enumerate(zip(full.shape, part.shape, strict=True)) if n != m
            }
    spec = (tuple(shapes),) if isinstance(module, Called) else tuple(shapes)
    program = torch.export.export(module, tuple(inputs_at(path, sizes[0])), dynamic_shapes=spec, strict=False)
    run = program.module()
    equal = all(torch.equal(run(*inputs_at(path, at)), after(*inputs_at(path, at))) for at in sizes)
    return {"operator": "mugraph" in program.graph_module.code, "equal": equal}


class Called(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


def main() -> None:
    original_path, edited_path, kernels_path = (Path(argument) for argument in sys.argv[1:4])
    traced, sizes = sys.argv[4] == "traced", sys.argv[5:]
    patch_interpreter()
    sys.path.insert(0, str(edited_path.parent))
    original, kernels, edited = load(original_path), load(kernels_path), load(edited_path)
    (entry,) = find_definitions(Source(str(original_path), original_path.read_text())).entries
    name = (entry.owner or entry.function).partition(".")[0]
    with torch.no_grad():
        before, after, exact = (made(module, name, 1) for module in (original, edited, original))
        if isinstance(exact, nn.Module):
            before, after, exact = before.half(), after.half(), made(original, name, 1).half().double()
        launches: list[str] = []
        for launcher in [key for key in vars(kernels) if key.startswith("launch_")]:
            setattr(kernels, launcher, counted(getattr(kernels, launcher), launcher, launches))
        kernels._tested_gpu = lambda kind, index: True
        result: dict[str, Any] = {size: at_size(before, after, exact, original_path, size, launches) for size in sizes}
        if traced:
            inside = [",".join(f"{one.name}={at + n}" for n, one in enumerate(entry.sizes)) for at in (3, 4)]
            result["compiled"] = compiled(after, original_path, inside, launches)
            result["exported"] = exported(after, original_path, inside, entry.sizes)
        result["checked"] = [kernels._check(case, torch.device("cpu")) for case in kernels._CASES]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
