"""TF32 numbers: float32 with ten bits of the mantissa written down, of which tensor cores multiply."""

from __future__ import annotations

_BITS = "(({x}.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)"
ROUNDED = f"tl.where({{x}} == {{x}}, {_BITS}, {{x}})"
"""Triton's text for the nearest one to a float32, half away from zero: what `cvt.rna.tf32.f32` gives. It is in whole
numbers, which Triton's interpreter runs as well. NaN stays as it is: a carry could make a zero of it."""
EPSILON = 2.0**-11
"""Largest relative error of that rounding."""
