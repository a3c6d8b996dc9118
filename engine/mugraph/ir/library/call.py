"""The call of a pre-defined kernel as data: its text, and what the cost model asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from mugraph.ir.dtypes import ITEMSIZE, DType
from mugraph.ir.ops import Tf32
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides


@dataclass(frozen=True, slots=True)
class View:
    """A tensor seen in another shape, as a matrix or a batch of matrices for one: its own memory, no copy.

    shape, strides: of the view, strides in elements
    own_shape:      of the tensor
    """

    tensor: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    own_shape: tuple[int, ...]

    @staticmethod
    def whole(tensor: Tensor, sizes: Sizes) -> View:
        """The tensor as it is."""
        return View(tensor, tensor.shape(sizes), tensor.strides, tensor.shape(sizes))

    def text(self, name: str) -> str:
        """PyTorch for the view of a tensor called `name`."""
        own, strides = self.own_shape, self.tensor.strides
        if _alike(self.shape, self.strides, own, strides):
            return name
        if len(self.shape) > 1:
            turned = (*self.shape[:-2], self.shape[-1], self.shape[-2])
            if _alike(turned, (*self.strides[:-2], self.strides[-1], self.strides[-2]), own, strides):
                return f"{name}.mT"
        if self.is_dense and _alike(own, strides, own, dense(own)):
            return f"{name}.view({', '.join(map(str, self.shape))})"
        return f"{name}.as_strided({self.shape}, {self.strides})"

    @property
    def is_dense(self) -> bool:
        """Its elements lie row by row."""
        return _alike(self.shape, self.strides, self.shape, dense(self.shape))

    @property
    def is_sizeless(self) -> bool:
        """Its text names no size."""
        return self.text("tensor") in ("tensor", "tensor.mT")


@dataclass(frozen=True, slots=True)
class Product:
    """Products of matrices that a call computes. depth: elements that are summed for each"""

    matrices: int
    rows: int
    columns: int
    depth: int


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """`function(operands, out=out)`, or `out = function(operands, arguments)`.

    arguments: what follows the operands, as text
    out:       where the result is written; of a call that makes its output itself, the shape that the output has
    allocates: it makes its output itself
    products:  one after the other
    moved:     bytes read and written
    has_softmax: between the products
    is_causal: of an attention: half of the scores are not computed
    dtype:     that is multiplied, where it is another one than the result's
    is_particular: it takes some sizes and not others
    fuses:      it does at once what the user's code calls PyTorch several times for
    copied:    elements of its operands and its result that other kernels copy
    tf32:       the setting by which it computes what is float32 on the tensor cores; "" where that is not set, or
                another one than the program's is asked
    keywords:   names of the arguments that the operands after the first are, where they are given by name
    row:        of a call that reduces rows: bytes of one; it has no products then
    functions:  exponentials and the like that such a call computes
    counted:    axes whose sizes the block graph has as numbers, as of a mean: at another size it is another one
    truths:     of an attention: elements of its mask, where they are truth values, which PyTorch makes numbers first
    format:     PyTorch's name of the memory format that it reads its first operand in and answers in ("" is the usual
                one): channels last
    is_slow:    other calls are faster at this size. It computes the block graph nevertheless, as at any other size
    """

    function: str
    operands: tuple[View, ...]
    out: View
    products: tuple[Product, ...]
    moved: int
    arguments: tuple[str, ...] = ()
    allocates: bool = False
    has_softmax: bool = False
    is_causal: bool = False
    dtype: DType | None = None
    is_particular: bool = False
    fuses: bool = False
    copied: int = 0
    tf32: Tf32 = ""
    keywords: tuple[str, ...] = ()
    row: int = 0
    functions: int = 0
    counted: tuple[str, ...] = ()
    truths: int = 0
    format: str = ""
    is_slow: bool = False

    def text(self, names: Mapping[str, str]) -> str:
        """names: of the variables that hold the tensors."""
        operands = self._given([view.text(names[view.tensor.name]) for view in self.operands])
        out = names[self.out.tensor.name]
        if not self.allocates:
            return f"{self._call([*operands, *self.arguments, f'out={self.out.text(out)}'])}"
        # A library may answer in another order in memory; the next kernel reads row by row.
        own, shape, turned = self.out.own_shape, self.out.shape, ""
        if self.format:
            batch, channels, *places = range(len(shape))
            order = (batch, *places, channels)
            shape, turned = tuple(shape[at] for at in order), f".permute({', '.join(map(str, order))})"
            operands[0] += f".contiguous(memory_format={self.format})"
        view = "" if shape == own else f".view({', '.join(map(str, own))})"
        return f"{out} = {self._call([*operands, *self.arguments])}{turned}.contiguous(){view}"

    @property
    def is_sizeless(self) -> bool:
        """The call's text names no size, so it is right for others."""
        out = self.out.shape == self.out.own_shape if self.allocates else self.out.is_sizeless
        return out and not self.format and not self.is_particular and all(view.is_sizeless for view in self.operands)

    @property
    def shown(self) -> str:
        """For a person, by the tensors' own names; where it is written to is said beside it."""
        return self._call([*self._given([view.text(view.tensor.name) for view in self.operands]), *self.arguments])

    def _given(self, operands: list[str]) -> list[str]:
        """By position, or by name."""
        names = ("", *self.keywords) if self.keywords else ("",) * len(operands)
        return [f"{name}={text}" if name else text for name, text in zip(names, operands, strict=False)]

    def _call(self, arguments: Sequence[str]) -> str:
        return f"{self.function}({', '.join(arguments)})"


def view_of(tensor: Tensor, groups: Sequence[Sequence[str]], sizes: Sizes) -> View | None:
    """Dimensions made of groups of axes; None where a group's strides do not chain, or an element is in two places of
    the view."""
    steps = tensor.axis_strides(sizes)
    shape: list[int] = []
    strides: list[int] = []
    for group in groups:
        axes = [axis for axis in group if sizes[axis] > 1]
        if any(steps[one] != steps[two] * sizes[two] for one, two in pairwise(axes)):
            return None
        shape.append(prod(sizes[axis] for axis in axes))
        strides.append(steps[axes[-1]] if axes else 1)
    rows, columns = len(shape) - 2, len(shape) - 1
    if shape[rows] == 1:  # any stride will do that is no nonsense
        strides[rows] = shape[columns] * strides[columns]
    return None if 0 in strides else View(tensor, tuple(shape), tuple(strides), tensor.shape(sizes))


def vector_of(tensor: Tensor, axes: Sequence[str], sizes: Sizes) -> View | None:
    """A tensor along a dimension made of axes, as a dense vector; None where it is none."""
    alike = {axis for axis in tensor.axes if sizes[axis] > 1} == {axis for axis in axes if sizes[axis] > 1}
    view = view_of(tensor, ([], axes), sizes) if alike and not tensor.windows else None
    if view is None or view.strides[1] != 1:
        return None
    return View(tensor, view.shape[1:], view.strides[1:], view.own_shape)


def held_bytes(views: Sequence[View]) -> int:
    """Of their elements."""
    return sum(prod(view.shape) * ITEMSIZE[view.tensor.dtype] for view in views)


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides."""
    names = tuple(str(at) for at in range(len(shape)))
    return contiguous_strides(tuple((name,) for name in names), dict(zip(names, shape, strict=True)))


def _alike(shape: tuple[int, ...], strides: tuple[int, ...], other: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether both have one shape, and the same place in memory for each element."""
    return shape == other and all(n == 1 or a == b for n, a, b in zip(shape, strides, steps, strict=True))
