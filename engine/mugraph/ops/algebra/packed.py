"""Small numbers that are packed into 32-bit integers: `(w >> shifts) & 0xF`, as dequantising code takes them out.

No kernel computes with integers so large. But a field that lies within one byte is a field of that byte, so the tensor
is read as what its memory holds: bytes, the lowest first, as on every GPU. A shift itself is no operator of the graph:
it stands for the numbers that a mask takes a field of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mugraph.ir.calls import TensorInfo
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import AtomDim
from mugraph.ops.algebra.bits import masked, shifted_right
from mugraph.ops.algebra.building import Axes
from mugraph.ops.algebra.nodes import Node, in_pieces
from mugraph.ops.algebra.places import line_of
from mugraph.ops.algebra.refusals import NotLowerable

PACKED = "i32"
BYTE = "u8"
SHIFTED = "shifted"
"""`raw` of a shift of packed integers; `value` is how many of its lowest bits it still has."""
BYTES = "bytes"
"""`fn` of a LOAD of what is in a tensor's memory: its last dimension is as that of `bytes_of`."""
_BITS, _BYTES = 32, 4


def bytes_of(info: TensorInfo) -> TensorInfo:
    """The tensor as PyTorch's `view(torch.uint8)` gives it. Raises NotLowerable where it does not."""
    if not info.shape or (info.shape[-1] > 1 and info.strides[-1] != 1):
        raise NotLowerable("packed integers that do not lie one after the other are outside the fragment")
    strides = (*(_BYTES * step for step in info.strides[:-1]), 1)
    return replace(info, shape=(*info.shape[:-1], info.shape[-1] * _BYTES), strides=strides, dtype=BYTE, triangle=None)


def shifted(x: Node, amount: Node) -> Node | None:
    """`x >> amount`, if x is packed; by how much is looked at when a field is taken."""
    is_packed = x.kind is Kind.LOAD and x.raw == PACKED and bool(x.dims) and not x.windows
    return Node(Kind.BIT_AND, (x, amount), raw=SHIFTED, value=_BITS) if is_packed else None


def cut(node: Node, bits: int) -> Node:
    """In a type of fewer bits: the others are gone."""
    if node.cases:
        return replace(node, cases=tuple(cut(case, bits) for case in node.cases))
    return replace(node, value=min(node.value, bits))


def is_shifted(node: Node) -> bool:
    return all(map(is_shifted, node.cases)) if node.cases else node.raw == SHIFTED


def field(b: Axes, node: Node, mask: int) -> Node:
    """`(x >> amount) & mask`. Raises NotLowerable where it does not lie within a byte."""
    x, amount = node.inputs
    if not 0 <= mask < 1 << int(node.value):
        raise NotLowerable(f"a mask of {mask} on {int(node.value)} bits is outside the fragment")
    line = line_of(amount)
    if line is None or len(line.by) > 1:
        raise NotLowerable("a shift by places that are not known is outside the fragment")
    places = _Places(line.constant, *next(iter(line.by.items()), ((), 0)))
    return _field(b, x, places, mask)


@dataclass(frozen=True)
class _Places:
    """first + step * the place along `dim`, in bits."""

    first: int
    dim: AtomDim
    step: int


def _field(b: Axes, x: Node, places: _Places, mask: int) -> Node:
    dim, step = b.atoms.resolve(places.dim), places.step
    count = b.atoms.elements(dim)
    inside = max(1, 8 // step) if step > 0 else 0  # so many fields are in one byte
    inside = min(inside, count)
    within, width = places.first % 8, mask.bit_length()
    last = places.first + step * (count - 1)
    whole = count % inside == 0 and (count == inside or step * inside % 8 == 0) if inside else not dim
    if not whole or places.first < 0 or last + width > _BITS or within + step * (max(inside, 1) - 1) + width > 8:
        raise NotLowerable("a field that does not lie within a byte is outside the fragment")
    if not inside:
        return _of_byte(b, x, _byte(b, places.first // 8, 1, ()), within, mask)
    outer, inner = b.atoms.regroup(dim, (count // inside, inside))
    byte = _byte(b, places.first // 8, max(1, step * inside // 8), outer)
    found = [_of_byte(b, x, byte, within + step * at, mask) for at in range(inside)]
    return in_pieces(found, inner) if inside > 1 else found[0]


def _byte(b: Axes, first: int, step: int, along: AtomDim) -> AtomDim:
    return b.atoms.section(_BYTES, first, step, along)


def _of_byte(b: Axes, x: Node, byte: AtomDim, by: int, mask: int) -> Node:
    found = b.loaded(x.source, (*x.dims[:-1], (*x.dims[-1], *byte)), BYTES)
    return masked(b, shifted_right(b, found, by), mask, 255 >> by)
