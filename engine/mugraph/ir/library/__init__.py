"""Pre-defined kernels (Mirage §2): block graphs that one PyTorch call computes, and the call.

A product of two tensors as they lie in memory is `torch.mm` or `torch.bmm`, which is cuBLAS on a GPU; one of a windowed
tensor and a weight is a convolution. The block graph says what is computed (two loads, a DOT, a store; no loops), so
that a pre-defined kernel is verified as any other one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.convolution import ConvolutionCall, convolution_call
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides


@dataclass(frozen=True, slots=True)
class View:
    """A tensor seen as a matrix, or a batch of matrices: its own memory, no copy.

    shape, strides: of the view, strides in elements
    own_shape:      of the tensor
    """

    tensor: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    own_shape: tuple[int, ...]

    def text(self, name: str) -> str:
        """PyTorch for the view of a tensor called `name`."""
        own, strides = self.own_shape, self.tensor.strides
        if _alike(self.shape, self.strides, own, strides):
            return name
        turned = (*self.shape[:-2], self.shape[-1], self.shape[-2])
        if _alike(turned, (*self.strides[:-2], self.strides[-1], self.strides[-2]), own, strides):
            return f"{name}.mT"
        if _alike(self.shape, self.strides, self.shape, _dense(self.shape)) and _alike(own, strides, own, _dense(own)):
            return f"{name}.view({', '.join(map(str, self.shape))})"
        return f"{name}.as_strided({self.shape}, {self.strides})"


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """`function(left, right, out=out)`.

    sizes: matrices, rows, columns, and elements that are summed for each
    """

    function: str
    left: View
    right: View
    out: View
    sizes: tuple[int, int, int, int]

    @property
    def allocates(self) -> bool:
        """It makes its output itself."""
        return False

    @property
    def moved(self) -> int:
        """Elements read and written."""
        matrices, rows, columns, depth = self.sizes
        return matrices * (rows * depth + depth * columns + rows * columns)

    def text(self, names: Mapping[str, str]) -> str:
        """names: of the variables that hold the tensors."""
        left, right, out = (view.text(names[view.tensor.name]) for view in (self.left, self.right, self.out))
        return f"{self.function}({left}, {right}, out={out})"

    @property
    def is_sizeless(self) -> bool:
        """The call's text names no size, so it is right for others."""
        views = (self.left, self.right, self.out)
        return all(view.text("tensor") in ("tensor", "tensor.mT") for view in views)

    @property
    def shown(self) -> str:
        """For a person, by the tensors' own names; where it is written to is said beside it."""
        left, right = (view.text(view.tensor.name) for view in (self.left, self.right))
        return f"{self.function}({left}, {right})"


def library_call(block: BlockGraph) -> LibraryCall | ConvolutionCall | None:
    """The call that computes the block graph; None where there is none, or where it would copy an operand first."""
    product = _product(block)
    if product is None:
        return None
    op, left, right, out = product
    a, b, over = set(left.axes), set(right.axes), set(op.over)
    if op.f32 or not left.dtype == right.dtype == out.dtype or not over <= a & b:
        return None
    sizes = block.sizes
    if left.windows or right.windows:
        x, weight = (left, right) if left.windows else (right, left)
        return convolution_call(x, weight, out, frozenset(op.over), sizes)
    batch = [axis for axis in out.axes if axis in a and axis in b]
    rows = [axis for axis in out.axes if axis in a and axis not in b]
    columns = [axis for axis in out.axes if axis in b and axis not in a]
    depth = [axis for axis in left.axes if axis in over]
    matrices = [batch] if prod(sizes[axis] for axis in batch) > 1 else []
    views = (
        _view(left, [*matrices, rows, depth], sizes),
        _view(right, [*matrices, depth, columns], sizes),
        _view(out, [*matrices, rows, columns], sizes),
    )
    first, second, third = views
    if first is None or second is None or third is None:
        return None
    extents = [prod(sizes[axis] for axis in axes) for axes in (batch, rows, columns, depth)]
    return LibraryCall(
        "torch.bmm" if matrices else "torch.mm", first, second, third, (extents[0], extents[1], extents[2], extents[3])
    )


def _product(block: BlockGraph) -> tuple[Op, Tensor, Tensor, Tensor] | None:
    """The DOT of a block graph that has nothing else, and its tensors."""
    ops = {op.name: op for op in block.ops}
    dots = [op for op in block.ops if op.kind is Kind.DOT]
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    if block.loops or len(dots) != 1 or len(stores) != 1 or len(block.ops) != 2 + len({*dots[0].inputs}):
        return None
    (dot,), (store,) = dots, stores
    left, right = (ops.get(name) for name in dot.inputs)
    if store.inputs != (dot.name,) or left is None or right is None:
        return None
    if left.kind is not Kind.LOAD or right.kind is not Kind.LOAD:
        return None
    return dot, block.tensor(left.tensor), block.tensor(right.tensor), block.tensor(store.tensor)


def _view(tensor: Tensor, groups: Sequence[Sequence[str]], sizes: Sizes) -> View | None:
    """Dimensions made of groups of axes; None where a group's strides do not chain, an element is in two places of the
    view, or neither side of the matrices is dense (then the call would copy)."""
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
    if 0 in strides or 1 not in (strides[rows], strides[columns]):
        return None
    return View(tensor, tuple(shape), tuple(strides), tensor.shape(sizes))


def _alike(shape: tuple[int, ...], strides: tuple[int, ...], other: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """One shape, and one place in memory for each element."""
    return shape == other and all(n == 1 or a == b for n, a, b in zip(shape, strides, steps, strict=True))


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    names = tuple(str(at) for at in range(len(shape)))
    return contiguous_strides(tuple((name,) for name in names), dict(zip(names, shape, strict=True)))
