"""Which integers a region may be given as indices: rows of an embedding, positions in a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mugraph.ir.calls import operands
from mugraph.ir.dtypes import INTEGERS, itemsize
from mugraph.ir.region import Argument, Call, Ref, Region, Symbol, TensorInfo
from mugraph.ops.algebra.registry import canonical, entry_for

_ANY = 100
"""Calls that use integers as numbers and not as indices: they compare them, or compute with them."""
_BITS, _PLACES_OF_BITS = 1 << 31, 32
_SHIFTED, _MASKED = frozenset({"bitwise_right_shift", "__rshift__"}), frozenset({"bitwise_and", "__and__"})
_USED_AS_THEY_ARE = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "add", "__add__",
    "__radd__", "sub", "__sub__", "__rsub__", "mul", "__mul__", "__rmul__", "div", "__truediv__", "to", "float", "half",
    "bfloat16", "type", "type_as",
})  # fmt: skip


def index_limit(region: Region, value: int) -> int | None:
    """One more than the largest integer that `value` may hold, if all count from 0; None where some use does not
    say."""
    limits = [_of_use(region, call, value) for call in region.calls if value in operands(call)]
    if any(limit is None for limit in limits):
        return None
    return min((limit for limit in limits if limit is not None), default=_ANY)


def integers_text(region: Region, value: int) -> str:
    """Which integers `value` may hold, as a range's text: places in a cache, any bits. Empty where it is not known."""
    limit = index_limit(region, value)
    if limit is None:
        return ""
    return f"range({-_BITS}, {_BITS})" if limit == _BITS else f"range({limit})"


def _of_use(region: Region, call: Call, value: int) -> int | None:
    target = canonical(call.target)
    if (name := target.rpartition(".")[2]) in _SHIFTED or name in _MASKED:
        return _bits(region, call, value, name)
    if target in _PLACES:
        return _PLACES[target](call, value, region.values)
    integers = [output for output in call.outputs if region.values[output].dtype in INTEGERS]
    entry = entry_for(target)
    if integers:
        # The result is a view or a copy of the value, alone or beside others, so its uses count as well.
        copies = entry is not None and (entry.shape_only or entry.joins)
        found = [index_limit(region, output) for output in integers] if copies else [None]
        return None if None in found else min(limit for limit in found if limit is not None)
    return _ANY if target.rpartition(".")[2] in _USED_AS_THEY_ARE else None


def _bits(region: Region, call: Call, value: int, name: str) -> int | None:
    """`x >> n` and `x & 0xF`: any bits will do where fields of them are all that is taken."""
    first, other = _argument(call, 0, "input"), _argument(call, 1, "other")
    if not isinstance(first, Ref) or first.value != value:
        return _PLACES_OF_BITS
    if name in _MASKED:
        return _BITS if isinstance(other, int) else None
    uses = {index_limit(region, output) for output in call.outputs}
    # Of a byte, what is left of a shift is a small number, whatever it is used for.
    small = {_BITS, _ANY} if itemsize(region.values[value].dtype) == 1 else {_BITS}
    return _BITS if uses and uses <= small else None


_Tensors = Mapping[int, TensorInfo]


def _argument(call: Call, position: int, name: str) -> Argument:
    return call.args[position] if len(call.args) > position else call.kwargs.get(name)


def _embedding(call: Call, value: int, tensors: _Tensors) -> int | None:
    weight = _argument(call, 1, "weight")
    return tensors[weight.value].shape[0] if isinstance(weight, Ref) and weight.value != value else None


def _along(call: Call, value: int, tensors: _Tensors) -> int | None:
    """index_select and gather: (input, dim, index)."""
    source, dim = _argument(call, 0, "input"), _argument(call, 1, "dim")
    if not isinstance(source, Ref) or source.value == value or not isinstance(dim, int):
        return None
    return tensors[source.value].shape[dim]


def _classes(call: Call, value: int, tensors: _Tensors) -> int | None:
    """A loss of classes: (input, target)."""
    source, target = _argument(call, 0, "input"), _argument(call, 1, "target")
    if not isinstance(source, Ref) or not isinstance(target, Ref) or target.value != value:
        return None
    shape = tensors[source.value].shape
    return shape[1 if len(shape) > 1 else 0] if shape else None


def _indexed(call: Call, value: int, tensors: _Tensors) -> int | None:
    """x[..., i, :, j]: the dimensions of x that the value stands for."""
    source, index = _argument(call, 0, "input"), _argument(call, 1, "index")
    if not isinstance(source, Ref) or source.value == value:
        return None
    items = index if isinstance(index, tuple) else (index,)
    shape = tensors[source.value].shape
    used = sum(1 for item in items if item is not None and not isinstance(item, Symbol))
    at = 0
    found: list[int] = []
    for item in items:
        if item is None:
            continue
        if isinstance(item, Symbol):
            at += len(shape) - used
            continue
        if isinstance(item, Ref) and item.value == value:
            found.append(shape[at])
        elif isinstance(item, (tuple, bool)) or (isinstance(item, Ref) and tensors[item.value].dtype not in INTEGERS):
            return None  # a mask may take several dimensions
        at += 1
    return min(found, default=None)


_PLACES: Mapping[str, Callable[[Call, int, _Tensors], int | None]] = {
    "torch.nn.functional.embedding": _embedding,
    "torch.index_select": _along, "Tensor.index_select": _along, "torch.gather": _along, "Tensor.gather": _along,
    "Tensor.__getitem__": _indexed, "Tensor.__setitem__": _indexed, "Tensor.index_copy_": _along,
    "torch.nn.functional.cross_entropy": _classes, "torch.nn.functional.nll_loss": _classes,
}  # fmt: skip
