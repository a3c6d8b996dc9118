"""One kernel that PyTorch launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mugraph.ir.calls import Call, TensorInfo
from mugraph.ir.library import Product
from mugraph.ir.ops import Tf32
from mugraph.ops.algebra.registry import canonical

Work = Literal["elementwise", "reduction", "product", "attention", "pooling"]
Values = Mapping[int, TensorInfo]
_LARGE_WINDOW = 25
"""Elements; torch.compile leaves pooling with larger ones to PyTorch's kernel."""
LONG_ROW = 256 << 10
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel.

    reads:    memory it reads: number of the value that owns it -> bytes
    writes:   number of the value -> bytes
    products: one after the other, of matrices
    dtype:    that it computes in
    is_causal: of an attention: half of the scores are not computed
    row:      of a reduction: bytes that are reduced to one number, or to one row of the same length
    turns:    how often a thread block goes along a row that it has to itself, whatever its length; 0 where several
              blocks share one
    share:    of `row_us` that such a turn takes
    functions: exponentials and the like that it computes
    dims:     of the result of a product; 0 of a convolution
    is_narrow: of a convolution: it has too few channels for the tensor cores
    may_turn: of a convolution: it is faster with its operand channels last, the copy counted
    turned:   bytes of that copy, where the operand lies channels last already
    scattered: of a copy to another order in memory: elements, whose neighbours are written far from one another
    windows, taps: of pooling: its windows, and the elements of all of them
    tf32:     the setting by which its float32 products are computed on the tensor cores; "" where they are not
    """

    work: Work
    reads: Mapping[int, int]
    writes: Mapping[int, int]
    products: tuple[Product, ...] = ()
    dtype: str = "f16"
    is_causal: bool = False
    row: int = 0
    turns: int = 0
    share: float = 1.0
    functions: int = 0
    dims: int = 0
    is_narrow: bool = False
    may_turn: bool = False
    turned: int = 0
    scattered: int = 0
    windows: int = 0
    taps: int = 0
    tf32: Tf32 = ""

    @property
    def is_library(self) -> bool:
        """Is it a kernel of a library's?"""
        return self.work in ("product", "attention")

    @property
    def is_apart(self) -> bool:
        """Does torch.compile leave it as it is?"""
        return self.is_library or self.taps > _LARGE_WINDOW * self.windows

    @property
    def is_long(self) -> bool:
        """Are its rows too long for a processor to hold them, and too many at a time for the cache?"""
        return self.row > LONG_ROW


def name_of(call: Call) -> str:
    """`softmax` of "torch.nn.functional.softmax", `add` of "Tensor.__iadd__", `T` of "Tensor.T.__get__"."""
    parts = canonical(call.target).removesuffix(".__get__").split(".")
    name = parts[-1]
    if name.startswith("__"):
        name = name.strip("_")
        return name[1:] if name[0] in "ri" and name[1:] in ("add", "sub", "mul", "truediv", "pow", "div") else name
    return name.rstrip("_") or name
