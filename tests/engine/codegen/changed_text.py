"""Kernels whose text is changed in one place."""

from __future__ import annotations

from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.triton_text.check import check_text


def passes(lowered: tuple[TensorProgram, KernelSource], old: str = "", new: str = "") -> bool:
    """Whether the check of a kernel's text takes it, once `old` in it is `new`."""
    program, source = lowered
    text = source.standalone()
    assert old in text
    text = text.replace(old, new)
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (source.inputs, source.outputs))
    return check_text(program, text, f"launch_{source.name}", inputs, outputs).passed
