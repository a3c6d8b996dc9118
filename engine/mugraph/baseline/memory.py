"""Where the values of recorded calls lie: which are views of others, in what order, in how many bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mugraph.baseline.arguments import parts
from mugraph.baseline.launch import Values, name_of
from mugraph.ir.calls import Call, Ref, TensorInfo, operands
from mugraph.ir.dtypes import itemsize

_VIEWS = frozenset(
    """
    view view_as reshape_as transpose swapaxes swapdims t T mT H mH permute movedim moveaxis unsqueeze squeeze
    expand expand_as broadcast_to getitem narrow select split tensor_split chunk unbind unflatten detach alias
    as_strided diagonal unfold numpy_T real
    """.split()  # noqa: SIM905 - a word list is read more easily
)
_MAY_COPY = frozenset(("reshape", "flatten", "contiguous", "ravel"))
_MAY_CONVERT = frozenset(
    """
    to type type_as float half bfloat16 double int long bool
    """.split()  # noqa: SIM905 - a word list is read more easily
)


def owners_of(calls: Sequence[Call], values: Values) -> dict[int, int]:
    """Of views: the value whose memory they are of, which is no view that these calls make."""
    owners: dict[int, int] = {}
    for call in calls:
        owners.update(views_of(call, values, owners))
    return owners


def views_of(call: Call, values: Values, owners: Mapping[int, int]) -> dict[int, int]:
    """What a call makes, where that is views; nothing where it computes something."""
    read = operands(call)
    if not read or not _is_view(name_of(call), call, values):
        return {}
    return dict.fromkeys(call.outputs, owners.get(read[0], read[0]))


def _is_view(name: str, call: Call, values: Values) -> bool:
    source, out = values[operands(call)[0]], values[call.outputs[0]]
    if call.target == "torch.nn.functional.unfold":  # it copies, as `Tensor.unfold` does not
        return False
    if name in _VIEWS:
        return name != "getitem" or not any(isinstance(part, Ref) for part in parts(call.args[1:]))
    if name in _MAY_CONVERT:
        return source.dtype == out.dtype
    if name == "contiguous" and "memory_format" in call.kwargs:
        return _same_places(source, out)
    return name in _MAY_COPY and is_dense(source)


def _same_places(one: TensorInfo, other: TensorInfo) -> bool:
    return all(size == 1 or a == b for size, a, b in zip(one.shape, one.strides, other.strides, strict=True))


def is_dense(info: TensorInfo) -> bool:
    """Its elements lie row by row."""
    expected = 1
    for size, stride in reversed(list(zip(info.shape, info.strides, strict=True))):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def nearest(info: TensorInfo) -> int:
    """The dimension along which neighbours lie nearest in memory."""
    steps = [(stride, dim) for dim, (size, stride) in enumerate(zip(info.shape, info.strides, strict=True)) if size > 1]
    return min(steps)[1] if steps else 0


def is_channels_last(info: TensorInfo) -> bool:
    """Of an image."""
    return info.strides[1] == 1 and info.strides[-1] > 1 and not is_dense(info)


def held_bytes(info: TensorInfo) -> int:
    """Of memory that a tensor is in: an axis it is expanded along is there once."""
    sizes = [size for size, stride in zip(info.shape, info.strides, strict=True) if stride or size == 1]
    return prod(sizes) * itemsize(info.dtype)
