"""Element types: what each is called, how large it is and what it can say. Whoever needs to know asks this table.

A type that kernels compute with is one entry here, and its name in `DType`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

DType = Literal["f16", "bf16", "f32", "bool", "i8", "u8", "f8e4m3", "f8e5m2", "i64", "i32"]
"""Of the tensors that programs and kernels have."""
WORD_BYTES = 16
"""That a thread reads at once, of a tensor that begins at a multiple of them."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """
    torch:    its name in PyTorch
    bytes:    of one element

    Of a type that kernels compute with:

    triton:   its name in Triton; "" of the others
    pointer:  of an argument, as Triton's compiler takes it
    epsilon:  largest relative error of one rounding (half a unit in the last place)
    smallest: its least positive number
    largest:  its largest number
    least:    its least number; None: as far below zero as the largest is above
    is_whole: all of its numbers are whole
    """

    torch: str
    bytes: int
    triton: str = ""
    pointer: str = ""
    epsilon: float = 0.0
    smallest: float = 0.0
    largest: float = float("inf")
    least: float | None = None
    is_whole: bool = False

    @property
    def torch_text(self) -> str:
        """Its name where torch has been imported."""
        return f"torch.{self.torch}"


COMPUTED: Mapping[DType, ElementType] = {
    "f16": ElementType("float16", 2, "tl.float16", "*fp16", 2.0**-11, 2.0**-24, 65504.0),
    "bf16": ElementType("bfloat16", 2, "tl.bfloat16", "*bf16", 2.0**-8, 2.0**-133, (2 - 2.0**-7) * 2.0**127),
    "f32": ElementType("float32", 4, "tl.float32", "*fp32", 2.0**-24, 2.0**-149, (2 - 2.0**-23) * 2.0**127),
}
"""Types that programs and kernels compute with."""
STORED: Mapping[DType, ElementType] = {
    "bool": ElementType("bool", 1, "tl.int1", "*i1", largest=1.0, least=0.0, is_whole=True),
    "i8": ElementType("int8", 1, "tl.int8", "*i8", largest=127.0, least=-128.0, is_whole=True),
    "u8": ElementType("uint8", 1, "tl.uint8", "*u8", largest=255.0, least=0.0, is_whole=True),
    "f8e4m3": ElementType("float8_e4m3fn", 1, "tl.float8e4nv", "*fp8e4nv", smallest=2.0**-9, largest=448.0),
    "f8e5m2": ElementType("float8_e5m2", 1, "tl.float8e5", "*fp8e5", smallest=2.0**-16, largest=57344.0),
}
"""Types of tensors that hold numbers to be read: all of them are numbers of every computed type, so that converting one
is exact. Nothing is computed with them before. A condition is 1 or 0."""
WRITTEN: Mapping[DType, ElementType] = {**COMPUTED, **{name: one for name, one in STORED.items() if name != "bool"}}
"""Types of tensors that kernels write. What is written to a tensor of a stored type is such a number already: the
program has rounded it, by an operator of its own."""
COMPARED: Mapping[DType, ElementType] = {
    "i64": ElementType("int64", 8, "tl.int64", "*i64", largest=2.0**63 - 2.0**10, is_whole=True),
    "i32": ElementType("int32", 4, "tl.int32", "*i32", largest=2.0**31 - 1, is_whole=True),
}
"""Types of tensors of whole numbers that are compared with others, as integers, and nothing else."""
READ: Mapping[DType, ElementType] = {**COMPUTED, **STORED, **COMPARED}
"""Types of tensors that kernels read."""
_INTEGERS = {
    **COMPARED,
    "i16": ElementType("int16", 2),
    "i8": STORED["i8"],
    "u8": STORED["u8"],
}
ELEMENTS: Mapping[str, ElementType] = {
    **COMPUTED,
    "f64": ElementType("float64", 8),
    **_INTEGERS,
    **STORED,
    "c64": ElementType("complex64", 8),
    "c128": ElementType("complex128", 16),
}
"""Types that tensors of a user's code may have."""
INTEGERS = frozenset(_INTEGERS)
FLOATS = frozenset({*COMPUTED, "f64", "f8e4m3", "f8e5m2"})
"""Floating-point types that tensors of a user's code may have."""
NARROW = frozenset(name for name, one in COMPUTED.items() if one.bytes < 4)
"""Types whose arithmetic PyTorch does in float32."""
DRAWN = frozenset({*READ, *_INTEGERS, "c64"})
"""Types of inputs that measuring can make up."""
ITEMSIZE: Mapping[str, int] = {name: one.bytes for name, one in READ.items()}


def itemsize(dtype: str) -> int:
    """Bytes of an element; 4 of a type that is not known."""
    return ELEMENTS[dtype].bytes if dtype in ELEMENTS else 4


def largest(dtype: str) -> float:
    """The largest number of a type that kernels compute with; infinity of any other."""
    return ELEMENTS[dtype].largest if dtype in ELEMENTS else float("inf")


def is_computed(dtype: str) -> TypeGuard[DType]:
    return dtype in COMPUTED


def is_written(dtype: str) -> TypeGuard[DType]:
    return dtype in WRITTEN


def is_read(dtype: str) -> TypeGuard[DType]:
    return dtype in READ
