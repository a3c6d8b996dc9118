"""The evidence that a kernel module carries: each kernel's program and μGraph, and what was found of them, so that
anyone can verify them again. Packed, since nobody reads it; the comment above a region says it in words."""

from __future__ import annotations

import ast
import base64
import json
import re
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import msgspec

from mugraph.edit.module.seal import EVIDENCE as EVIDENCE
from mugraph.edit.source.record import text_hash
from mugraph.ir.json import FormatError, mugraph_from_json, mugraph_to_json, program_from_json, program_to_json
from mugraph.ir.mugraph import LibraryKernel, MuGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.verification.verdict import Verdict

_NOT_YET = "0" * 64
_DAMAGED = (SyntaxError, ValueError, TypeError, AttributeError, KeyError, zlib.error, FormatError, msgspec.MsgspecError)
_DIGEST = re.compile(rf"(?<=\n{EVIDENCE} = \{{\n    'sha256': ')[0-9a-f]{{64}}(?=',\n)")


@dataclass(frozen=True)
class Carried:
    """Of one kernel step: what was to be computed, what is run for it, and what was found of that."""

    program: TensorProgram
    graph: MuGraph
    verdict: Verdict


def carried_text(plans: Sequence[RegionPlan]) -> str:
    """Python text that assigns the evidence, its digest of the module not yet in it."""
    lines = [
        "# What `mugraph check` verifies again; nothing here runs.",
        f"{EVIDENCE} = {{",
        f"    'sha256': '{_NOT_YET}',",
    ]
    for plan in plans:
        lines.append(f"    {plan.name!r}: (")
        for step in plan.steps:
            if isinstance(step, KernelStep):
                parts = textwrap.wrap(_packed(step), 110)
                lines += [f"        {part!r}" for part in parts[:-1]] + [f"        {parts[-1]!r},"]
        lines.append("    ),")
    return "\n".join([*lines, "}"])


def sealed(text: str) -> str:
    """The module's text with the digest of all the rest in it."""
    return _DIGEST.sub(text_hash(_DIGEST.sub(_NOT_YET, text, count=1)), text, count=1)


def is_sealed(text: str) -> bool:
    """Whether the module is as it was written."""
    return _DIGEST.search(text) is not None and sealed(text) == text


def carried(text: str) -> Mapping[str, tuple[Carried, ...]] | None:
    """By region. None where the module has no evidence, or none that can be read."""
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == EVIDENCE:
                data = cast("dict[str, tuple[str, ...]]", ast.literal_eval(node.value))
                return {name: tuple(map(_unpacked, parts)) for name, parts in data.items() if name != "sha256"}
    except _DAMAGED:
        pass
    return None


def _packed(step: KernelStep) -> str:
    # The same text whatever the store had, and whichever blocks the random sample of the kernels' text took.
    same = {"float_from_store": False, "text": None}
    document = {
        "program": program_to_json(step.unit.program),
        "graph": mugraph_to_json(graph_of(step)),
        "verdict": asdict(step.verdict) | same,
    }
    return base64.b64encode(zlib.compress(json.dumps(document).encode(), 9)).decode()


def _unpacked(text: str) -> Carried:
    document = cast("dict[str, Any]", json.loads(zlib.decompress(base64.b64decode(text, validate=True))))
    verdict = msgspec.convert(document["verdict"], Verdict)
    return Carried(program_from_json(document["program"]), mugraph_from_json(document["graph"]), verdict)


def graph_of(step: KernelStep) -> MuGraph:
    """The kernels of one step, as a μGraph of their own."""
    program, tensors, sizes = step.unit.program, dict[str, Tensor](), dict(step.unit.program.sizes)
    for tensor in (*program.tensors, *program.outputs.values()):
        tensors[tensor.name] = tensor
    for kernel in step.kernels:
        block = kernel.block
        if isinstance(kernel, LibraryKernel) and block is None:
            continue
        assert block is not None
        sizes |= block.sizes
        for tensor in block.tensors:
            tensors.setdefault(tensor.name, tensor)
    inputs = tuple(tensor.name for tensor in program.tensors)
    outputs = tuple(tensor.name for tensor in program.outputs.values())
    around = step.kernel.name, sizes, tuple(tensors.values()), inputs, outputs
    return MuGraph(*around, step.kernels, step.one_launch, step.combined)
