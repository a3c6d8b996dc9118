"""Triton's text for bytes as numbers of float16, by the bits of its mantissa: 1024 + n is 0x6400 | n for whole n below
1024. (Marlin and FasterTransformer unpack weights of four bits so: Kim et al., "Who Says Elephants Can't Run", 2022.)

It takes an operation on bits, and half of one in float16 (of two numbers at once), in place of a conversion of each.
Measured on an H200, linear of 4,096 to 14,336, the products' operands made so and converted, µs: 8
rows by int8 23.7 and 28.1, by halves of bytes 25.2 and 32.3 (without the kernel that adds up two parts); 64 rows by
int8 37.2 and 39.9. One row, which is multiplied and summed in float32, gains nothing: 21.6 and 18.8.
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


def of_bits(bits: str) -> str:
    """Of an expression of uint8."""
    return OF_BYTES["u8"].replace("{x}", bits)
