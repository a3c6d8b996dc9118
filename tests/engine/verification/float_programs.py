"""Programs that are tested in floats."""

from __future__ import annotations

import re
from dataclasses import replace

from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import DType
from mugraph.ir.transforms.resizing import resize
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.graphs import attention, rms_norm_linear
from tests.engine.verification.kernels import ATTENTION, RMS_NORM_LINEAR, with_constants

NORM = with_constants(RMS_NORM_LINEAR, BB=20, HH=100, NN=72, INV_H=1 / 1024)
SOFTMAX = with_constants(ATTENTION, HEADS=2, MM=40, NN=72, DD=64)


def retyped(program: TensorProgram, dtype: DType) -> TensorProgram:
    return replace(
        program,
        tensors=tuple(replace(t, dtype=dtype) for t in program.tensors),
        outputs={name: replace(t, dtype=dtype) for name, t in program.outputs.items()},
    )


def norm_program(dtype: DType = "f16") -> TensorProgram:
    return retyped(resize(rms_norm_linear().program, {"b": 20, "h": 100, "n": 72}), dtype)


def softmax_program(dtype: DType = "f16") -> TensorProgram:
    return retyped(resize(attention().program, {"h": 2, "m": 40, "n": 72, "d": 64, "e": 64}), dtype)


def _exact(text: str, dtype: DType) -> str:
    """`tl.dot` cuts float32 numbers down to tf32, unless it is told not to."""
    if dtype != "f32" or "input_precision" in text:
        return text
    return re.sub(r"(tl\.dot\((?:[^()]|\([^()]*\))*)\)", r'\1, input_precision="ieee")', text)


def norm(tester: FloatTester, text: str, dtype: DType = "f16") -> FloatResult:
    return tester.test(_exact(text, dtype), "launch_rms_norm_linear", norm_program(dtype), ["x", "g", "w"], ["z"])


def softmax(tester: FloatTester, text: str, dtype: DType = "f16") -> FloatResult:
    return tester.test(_exact(text, dtype), "launch_attention", softmax_program(dtype), ["q", "k", "v"], ["o"])
