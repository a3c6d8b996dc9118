"""The samples' functions and their arguments, as their comments declare them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import torch

SAMPLES = Path(__file__).parents[2] / "samples"


DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
ARGUMENT = re.compile(r"(\w+)=(\w+)\[([^\]]*)\]")
SIZE = re.compile(r"(\w+)=(\d+)")


def declarations(path: Path) -> Iterator[tuple[str, str]]:
    """Name and `# mugraph:` comment of each function and class that has one."""
    source = path.read_text()
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            above = lines[first - 2] if first > 1 else ""
            if above.startswith("# mugraph: "):
                yield node.name, above.removeprefix("# mugraph: ")


def arguments(function: object, comment: str) -> dict[str, torch.Tensor]:
    """By the comment's shapes, or by jaxtyping annotations whose names the comment binds; those are not evaluated."""
    declared = {
        name: torch.empty([int(size) for size in shape.split(",")], dtype=DTYPES[dtype])
        for name, dtype, shape in ARGUMENT.findall(comment)
    }
    if declared:
        return declared
    bound = {name: int(size) for name, size in SIZE.findall(comment)}
    assert inspect.isfunction(function)
    return {
        name: torch.empty([bound.get(size) or int(size) for size in words(annotation)], dtype=torch.float16)
        for name, annotation in inspect.get_annotations(function).items()
        if name != "return"
    }


def words(annotation: str) -> list[str]:
    """Those of the shape in "Float16[Tensor, 'b 64']"."""
    return annotation.split("'")[1].split()  # as Python writes a string again
