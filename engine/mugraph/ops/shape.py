"""Views, transposes, broadcasts and casts: they compute nothing, they pass a question on at other axes."""

from __future__ import annotations

from mugraph.ir.calls import Argument, Symbol
from mugraph.ops.arguments import Arguments
from mugraph.ops.axes import AtomDims
from mugraph.ops.builder import Builder, Node
from mugraph.ops.registry import NotLowerable, lowers


def row_major(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """The operand's elements in their order, cut into other dimensions. The recorded shapes say which."""
    x = args.ref("input")
    return b.at(x, b.atoms.regroup([atom for dim in dims for atom in dim], b.shape(x)))


@lowers(
    "Tensor.reshape", "Tensor.view_as", "Tensor.reshape_as", "torch.reshape", "Tensor.flatten", "torch.flatten",
    "Tensor.unflatten", "torch.unflatten", "Tensor.unsqueeze", "torch.unsqueeze", "Tensor.squeeze", "torch.squeeze",
    "Tensor.ravel", "torch.ravel", parameters="input *rest **", shape_only=True,
)  # fmt: skip
def reshape(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """However the new shape is said, the recorded one is known."""
    return row_major(b, args, dims)


@lowers("Tensor.view", parameters="input *size", shape_only=True)
def view(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    size = args.get("size")
    if isinstance(size, tuple) and any(isinstance(item, Symbol) for item in size):
        raise NotLowerable("a view as another type is outside the fragment")
    return row_major(b, args, dims)


@lowers(
    "Tensor.contiguous", "Tensor.clone", "torch.clone", "Tensor.detach", "torch.detach", "Tensor.float", "Tensor.half",
    "Tensor.bfloat16", "Tensor.to", "Tensor.type", "Tensor.type_as", "Tensor.double", "Tensor.cuda", "Tensor.cpu",
    parameters="input *rest **", shape_only=True,
)  # fmt: skip
def same(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Copies and casts between float types: the value itself. Where it is rounded, the types of the values say."""
    x = args.ref("input")
    if b.values[x.value].device != b.values[args.output].device:
        raise NotLowerable("a copy between devices is outside the fragment")
    return b.at(x, dims)


def _transposed(b: Builder, args: Arguments, dims: AtomDims, order: list[int]) -> Node:
    """order[i]: which dimension of the operand is the result's i-th."""
    inner: list[tuple[int, ...]] = [()] * len(order)
    for i, source in enumerate(order):
        inner[source] = dims[i]
    return b.at(args.ref("input"), inner)


@lowers(
    "Tensor.transpose", "torch.transpose", "Tensor.swapaxes", "torch.swapaxes", "Tensor.swapdims", "torch.swapdims",
    parameters="input dim0 dim1", shape_only=True,
)  # fmt: skip
def transpose(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    order = list(range(len(dims)))
    i, j = args.integer("dim0"), args.integer("dim1")
    order[i], order[j] = order[j], order[i]
    return _transposed(b, args, dims, order)


@lowers("Tensor.T.__get__", "Tensor.t", "torch.t", shape_only=True)
def reversed_dimensions(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _transposed(b, args, dims, list(reversed(range(len(dims)))))


@lowers("Tensor.mT.__get__", shape_only=True)
def matrix_transpose(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    rank = len(dims)
    return _transposed(b, args, dims, [*range(rank - 2), rank - 1, rank - 2])


@lowers("Tensor.permute", "torch.permute", parameters="input *dims", shape_only=True)
def permute(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _transposed(b, args, dims, [dim % len(dims) for dim in args.integers("dims") or ()])


@lowers(
    "Tensor.movedim", "torch.movedim", "Tensor.moveaxis", "torch.moveaxis", parameters="input source destination",
    shape_only=True,
)  # fmt: skip
def movedim(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    rank = len(dims)
    sources = [dim % rank for dim in args.integers("source") or ()]
    places = [dim % rank for dim in args.integers("destination") or ()]
    fixed = dict(zip(places, sources, strict=True))
    rest = iter(dim for dim in range(rank) if dim not in sources)
    return _transposed(b, args, dims, [fixed[i] if i in fixed else next(rest) for i in range(rank)])


@lowers(
    "Tensor.expand", "Tensor.expand_as", "torch.broadcast_to", "Tensor.broadcast_to", parameters="input *size",
    shape_only=True,
)  # fmt: skip
def expand(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.broadcast(args.ref("input"), dims)


@lowers("torch.repeat_interleave", "Tensor.repeat_interleave", parameters="input repeats dim", shape_only=True)
def repeat_interleave(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Each element along `dim`, `repeats` times in a row: the outer part of the result's dimension."""
    x, repeats = args.ref("input"), args.integer("repeats")
    shape = b.shape(x)
    if not args.has("dim"):
        inner = b.atoms.regroup(dims[0], (*shape, repeats))[:-1]
        return b.at(x, inner)
    dim = args.integer("dim") % len(shape)
    outer = b.atoms.regroup(dims[dim], (shape[dim], repeats))[0]
    return b.at(x, (*dims[:dim], outer, *dims[dim + 1 :]))


@lowers("Tensor.repeat", "torch.tile", "Tensor.tile", parameters="input *repeats", shape_only=True)
def repeat(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """The whole operand again and again along each dimension: the inner part of the result's."""
    x = args.ref("input")
    shape = b.shape(x)
    inner = dims[len(dims) - len(shape) :]
    cut = (b.atoms.regroup(dim, (b.atoms.elements(b.atoms.resolve(dim)) // size, size))[1]
           for dim, size in zip(inner, shape, strict=True))  # fmt: skip
    return b.at(x, tuple(cut))


def _keeps_all(index: Argument, shape: tuple[int, ...]) -> bool:
    """Does this index only add or drop dimensions of size 1?"""
    items = index if isinstance(index, tuple) else (index,)
    used = sum(1 for item in items if item is not None and not is_ellipsis(item))
    sizes = list(shape)
    for n, item in enumerate(items):
        if item is None:
            continue
        if is_ellipsis(item):
            after = sum(1 for rest in items[n + 1 :] if rest is not None)
            sizes = sizes[len(sizes) - after :] if after else []
        elif isinstance(item, slice):
            size = sizes.pop(0)
            bounds: tuple[Argument, ...] = (item.start, item.stop, item.step)
            if not all(bound is None or type(bound) is int for bound in bounds):
                return False  # a tensor, known at run time only
            if range(*item.indices(size)) != range(size):
                return False
        elif isinstance(item, int) and not isinstance(item, bool):
            if sizes.pop(0) != 1:
                return False
        else:
            return False
    return used <= len(shape)


def is_ellipsis(item: Argument) -> bool:
    return isinstance(item, Symbol) and item.name in ("Ellipsis", "...")


@lowers("Tensor.__getitem__", parameters="input index", shape_only=True)
def getitem(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Indices that select everything (`x[:, None]`, `x[..., 0]` of size 1). A part of a tensor is a view of its own."""
    if not _keeps_all(args.get("index"), b.shape(args.ref("input"))):
        raise NotLowerable("a part of a tensor is taken by PyTorch, as a view")
    return row_major(b, args, dims)
