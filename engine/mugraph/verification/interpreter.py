"""Triton's interpreter computes bfloat16 as a GPU does after `patch_interpreter`."""

from __future__ import annotations

from typing import Any


def patch_interpreter() -> None:
    """Mend two things: `tl.dot` multiplies the raw bits of bfloat16, and a conversion between float32 and bfloat16 cuts
    off where a GPU rounds to the nearest, and gives other numbers for the smallest ones."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    builder: Any = interpreter.InterpreterBuilder
    handle: Any = interpreter.TensorHandle

    def widened(bits: Any) -> Any:
        return (bits.astype(np.uint32) << 16).view(np.float32)

    def narrowed(data: Any) -> Any:
        """To the nearest, ties to even; NaN stays NaN."""
        bits = np.ascontiguousarray(data, np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(data), 0x7FC0, rounded).astype(np.uint16)

    def as_float32(operand: Any) -> Any:
        if operand.dtype.scalar == tl.bfloat16:
            return widened(operand.data.view(np.uint16))
        return operand.data.astype(np.float32)

    dot, cast = builder.create_dot, builder.cast_impl

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        if {a.dtype.scalar, b.dtype.scalar} <= {tl.bfloat16, tl.float16, tl.float32}:
            product = np.matmul(as_float32(a), as_float32(b)) + d.data
            return handle(product.astype(d.data.dtype), d.dtype.scalar)
        return dot(self, a, b, d, *rest)

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        match src.dtype.scalar, dst_type.scalar:
            case tl.bfloat16, tl.float32:
                return handle(widened(src.data.view(np.uint16)), tl.float32)
            case tl.float32, tl.bfloat16:
                return handle(narrowed(src.data), tl.bfloat16)
            case _:
                return cast(self, src, dst_type)

    builder.create_dot, builder.cast_impl = create_dot, cast_impl
