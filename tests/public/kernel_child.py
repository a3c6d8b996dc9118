"""Runs launchers in Triton's interpreter, in float64: is one the same function as another? Questions come as lines of
JSON, [text, text, shapes]; answers are lines, too. A process of its own, that may crash."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch


def loaded(text: str, folder: Path, name: str) -> Any:
    for one in ("float32", "float16", "bfloat16"):
        text = text.replace(f"tl.{one}", "tl.float64").replace(f"torch.{one}", "torch.float64")
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(one: str, other: str, shapes: list[list[int]], folder: Path, number: int) -> str:
    right, changed = loaded(one, folder, f"right{number}"), loaded(other, folder, f"changed{number}")
    for seed in range(2):
        torch.manual_seed(seed)
        inputs = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
        expected, found = (module.launch(*(x.clone() for x in inputs)) for module in (right, changed))
        pairs = zip(*(x if isinstance(x, tuple | list) else (x,) for x in (expected, found)), strict=True)
        for a, b in pairs:
            if a.shape != b.shape or not torch.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True):
                return "different"
    return "equal"


def main() -> None:
    from mugraph.verification.interpreter import patch_interpreter

    patch_interpreter()
    torch.set_default_dtype(torch.float64)
    with tempfile.TemporaryDirectory(prefix="mugraph-public-") as folder:
        for number, line in enumerate(sys.stdin):
            one, other, shapes = json.loads(line)
            try:
                said = answer(one, other, shapes, Path(folder), number)
            except Exception as error:
                said = f"fails: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            print(said, flush=True)


if __name__ == "__main__":
    main()
