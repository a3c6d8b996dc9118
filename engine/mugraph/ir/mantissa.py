"""Triton's text for bytes as numbers of float16 and float32, by the bits of the mantissa: 1024 + n is 0x6400 | n for
whole n below 1024. (Marlin and FasterTransformer unpack weights of four bits so: Kim et al., "Who Says Elephants Can't
Run", 2022.) In float32 0x4B400000 + n, as a whole number of 32 bits, is 12582912 + n for n from -2²² to below 2²².

In float16 it takes an operation on bits, and half of one in float16 (of two numbers at once), in place of a conversion
of each. Measured on an H200, linear of 4,096 to 14,336, the products' operands made so and converted, µs: 8 rows by
int8 23.7 and 28.1, by halves of bytes 25.2 and 32.3 (without the kernel that adds up two parts); 64 rows by int8 37.2
and 39.9.

One row is multiplied and summed in float32, and bytes are converted to it at a fraction of the rate at which numbers
are added. Kernels written by hand, on an H200 (28 November 2026), blocks of four columns and of two, µs: int8 16.3 and
17.8 so, 18.2 and 17.9 converted. Halves of bytes, of which two come of one load, gain nothing: 18.4 and 18.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.ir.dtypes import DType

_HALF = "tl.cast(tl.cast(tl.cast({bits}, tl.uint16) | 0x6400, tl.float16, bitcast=True) - {first}, tl.float16)"

OF_BYTES: Mapping[DType, str] = {
    "u8": _HALF.format(bits="{x}", first="1024.0"),
    # It lies 128 above its bits with the first one turned.
    "i8": _HALF.format(bits="tl.cast({x}, tl.uint8, bitcast=True) ^ 0x80", first="1152.0"),
}
"""By the type of {x}, which has been read and not computed with."""


SINGLES: Mapping[DType, str] = {
    "i8": "tl.cast(tl.cast(tl.cast({x}, tl.int32) + 0x4B400000, tl.float32, bitcast=True) - 12582912.0, tl.float32)"
}
"""In float32, likewise."""


def of_bits(bits: str) -> str:
    """Of an expression of uint8."""
    return OF_BYTES["u8"].replace("{x}", bits)
