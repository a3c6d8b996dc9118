"""Parts of a tensor: they compute nothing, they ask for a section of their operand (sections.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.calls import Argument, Ref, Symbol
from mugraph.ir.ops import Kind
from mugraph.ir.ranges import FIXED
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node, factors
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.families.gather import at_places
from mugraph.ops.families.lookup import looked_up

MOST_OPERANDS = 4
"""Of a concatenation that is their sum: each element of it asks for every one."""


def _is_ellipsis(item: Argument) -> bool:
    return isinstance(item, Symbol) and item.name in ("Ellipsis", "...")


def _kept(b: Builder, item: slice, size: int, dim: AtomDim) -> AtomDim:
    """What a slice of a dimension of `size` elements asks for, when its result is asked for at `dim`."""
    bounds: tuple[Argument, ...] = (item.start, item.stop, item.step)
    if not all(bound is None or type(bound) is int for bound in bounds):
        raise NotLowerable("a part that is known at run time only is outside the fragment")
    start, _, step = item.indices(size)
    return b.atoms.section(size, start, step, dim)


@lowers("Tensor.__getitem__", parameters="input index", shape_only=True)
def getitem(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Integers, slices, None and an ellipsis; tensors of places as gather.py says."""
    x, index = args.ref("input"), args.get("index")
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(item, Ref) for item in items):
        return looked_up(b, x, items, dims) or at_places(b, x, items, dims)
    sizes, asked = list(b.shape(x)), list(dims)
    used = sum(1 for item in items if item is not None and not _is_ellipsis(item))
    if not any(_is_ellipsis(item) for item in items):
        items.append(Symbol("..."))
    found: list[AtomDim] = []
    for item in items:
        if item is None:
            asked.pop(0)
        elif _is_ellipsis(item):
            for _ in range(len(b.shape(x)) - used):
                sizes.pop(0)
                found.append(asked.pop(0))
        elif isinstance(item, slice):
            found.append(_kept(b, item, sizes.pop(0), asked.pop(0)))
        elif isinstance(item, int) and not isinstance(item, bool):
            size = sizes.pop(0)
            found.append(b.atoms.section(size, item % size, 1, ()))
        else:
            raise NotLowerable("an index that is no slice and no place is outside the fragment")
    return b.at(x, found)


def part(b: Builder, x: Ref, dims: AtomDims, dim: int, start: int) -> Node:
    """A tensor's elements from `start` on, along one dimension that stays."""
    size = b.shape(x)[dim]
    return b.at(x, (*dims[:dim], b.atoms.section(size, start, 1, dims[dim]), *dims[dim + 1 :]))


def _one(b: Builder, args: Arguments, dims: AtomDims, dim: int, place: int) -> Node:
    """One index along a dimension that goes."""
    x = args.ref("input")
    size = b.shape(x)[dim]
    return b.at(x, (*dims[:dim], b.atoms.section(size, place % size, 1, ()), *dims[dim:]))


def _dimension(b: Builder, args: Arguments, default: int | None = None) -> int:
    return args.integer("dim", default) % len(b.shape(args.ref("input")))


@lowers("Tensor.narrow", "torch.narrow", parameters="input dim start length", shape_only=True)
def narrow(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    dim = _dimension(b, args)
    return part(b, args.ref("input"), dims, dim, args.integer("start") % b.shape(args.ref("input"))[dim])


@lowers("Tensor.select", "torch.select", parameters="input dim index", shape_only=True)
def select(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _one(b, args, dims, _dimension(b, args), args.integer("index"))


@lowers("Tensor.unbind", "torch.unbind", parameters="input dim", shape_only=True, several=True)
def unbind(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _one(b, args, dims, _dimension(b, args, 0), args.call.outputs.index(args.output))


@lowers(
    "Tensor.chunk", "torch.chunk", "Tensor.split", "torch.split", "Tensor.split_with_sizes", "torch.split_with_sizes",
    "Tensor.tensor_split", "torch.tensor_split",
    parameters="input chunks|split_size_or_sections|split_size|split_sizes|indices_or_sections|indices dim",
    shape_only=True, several=True,
)  # fmt: skip
def split(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """However the parts are said, the recorded shapes say where they are."""
    dim = _dimension(b, args, 0)
    before = args.call.outputs[: args.call.outputs.index(args.output)]
    return part(b, args.ref("input"), dims, dim, sum(b.values[value].shape[dim] for value in before))


def _operands(b: Builder, args: Arguments) -> tuple[Ref, ...]:
    refs = args.refs("tensors")
    if any(b.shape(ref) == (0,) for ref in refs):
        raise NotLowerable("an empty tensor is concatenated")
    return refs


@lowers("torch.cat", "torch.concat", "torch.concatenate", parameters="tensors dim|axis", joins=True)
def cat(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _joined(b, args, dims, args.integer("dim", 0) % len(dims))


def _joined(b: Builder, args: Arguments, dims: AtomDims, dim: int) -> Node:
    refs: Sequence[Ref] = _operands(b, args)
    if any(len(b.shape(ref)) != len(dims) for ref in refs):
        raise NotLowerable("tensors that become matrices before they are joined are outside the fragment")
    lengths = [b.shape(ref)[dim] for ref in refs]

    def ask(i: int, at: AtomDim) -> Node:
        return b.at(refs[i], (*dims[:dim], at, *dims[dim + 1 :]))

    def instead() -> Node | None:
        return _among_zeros(b, refs, dims, dim) or _side_by_side(b, refs, dims, dim)

    if _grows_unevenly(b, refs, dim) and (found := instead()) is not None:
        return found
    return b.pieces.joined(lengths, dims[dim], ask, instead)


def _grows_unevenly(b: Builder, refs: Sequence[Ref], dim: int) -> bool:
    """Is the share that an operand has of the whole another one at other sizes? Then how many pieces of one length
    there are depends on the sizes, and with them the program."""
    lengths = [b.varying[ref.value][dim] if ref.value in b.varying else FIXED for ref in refs]
    return len({replace(of, factor=0) for of in lengths}) > 1


def _among_zeros(b: Builder, refs: Sequence[Ref], dims: AtomDims, dim: int) -> Node | None:
    """One tensor with zeros before and behind it: the tensor, some places further, where it is; None of any others."""
    asked = [tuple(b.fresh(size) for size in b.shape(ref)) for ref in refs]
    nodes = [b.at(ref, at) for ref, at in zip(refs, asked, strict=True)]  # what is not zero is asked for again below
    others = [i for i, node in enumerate(nodes) if not (node.kind is Kind.CONST and node.value == 0.0)]
    along = b.atoms.resolve(dims[dim])
    section = b.atoms.sections.get(along[0]) if len(along) == 1 else None
    before = 0
    if section is not None and section.step == 1 and section.inner:
        before, along = section.start, b.atoms.resolve(section.inner)
    if len(others) != 1 or any(atom in b.atoms.sections for atom in along):
        return None
    (one,) = others
    size, first = b.shape(refs[one])[dim], sum(b.shape(ref)[dim] for ref in refs[:one]) - before
    found = b.at(refs[one], (*dims[:dim], b.atoms.section(size, -first, 1, along), *dims[dim + 1 :]))
    behind = b.mask((), along, first + size - 1)
    before = b.mask(along, (), -first)
    return b.mul(behind if _begins_with_zeros(found, before) else b.mul(before, behind), found)


def _side_by_side(b: Builder, refs: Sequence[Ref], dims: AtomDims, dim: int) -> Node | None:
    """The sum of the operands, each with zeros where it has none; None of many, and of a part of a concatenation.

    An operand that is read is so by itself, where it is loaded; any other is multiplied by masks.
    """
    if len(refs) > MOST_OPERANDS:
        return None
    along = b.atoms.resolve(dims[dim])
    section = b.atoms.sections.get(along[0]) if len(along) == 1 else None
    start = 0
    if section is not None and section.step == 1 and section.inner:
        start, along = section.start, b.atoms.resolve(section.inner)
    if not along or any(atom in b.atoms.sections for atom in along):
        return None
    found, first = b.const(0.0), -start
    for ref in refs:
        size = b.shape(ref)[dim]
        if first < b.atoms.elements(along) and first + size > 0:
            at = b.atoms.section(size, -first, 1, along) if size > 1 else ()
            node = b.at(ref, (*dims[:dim], at, *dims[dim + 1 :]))
            if node.kind is not Kind.LOAD or not node.windows:
                node = b.mul(b.mul(b.mask(along, (), -first), b.mask((), along, first + size - 1)), node)
            found = b.add(found, node)
        first += size
    return found


def _begins_with_zeros(node: Node, before: Node) -> bool:
    """Is it a running sum of what is zero where `before`, a mask of the first places, is?"""
    if not node.kind.scans or node.kind.backwards or node.dims != before.dims[:1]:
        return False
    masks = [factor for pair in factors(node.inputs[0]) for factor in pair]
    return any((m.kind, m.dims, m.value) == (before.kind, before.dims, before.value) for m in masks)


@lowers("torch.stack", parameters="tensors dim", joins=True)
def stack(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    refs = args.refs("tensors")
    dim = args.integer("dim", 0) % len(dims)
    rest = (*dims[:dim], *dims[dim + 1 :])
    return b.pieces.joined([1] * len(refs), dims[dim], lambda i, at: b.at(refs[i], rest))


@lowers("torch.hstack", "torch.column_stack", parameters="tensors", joins=True)
def hstack(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _joined(b, args, dims, 0 if len(dims) == 1 else 1)


@lowers("torch.vstack", "torch.row_stack", parameters="tensors", joins=True)
def vstack(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _joined(b, args, dims, 0)


@lowers("torch.roll", "Tensor.roll", parameters="input shifts dims", joins=True)
def roll(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Along each dimension the last elements, then those before them."""
    x, over = args.ref("input"), args.integers("dims")
    if not over:
        raise NotLowerable("a tensor that is rolled as if it were flat is outside the fragment")
    shape = b.shape(x)
    shifts = {dim % len(shape): shift for dim, shift in zip(over, args.integers("shifts") or (), strict=True)}
    if len(shifts) < len(over):
        raise NotLowerable("a dimension that is rolled twice is outside the fragment")

    def rolled(left: list[tuple[int, int]], at: AtomDims) -> Node:
        if not left:
            return b.at(x, at)
        (dim, shift), *rest = left
        size = shape[dim]
        shift %= size
        if not shift:
            return rolled(rest, at)
        starts = (size - shift, 0)

        def piece(i: int, inner: AtomDim) -> Node:
            return rolled(rest, (*at[:dim], b.atoms.section(size, starts[i], 1, inner), *at[dim + 1 :]))

        return b.pieces.joined((shift, size - shift), at[dim], piece)

    return rolled(list(shifts.items()), tuple(dims))
