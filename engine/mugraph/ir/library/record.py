"""What a pre-defined kernel is, and the product of two tensors as several of them read it from a block graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, Product, View, view_of
from mugraph.ir.ops import Kind, Op, Tf32
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.kinds.numbers import Numbers

_MOST_OPS = 10
"""Of a product with a bias: three loads, both operators, two factors, and the store."""
Orders = tuple[tuple[str, ...], ...]
"""Of axes in memory."""


def _no_order(program: TensorProgram, op: Op) -> Orders:
    return ()


@dataclass(frozen=True, slots=True)
class PredefinedKernel:
    """
    match: the call that computes exactly the block graph: its text, and what it costs. None where it does not, or where
           the library would copy an operand first
    orders: axes of an operator's value as PyTorch's own kernel may leave them in memory, the one that is expected to be
           faster first; none for values that it is not for
    """

    match: Callable[[BlockGraph], LibraryCall | None]
    orders: Callable[[TensorProgram, Op], Orders] = _no_order


@dataclass(frozen=True, slots=True)
class LoneProduct:
    """A DOT of two loaded tensors, stored as it is, in one type throughout.

    bias: a loaded tensor that is added before
    alpha, beta: factors of the product and of the bias, where both are there; neither is 0
    """

    left: Tensor
    right: Tensor
    out: Tensor
    over: frozenset[str]
    tf32: Tf32 = ""
    bias: Tensor | None = None
    alpha: float = 1.0
    beta: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Has it no factors?"""
        return (self.alpha, self.beta) == (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Matrices:
    """A product's operands and its result as matrices, or as batches of them: two dimensions, or three.

    rows, columns: axes of the result
    """

    left: View
    right: View
    out: View
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    product: Product

    @property
    def has_batch(self) -> bool:
        return len(self.out.shape) > 2


def matrices_of(product: LoneProduct, sizes: Sizes) -> Matrices | None:
    """None also where neither dimension of a matrix is dense: then a library's call would copy it."""
    left, right, out = product.left, product.right, product.out
    if left.windows or right.windows:
        return None
    a, b = set(left.axes), set(right.axes)
    batch = [axis for axis in out.axes if axis in a and axis in b]
    rows = [axis for axis in out.axes if axis in a and axis not in b]
    columns = [axis for axis in out.axes if axis in b and axis not in a]
    depth = [axis for axis in left.axes if axis in product.over]
    if len(out.axes) != len(batch) + len(rows) + len(columns):  # a bias has axes that the product lacks
        return None
    matrices = [batch] if prod(sizes[axis] for axis in batch) > 1 else []
    first = view_of(left, [*matrices, rows, depth], sizes)
    second = view_of(right, [*matrices, depth, columns], sizes)
    third = view_of(out, [*matrices, rows, columns], sizes)
    if first is None or second is None or third is None:
        return None
    if any(1 not in view.strides[-2:] for view in (first, second, third)):
        return None
    of = Product(*(prod(sizes[axis] for axis in axes) for axes in (batch, rows, columns, depth)))
    return Matrices(first, second, third, tuple(rows), tuple(columns), of)


def lone_product(block: BlockGraph) -> LoneProduct | None:
    """The product that a block graph is, if it is one and nothing else, or that and a bias."""
    if block.loops or len(block.ops) > _MOST_OPS:
        return None
    dots = [op for op in block.ops if op.kind.contracts]
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    if len(dots) != 1 or len(stores) != 1:
        return None
    (dot,), (store,) = dots, stores
    ops = {op.name: op for op in block.ops}
    root, added, alpha, beta = ops[store.inputs[0]], "", 1.0, 1.0
    met = {store.name, root.name, dot.name, *dot.inputs}
    if root.kind.shifted_by:
        (one, alpha), (other, beta) = (multiple_of(ops, name, met) for name in root.inputs)
        if one != dot.name:
            one, other, alpha, beta = other, one, beta, alpha
        if one != dot.name or other == dot.name:
            return None
        added = other
        met.add(added)
    elif root is not dot:
        return None
    if len(met) != len(block.ops) or any(ops[name].kind is not Kind.LOAD for name in (*dot.inputs, added) if name):
        return None
    left, right = (block.tensor(ops[name].tensor) for name in dot.inputs)
    out, bias = block.tensor(store.tensor), block.tensor(ops[added].tensor) if added else None
    if dot.f32 or len({one.dtype for one in (left, right, out, bias or out)}) > 1:
        return None
    if not {*dot.over} <= {*left.axes} & {*right.axes}:
        return None
    return LoneProduct(left, right, out, frozenset(dot.over), dot.tf32, bias, alpha, beta)


def multiple_of(ops: Mapping[str, Op], name: str, met: set[str]) -> tuple[str, float]:
    """What a value is a multiple of, and how many times. met: operators, to which those on the way are added"""
    op = ops[name]
    for at in op.kind.scaled_by:
        constant = ops[op.inputs[at]]
        if constant.kind is Kind.CONST and constant.value:
            met.update((name, constant.name))
            inner, factor = multiple_of(ops, op.inputs[1 - at], met)
            return inner, op.kind.meaning(Numbers(), (factor, constant.value), "", ())
    return name, 1.0
