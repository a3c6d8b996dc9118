"""Complex numbers: made of pairs, taken apart, given by their length and angle."""

from __future__ import annotations

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.complexes import along, is_complex, parts
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


@lowers("torch.view_as_complex")
def view_as_complex(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = args.ref("input")
    real, imaginary = (b.at(x, (*dims, b.atoms.section(2, n, 1, ()))) for n in range(2))
    return b.pair(real, imaginary)


@lowers("torch.view_as_real")
def view_as_real(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return along(b, b.at(args.ref("input"), dims[:-1]), dims[-1])


@lowers("torch.complex", parameters="real imag")
def complex_of(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.pair(b.broadcast(args.ref("real"), dims), b.broadcast(args.ref("imag"), dims))


@lowers("torch.polar", parameters="abs angle")
def polar(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    length, angle = b.broadcast(args.ref("abs"), dims), b.broadcast(args.ref("angle"), dims)
    return b.pair(b.mul(length, b.opaque(Kind.COS, angle)), b.mul(length, b.opaque(Kind.SIN, angle)))


@lowers("torch.conj", "Tensor.conj")
def conj(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if not is_complex(args.ref("input"), b.values):
        raise NotLowerable("the conjugate of a real number is the number")
    real, imaginary = parts(b.at(args.ref("input"), dims))
    return b.pair(real, b.mul(b.const(-1.0), imaginary))


@lowers("Tensor.real.__get__")
def real(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = b.at(args.ref("input"), dims)
    return parts(x)[0] if is_complex(args.ref("input"), b.values) else x


@lowers("Tensor.imag.__get__")
def imaginary(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return parts(b.at(args.ref("input"), dims))[1]
