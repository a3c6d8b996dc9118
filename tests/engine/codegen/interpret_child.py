"""Runs kernels in Triton's interpreter and prints, as JSON, each case's error relative to a float64 reference.

A process of its own: TRITON_INTERPRET must be set before triton is imported. Arguments: a folder for the kernels, then
names of cases (all when none is given).
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter
from mugraph.codegen.lower import lower

from tests.engine.codegen.cases import CASES, Case
from tests.engine.codegen.reference import reference

DTYPE = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def _patch_bf16_dot() -> None:
    """The interpreter multiplies bfloat16's raw bits; widen the operands first."""
    builder: Any = interpreter.InterpreterBuilder
    original = builder.create_dot

    def wide(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        bits = handle.data.astype(np.uint32) << 16
        return interpreter.TensorHandle(bits.view(np.float32), tl.float32)

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return original(self, wide(a), wide(b), *rest)

    builder.create_dot = create_dot


def run(name: str, case: Case, folder: Path) -> dict[str, Any]:
    block, schedule = case
    source = lower(block, schedule)
    path = folder / f"{name}.py"
    path.write_text(source.standalone())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    arguments: list[torch.Tensor] = []
    arrays: dict[str, Any] = {}
    for tensor in block.inputs:
        shape = tensor.shape(block.sizes)
        span = 1 + sum((n - 1) * s for n, s in zip(shape, tensor.strides, strict=True))
        memory = torch.randn(span, generator=generator).to(DTYPE[tensor.dtype])
        given = memory.as_strided(shape, tensor.strides)
        if tensor.name == "mask":  # an attention mask: the first tile of a row may be empty
            given[0, :64] = float("-inf")
            given[3, 10:] = float("-inf")
        if tensor.name == "holes":  # each in rows of its own, the last rows without
            given[0, 5], given[1, -1], given[2, 7], given[3] = float("nan"), float("inf"), float("-inf"), float("-inf")
        arguments.append(given)
        arrays[tensor.name] = given.double().numpy()
    before = [argument.clone() for argument in arguments]
    results = getattr(module, f"launch_{source.name}")(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    expected = reference(block, arrays)
    error = 0.0
    for tensor, result in zip(block.outputs, results, strict=True):
        want, got = expected[tensor.name], result.double().numpy()
        assert got.shape == want.shape, (tensor.name, got.shape, want.shape)
        assert result.dtype == DTYPE[tensor.dtype]
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        with np.errstate(invalid="ignore"):
            difference = float(np.where(same, 0.0, np.abs(got - want)).max() / np.abs(want[np.isfinite(want)]).max())
        error = max(error, difference) if np.isfinite(difference) else float("inf")
    unchanged = all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(before, arguments, strict=True))
    return {"error": error, "inputs_unchanged": unchanged}


def main() -> None:
    _patch_bf16_dot()
    folder = Path(sys.argv[1])
    results: dict[str, Any] = {}
    for name in sys.argv[2:] or CASES:
        try:
            results[name] = run(name, CASES[name], folder)
        except Exception:
            results[name] = {"failed": traceback.format_exc()}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
