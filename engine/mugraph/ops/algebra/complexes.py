"""Complex values: pairs of real ones, as rotary embeddings write them (`view_as_complex(x) * freqs_cis`).

A complex value is a concatenation (concat.py) of its real and its imaginary part, along an axis that no dimension has;
`view_as_real` gives the axis a dimension. A complex tensor in memory is read through two views, its real and its
imaginary part. Only calls that are known to be right for complex values reach one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mugraph.ir.calls import Argument, Call, Ref, TensorInfo, operands
from mugraph.ops.algebra.axes import AtomDim
from mugraph.ops.algebra.building import Building
from mugraph.ops.algebra.nodes import Node, in_pieces
from mugraph.ops.algebra.refusals import NotLowerable

COMPLEX = "c64"
PARTS = ("real", "imag")
"""What PyTorch calls the parts, in their order in memory."""
_VIEWS = frozenset({
    "Tensor.view", "Tensor.reshape", "Tensor.flatten", "Tensor.unflatten", "Tensor.unsqueeze", "Tensor.squeeze",
    "Tensor.contiguous", "Tensor.transpose", "Tensor.permute", "Tensor.expand", "Tensor.__getitem__", "Tensor.narrow",
    "Tensor.clone", "Tensor.detach",
})  # fmt: skip
_SUMS = frozenset({"torch.add", "Tensor.add", "Tensor.__add__", "torch.sub", "Tensor.sub", "Tensor.__sub__"})
"""Right for two complex values alone: a real number is added to the real part only."""
_PRODUCTS = frozenset({"torch.mul", "Tensor.mul", "Tensor.__mul__", "Tensor.__rmul__"})
_OWN = frozenset({
    "torch.view_as_complex", "torch.view_as_real", "torch.polar", "torch.complex", "torch.conj", "Tensor.conj",
    "Tensor.real.__get__", "Tensor.imag.__get__",
})  # fmt: skip


def is_complex(argument: Argument, values: Mapping[int, TensorInfo]) -> bool:
    return isinstance(argument, Ref) and values[argument.value].dtype == COMPLEX


def refuse_unknown(target: str, call: Call, values: Mapping[int, TensorInfo]) -> None:
    """Raises NotLowerable for a call with a complex operand or result, unless its rule is right for these. target: its
    one spelling"""
    read = [values[value].dtype == COMPLEX for value in operands(call)]
    if not any(read) and all(values[value].dtype != COMPLEX for value in call.outputs):
        return
    sums = target in _SUMS and all(read) and len(read) == 2 and "alpha" not in call.kwargs and len(call.args) == 2
    if not (target in _VIEWS | _PRODUCTS | _OWN or sums):
        raise NotLowerable(f"{target} of complex numbers is outside the fragment")


def product(b: Building, x: Node, y: Node) -> Node:
    """Of two complex values."""
    (a, c), (d, e) = parts(x), parts(y)
    real, imaginary = b.sub(b.mul(a, d), b.mul(c, e)), b.add(b.mul(a, e), b.mul(c, d))
    return in_pieces((real, imaginary), x.on)


def parts(x: Node) -> tuple[Node, Node]:
    """The real and the imaginary part of a complex value."""
    if len(x.cases) != len(PARTS):
        raise NotLowerable("complex numbers that are concatenated are outside the fragment")
    return x.cases[0], x.cases[1]


def along(b: Building, x: Node, dim: AtomDim) -> Node:
    """A complex value whose parts are along a dimension."""
    atoms = b.atoms
    dim = atoms.resolve(dim)
    if len(dim) == 1 and dim[0] in atoms.sections:
        return parts(x)[atoms.sections[dim[0]].start]
    return in_pieces(parts(x), dim)


def part_of(info: TensorInfo) -> TensorInfo:
    """The real or the imaginary part of a complex tensor, as a view of it."""
    return replace(info, dtype="f32", strides=tuple(2 * step for step in info.strides))
