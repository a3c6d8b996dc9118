"""Bits of stored integers: `w & 0xF` and `w >> 4`, as dequantising code takes weights out of bytes."""

from __future__ import annotations

from mugraph.ir.calls import Ref
from mugraph.ops.algebra import bits
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.packed import is_shifted, shifted
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.algebra.spans import SMALL, Span, span


def _whole(b: Builder, args: Arguments, dims: AtomDims) -> tuple[Node, Span]:
    """The operand, whose numbers are known to be whole and small."""
    x = b.broadcast(args.ref("input"), dims)
    if (around := span(x, b.values)) is None:
        raise NotLowerable(f"{args.call.target} of numbers that may be large is outside the fragment")
    return x, around


def _constant(args: Arguments) -> int:
    other = args.get("other")
    if not isinstance(other, int) or isinstance(other, bool):
        raise NotLowerable(f"{args.call.target} by what is no constant is outside the fragment")
    return other


def masked(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """`x & n`, of integers. n has to be a number of the type: PyTorch converts it first."""
    number, dtype = _constant(args), b.values[args.output].dtype
    least, largest = SMALL.get(dtype, (0, 1 << 16))
    if not least <= number <= largest:
        raise NotLowerable(f"{args.call.target} by {number}, which is none of {dtype}, is outside the fragment")
    x = b.broadcast(args.ref("input"), dims)
    if is_shifted(taken := shifted(x, b.const(0.0)) or x):
        return bits.bits_of(b, taken, number)
    x, (least, largest) = _whole(b, args, dims)
    return bits.masked(b, x, number, None if least < 0 else largest)


@lowers(
    "Tensor.__rshift__", "torch.bitwise_right_shift", "Tensor.bitwise_right_shift", parameters="input other",
)  # fmt: skip
def shift_right(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """`x >> n`: the sign stays. By as many places as the type has PyTorch's result is undefined."""
    packed = shifted(b.broadcast(args.ref("input"), dims), b.broadcast(args.get("other"), dims))
    if packed is not None:
        return packed
    places = _constant(args)
    if not 0 <= places < 8:
        raise NotLowerable(f"{args.call.target} by {places} places is outside the fragment")
    x, _ = _whole(b, args, dims)
    return bits.shifted_right(b, x, places)


def of_integers(b: Builder, args: Arguments) -> bool:
    """Is its first operand a tensor of integers?"""
    x = args.get("input")
    return isinstance(x, Ref) and b.values[x.value].dtype not in ("bool", "f16", "bf16", "f32", "f64")
