"""Rules that tensor programs and block graphs share: tensors, names, order, arities, axes of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from keyword import iskeyword
from typing import get_args

from mugraph.ir.calls import Corner
from mugraph.ir.dtypes import COMPARED, ITEMSIZE
from mugraph.ir.ops import Op
from mugraph.ir.tensors import Sizes, Tensor
from mugraph.ir.windows import Window
from mugraph.kinds import Kind, Role, accumulators

FIELDS = ("over", "tensor", "fn")
"""Fields that an operator has to fill if its kind has them, and to leave empty if not."""


def tensor_violations(tensors: tuple[Tensor, ...], sizes: Sizes) -> Iterator[str]:
    for axis, size in sizes.items():
        if size < 1:
            yield f"axis {axis} has size {size}"
    names: set[str] = set()
    for tensor in tensors:
        if tensor.name in names:
            yield f"there are two tensors {tensor.name}"
        names.add(tensor.name)
        if not _is_name(tensor.name):
            yield f"tensor name {tensor.name!r} is no Python identifier"
        if tensor.dtype not in ITEMSIZE:
            yield f"tensor {tensor.name} has element type {tensor.dtype}"
        if len(tensor.strides) != len(tensor.dims):
            yield f"tensor {tensor.name} has {len(tensor.dims)} dimensions and {len(tensor.strides)} strides"
        if len(set(tensor.axes)) != len(tensor.axes):
            yield f"tensor {tensor.name} has an axis twice: {list(tensor.axes)}"
        for axis in tensor.axes:
            if axis not in sizes:
                yield f"axis {axis} of tensor {tensor.name} has no size"
        if len(tensor.strides) == len(tensor.dims) and set(tensor.axes) <= set(sizes):
            yield from _window_violations(tensor, sizes)


def _window_violations(tensor: Tensor, sizes: Sizes) -> Iterator[str]:
    dims = [window.dim for window in tensor.windows]
    if dims != sorted(set(dims)) or not set(dims) <= set(range(len(tensor.dims))):
        yield f"tensor {tensor.name} has windows of dimensions {dims}, out of order or out of range"
        return
    for window in tensor.windows:
        axes = tensor.dims[window.dim]
        if not 0 <= window.taps <= len(axes):
            yield f"a window of tensor {tensor.name} has {window.taps} taps of {len(axes)} axes"
        elif min(window.stride, window.dilation, window.spread) < 1:
            yield f"a window of tensor {tensor.name} steps by less than 1"
        elif window.pad < 0 and (window.taps or window.edge or window.reverse or window.spread > 1):
            yield f"a window of tensor {tensor.name} leaves out its first places, and has more than positions"
        elif window.lookup is not None and window != Window(window.dim, 0, lookup=window.lookup):
            yield f"a window of tensor {tensor.name} looks rows up, and does more"
        elif window.lookup is not None and (len(dims) > 1 or window.lookup.rows < 2):
            yield f"tensor {tensor.name} has an index into fewer than two rows, or beside other windows"
        elif window.lookup is not None and window.lookup.dtype not in COMPARED:
            yield f"tensor {tensor.name} has an index of type {window.lookup.dtype}"
        elif window.by and (window.by in axes or window.by not in sizes or not window.slides):
            yield f"a window of tensor {tensor.name} is as long as axis {window.by} says, which cannot be"
        elif window.by and not window.keeps and min(window.fixed(sizes[window.by])) < 0:
            yield f"a window of tensor {tensor.name} begins or ends by the size of axis {window.by}, which is larger"
        elif window.behind and (window.keeps or not window.by):
            yield f"a window of tensor {tensor.name} has something behind it, and no axis says how much"
        elif window.keeps and not window.slides:
            yield f"a window of tensor {tensor.name} keeps a place at all sizes, and does not slide"
        elif window.extent(axes, sizes) < 1:
            yield f"a window of tensor {tensor.name} leaves dimension {window.dim} without elements"
        elif window.edge and window.spread > 1:
            yield f"a window of tensor {tensor.name} has zeros between elements, and other places in their stead"
        elif window.edge and window.extent(axes, sizes) < window.dilation:
            yield f"a window of tensor {tensor.name} has no other place to read where it reaches beyond its dimension"


def op_violations(
    ops: tuple[Op, ...], sizes: Sizes, tensors: tuple[Tensor, ...], roles: frozenset[Role]
) -> Iterator[str]:
    """Violations of single operators. An operator whose operands are wrong is not looked at further."""
    values: dict[str, Op] = {}
    by_name = {tensor.name: tensor for tensor in tensors}
    for op in ops:
        if op.name in values:
            yield f"there are two values {op.name}"
        if not _is_name(op.name):
            yield f"value name {op.name!r} is no Python identifier"
        if op.kind.role not in roles:
            yield f"{op.name}: {op.kind} does not occur in a tensor program"
        yield from _field_violations(op)
        broken = list(_operand_violations(op, values, by_name))
        yield from broken or _axes_violations(op, values, by_name, sizes)
        values[op.name] = op


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def _field_violations(op: Op) -> Iterator[str]:
    for field in FIELDS:
        if op.kind is Kind.ACCUM and field == "fn":
            if op.fn not in accumulators():
                yield f"{op.name}: an accumulator adds or keeps the largest, it knows no {op.fn}"
        elif op.kind is Kind.MASK and field == "fn":
            if op.fn not in get_args(Corner):
                yield f"{op.name}: a mask is counted from its first corner or the last one, not from {op.fn}"
        elif bool(getattr(op, field)) != (field in op.kind.fields):
            yield f"{op.name}: {op.kind} {'needs' if field in op.kind.fields else 'has no'} `{field}`"
    if op.value and "value" not in op.kind.fields:
        yield f"{op.name}: {op.kind} has no `value`"
    if op.kind.of_places and not op.value.is_integer():
        what = "diagonal" if op.kind is Kind.MASK else "first place"
        yield f"{op.name}: the {what} {op.value} is no whole number"
    if bool(op.rows or op.columns) != op.kind.of_places:
        yield f"{op.name}: {op.kind} {'needs' if op.kind.of_places else 'has no'} `rows` and `columns`"
    if op.columns and "columns" not in op.kind.fields:
        yield f"{op.name}: {op.kind} has no `columns`"


def _operand_violations(op: Op, values: Mapping[str, Op], tensors: Mapping[str, Tensor]) -> Iterator[str]:
    if len(op.inputs) != op.kind.arity:
        yield f"{op.name}: {op.kind} takes {op.kind.arity} values, not {len(op.inputs)}"
    for name in op.inputs:
        if name not in values:
            yield f"{op.name} uses {name}, which is not defined before it"
        elif values[name].kind is Kind.STORE:
            yield f"{op.name} uses {name}, which was stored and is no value any more"
    if op.tensor and op.tensor not in tensors:
        yield f"{op.name}: there is no tensor {op.tensor}"


def _axes_violations(op: Op, values: Mapping[str, Op], tensors: Mapping[str, Tensor], sizes: Sizes) -> Iterator[str]:
    operands = [frozenset(values[name].axes) for name in op.inputs]
    union = frozenset[str]().union(*operands)
    over = frozenset(op.over)
    if op.kind is Kind.LOAD:
        expected = frozenset(tensors[op.tensor].axes) if op.tensor else frozenset[str]()
    elif op.kind.of_places:
        expected = frozenset((*op.rows, *op.columns))
        if len(expected) < len(op.rows) + len(op.columns):
            yield f"{op.name}: rows {list(op.rows)} and columns {list(op.columns)} have an axis twice"
    else:
        expected = union - over if op.kind.reduces else union
    if op.axes != tuple(sorted(expected)):
        yield f"{op.name}: {op.kind} of {_shown(operands)} has axes {sorted(expected)}, not {list(op.axes)}"
    if op.over != tuple(sorted(over)):
        yield f"{op.name}: `over` is not sorted or has an axis twice: {list(op.over)}"
    if op.kind.scans and len(over) != 1:
        yield f"{op.name}: {op.kind} runs along one axis, not {len(over)}"
    if op.kind.reduces or op.kind.scans:
        for axis in sorted(over):
            if not all(axis in operand for operand in operands):
                yield f"{op.name}: {op.kind} over {axis}, which an operand does not have"
    for axis in (*op.axes, *op.over):
        if axis not in sizes:
            yield f"{op.name}: axis {axis} has no size"


def _shown(operands: list[frozenset[str]]) -> str:
    return " and ".join(str(sorted(operand)) for operand in operands) or "nothing"
