"""Running sums, and dimensions in reverse, which they are taken along as often as not.

A part of a running sum is asked for as any part is (sections.py): in reverse it is a running sum from the end, of what
is asked for in reverse; a few places further, as after zeros that stand before it, it is one of elements that are a few
places further.
"""

from __future__ import annotations

from mugraph.ir.calls import Ref
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


@lowers("torch.flip", "Tensor.flip", "torch.fliplr", "Tensor.fliplr", "torch.flipud", "Tensor.flipud",
        parameters="input *dims", joins=True)  # fmt: skip
def flip(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = args.ref("input")
    shape = b.shape(x)
    named = {"fliplr": (1,), "flipud": (0,)}.get(args.call.target.rpartition(".")[2])
    turned = {dim % len(shape) for dim in named or args.integers("dims") or ()}
    found = [
        b.atoms.section(size, size - 1, -1, dim) if at in turned and size > 1 else dim
        for at, (size, dim) in enumerate(zip(shape, dims, strict=True))
    ]
    return b.at(x, found)


@lowers("torch.cumsum", "Tensor.cumsum", parameters="input dim|axis dtype **")
def cumsum(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = args.ref("input")
    rank = len(b.shape(x))
    if not rank:
        return b.at(x, dims)
    dim = args.integer("dim") % rank
    return _running(b, x, dims, dim, b.atoms.resolve(dims[dim]))


def _running(b: Builder, x: Ref, dims: AtomDims, dim: int, along: AtomDim) -> Node:
    def at(run: AtomDim) -> Node:
        return b.at(x, (*dims[:dim], run, *dims[dim + 1 :]))

    atoms, size = b.atoms, b.shape(x)[dim]
    if not any(atom in atoms.sections for atom in along):
        return b.running(at(along), along, False)
    if len(along) > 1:
        raise NotLowerable("a part of a running sum, of a dimension that is cut, is outside the fragment")
    section = next(atoms.sections[atom] for atom in along)
    inner, first = section.inner, section.start
    length = atoms.elements(inner)
    if not inner:  # one place of it: the sum of all up to there
        over = atoms.fresh(first + 1, "k")
        return b.sum(at(atoms.section(size, 0, 1, over)), over)
    if any(atom in atoms.sections for atom in inner):
        raise NotLowerable("a part of a part of a running sum is outside the fragment")
    if (first, section.step, length) == (size - 1, -1, size):
        return b.running(at(along), inner, True)
    if section.step == 1 and first <= 0:  # nothing stands before the first of the places: zeros are added there
        found = at(along)
        return b.running(b.mul(found, b.mask(inner, (), first)) if first else found, inner, False)
    raise NotLowerable("a part of a running sum that does not begin with it is outside the fragment")
