"""Operators in SSA form over unordered named axes: the one node type of tensor programs and block graphs.

Values carry a set of axes, no order: element-wise operators broadcast by name, `dot` contracts by name, so transposes,
views and unsqueezes do not exist here. Order and strides belong to the tensors that are loaded and stored. What an
operator is, its kind says (mugraph.kinds).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mugraph.kinds import Kind as Kind

REDUCING = frozenset(kind for kind in Kind if kind.reduces)
"""What reduces the axes in `over` of one tile or tensor."""
Tf32 = Literal["", "cudnn", "cublas"]
"""By which of PyTorch's settings a product of float32 numbers may round its operands to TF32: that of cuDNN's
convolutions, or that of cuBLAS's products of matrices."""
LARGEST = "max"
"""`fn` of an ACCUM that keeps the largest."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operator and the value it defines.

    name:   of the value, unique in its graph, a Python identifier (from the user's code where it has one)
    inputs: names of the operand values, in order
    axes:   of the result, sorted by name. In a block graph an axis is present while the value still varies along its
            tile; ACCUM keeps its input's axes (a tile that was not summed before is summed after the loop).
    over:   SUM, AMAX, DOT: the axes reduced, sorted. ACCUM: the loop it closes.
    tensor: LOAD, STORE: name of the tensor.
    value:  CONST. MASK: the diagonal, a whole number (masks.py). POSITION: the place of the first element, a whole
            number.
    fn:     UNARY. ACCUM: "" adds up, "max" keeps the largest. MASK: the corner from which its diagonal keeps its
            distance where its axes vary ("first", "last"); "" of any other.
    f32:    the user's program computes this value in float32 though its inputs are 16-bit (a precision mark, not a
            part of the algebra).
    tf32:   DOT: the user's program lets its float32 operands be rounded to TF32 (a precision mark, likewise), by this
            setting of PyTorch's.
    rows, columns: MASK: the axes, outermost first, that together count its rows and its columns. POSITION: the place
            counts along `rows` together.
    """

    name: str
    kind: Kind
    inputs: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    tensor: str = ""
    value: float = 0.0
    fn: str = ""
    f32: bool = False
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    tf32: Tf32 = ""

    @property
    def marks(self) -> tuple[str, ...]:
        """Its precision marks, as the text form has them."""
        return (*(("f32",) if self.f32 else ()), *((f"tf32.{self.tf32}",) if self.tf32 else ()))
