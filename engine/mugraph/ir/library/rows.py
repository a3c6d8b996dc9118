"""Pre-defined kernels that reduce each row of a tensor and answer with one as long: softmax and norms.

They are found by what a block graph computes (forms.py), not by its operators: a row's variance may be a mean of
squares less a squared mean, and a softmax may subtract anything that all of a row share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.dtypes import COMPUTED, ITEMSIZE
from mugraph.ir.library.call import LibraryCall, View, held_bytes, vector_of, view_of
from mugraph.ir.library.forms import Form, Forms, Unclear, form_of, under_roots
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes, Tensor

_MOST_OPS = 32
_MOST_LOADS = 3
"""A tensor, a weight and a bias."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A block graph that may be such a kernel.

    result: what it computes
    x:      the tensor of its rows, as a form and as it lies; out: the result as it lies
    vectors: other tensors that it loads, as forms and as they lie: each one number for each place of a row
    over:   axes of a row
    length: of a row
    groups: of channels, where a row is a group of channels with all places; each vector then has one number for each
            channel. 0 of other rows
    """

    forms: Forms
    result: Form
    x: tuple[Form, View]
    vectors: tuple[tuple[Form, View], ...]
    out: View
    over: tuple[str, ...]
    length: int
    groups: int = 0

    def mean(self, form: Form) -> Form:
        return self.forms.div(self.forms.sum(form, self.over), self.forms.number(Fraction(self.length)))

    def affine(self, form: Form) -> Form:
        """Times the first vector, plus the second one, where there are any."""
        for (vector, _), then in zip(self.vectors, (self.forms.mul, self.forms.add), strict=False):
            form = then(form, vector)
        return form

    def orders(self) -> Iterator[Rows]:
        """With the vectors in either order."""
        yield self
        if len(self.vectors) == 2:
            yield replace(self, vectors=self.vectors[::-1])

    def call(
        self,
        function: str,
        arguments: Sequence[str],
        names: Sequence[str] = (),
        *,
        functions: bool = False,
        is_sized: bool = False,
    ) -> LibraryCall:
        """names: of the arguments that the vectors are. functions: it takes an exponential of each element. is_sized:
        the arguments or the block graph have the length of a row"""
        operands = (self.x[1], *(view for _, view in self.vectors))
        elements = prod(self.out.shape)
        return LibraryCall(
            function,
            operands,
            self.out,
            (),
            held_bytes((*operands, self.out)),
            arguments=tuple(arguments),
            allocates=True,
            is_particular=is_sized,
            keywords=tuple(names),
            row=self.length * ITEMSIZE[self.out.tensor.dtype],
            functions=elements if functions else 0,
            counted=self.over if is_sized else (),
        )


def rows_of(block: BlockGraph, has: Callable[[Op], bool], vectors: int, *, grouped: bool = False) -> Rows | None:
    """has: an operator that there must be. vectors: how many it may have. grouped: are rows groups of channels?"""
    if block.loops or len(block.ops) > _MOST_OPS or not any(map(has, block.ops)):
        return None
    reducing = [op for op in block.ops if op.kind.reduces]
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    loaded = {(op.tensor, op.axes) for op in block.ops if op.kind is Kind.LOAD}
    if len({op.over for op in reducing}) != 1 or len(stores) != 1 or len(loaded) > min(1 + vectors, _MOST_LOADS):
        return None
    if any(op.kind.contracts for op in reducing):
        return None
    out, sizes = block.tensor(stores[0].tensor), block.sizes
    tensors = [block.tensor(name) for name, _ in loaded]
    if any(tensor.windows or tensor.dtype != out.dtype for tensor in (*tensors, out)) or out.dtype not in COMPUTED:
        return None
    over = tuple(axis for axis in out.axes if axis in reducing[0].over)
    rows = tuple(axis for axis in out.axes if axis not in over)
    wholes = [tensor for tensor in tensors if tensor.axes == out.axes]
    if len(wholes) != 1 or len(over) != len(reducing[0].over) or out.axes != (*rows, *over):
        return None
    channels = _channels(wholes[0], out, rows, over) if grouped else over
    if channels is None or (grouped and (channels == over or len(tensors) == 1)):  # a norm of rows
        return None
    x, answer = (_dense(tensor, rows, over, sizes, whole=grouped) for tensor in (wholes[0], out))
    others = [tensor for tensor in tensors if tensor is not wholes[0]]
    along = [vector_of(tensor, channels, sizes) for tensor in others]
    if x is None or answer is None or len(along) != len([view for view in along if view is not None]):
        return None
    forms, result = Forms(sizes), form_of(block)
    if result is None:
        return None
    read = [forms.loaded(tensor.name, tensor.axes) for tensor in (wholes[0], *others)]
    views = [view for view in along if view is not None]
    length = prod(sizes[axis] for axis in over)
    groups = prod(sizes[axis] for axis in channels if axis not in over) if grouped else 0
    return Rows(forms, result, (read[0], x), tuple(zip(read[1:], views, strict=True)), answer, over, length, groups)


def _channels(x: Tensor, out: Tensor, rows: tuple[str, ...], over: tuple[str, ...]) -> tuple[str, ...] | None:
    """Axes of the second dimension, where rows are groups of its elements with all of the dimensions behind it."""
    if x.dims != out.dims or len(x.dims) < 2:
        return None
    batch, channels, *places = x.dims
    group = tuple(axis for axis in channels if axis not in over)
    inner = channels[len(group) :]
    whole = (*inner, *(axis for dim in places for axis in dim))
    return channels if (*group, *inner) == channels and rows == (*batch, *group) and over == whole else None


def norm_call(
    block: BlockGraph,
    function: str,
    names: Sequence[str],
    of: Callable[[Rows, Fraction], Form],
    *,
    grouped: bool = False,
) -> LibraryCall | None:
    """The call of a norm that the block graph is. names: of its weight, and of its bias if it may have one. of: the
    norm without them, of rows and what is added under the root. grouped: as of rows_of"""
    rows = rows_of(block, lambda op: op.kind.primitive == "sqrt", vectors=len(names), grouped=grouped)
    found = _normed(rows, of) if rows is not None else None
    if found is None:
        return None
    rows, eps = found
    shape = f"num_groups={rows.groups}" if grouped else f"normalized_shape=({rows.length},)"
    arguments = shape, f"eps={float(eps)!r}"
    return rows.call(function, arguments, names, is_sized=True)


def standardized(rows: Rows, eps: Fraction) -> Form:
    """Rows less their mean over the root of their variance and what is added to it."""
    forms, (x, _) = rows.forms, rows.x
    centred = forms.add(x, forms.mul(forms.constant(-1.0), rows.mean(x)))
    variance = rows.mean(forms.mul(centred, centred))
    return forms.div(centred, forms.sqrt(forms.add(variance, forms.number(eps))))


def _normed(rows: Rows, of: Callable[[Rows, Fraction], Form]) -> tuple[Rows, Fraction] | None:
    """The vectors in the order of weight and bias, and what is added under the root."""
    added = under_roots(rows.result)
    if len(added) != 1:
        return None
    (eps,) = added
    try:
        plain = of(rows, eps)
        found = next((one for one in rows.orders() if one.affine(plain) == rows.result), None)
    except Unclear:
        return None
    return (found, eps) if found is not None and eps >= 0 else None


def _dense(
    tensor: Tensor, rows: tuple[str, ...], over: tuple[str, ...], sizes: Sizes, *, whole: bool = False
) -> View | None:
    """As it is, where its last dimension is a row, or where that is wanted (whole); else as a matrix. None where its
    rows do not lie one after the other: then the call would copy it."""
    own = View.whole(tensor, sizes)
    if whole or (own.is_dense and tensor.dims and tensor.dims[-1] == over):
        return own if own.is_dense else None
    view = view_of(tensor, (rows, over), sizes)
    return view if view is not None and view.is_dense else None
