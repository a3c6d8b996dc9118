"""Views, transposes, broadcasts and casts: they compute nothing, they pass a question on at other axes."""

from __future__ import annotations

from mugraph.ir.calls import Symbol
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.conversions import converted, is_rounded
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


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
    "Tensor.long", "Tensor.int", "Tensor.char", "Tensor.byte", parameters="input *rest **", shape_only=True,
)  # fmt: skip
def same(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Copies and casts between float types, and of whole numbers: the value itself. Where it is rounded, the types of
    the values say, but for types of eight bits."""
    x = args.ref("input")
    if b.values[x.value].device != b.values[args.output].device:
        raise NotLowerable("a copy between devices is outside the fragment")
    before, after = b.values[x.value].dtype, b.values[args.output].dtype
    found = b.at(x, dims)
    return converted(b, b.bounds, found, after) if is_rounded(before, after) else found


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


@lowers("torch.nn.functional.pixel_shuffle", "torch.pixel_shuffle", parameters="input upscale_factor", shape_only=True)
def pixel_shuffle(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """[..., c r r, h, w] -> [..., c, h r, w r]."""
    x, r = args.ref("input"), args.integer("upscale_factor")
    *_, h, w = b.shape(x)
    (h_dim, i), (w_dim, j) = b.atoms.regroup(dims[-2], (h, r)), b.atoms.regroup(dims[-1], (w, r))
    return b.at(x, (*dims[:-3], (*dims[-3], *i, *j), h_dim, w_dim))


@lowers(
    "torch.nn.functional.pixel_unshuffle", "torch.pixel_unshuffle", parameters="input downscale_factor",
    shape_only=True,
)  # fmt: skip
def pixel_unshuffle(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """[..., c, h r, w r] -> [..., c r r, h, w]."""
    x, r = args.ref("input"), args.integer("downscale_factor")
    c, i, j = b.atoms.regroup(dims[-3], (b.shape(x)[-3], r, r))
    return b.at(x, (*dims[:-3], c, (*dims[-2], *i), (*dims[-1], *j)))


@lowers("torch.nn.functional.channel_shuffle", "torch.channel_shuffle", parameters="input groups", shape_only=True)
def channel_shuffle(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Channels in groups, as rows of a matrix that is transposed."""
    x, groups = args.ref("input"), args.integer("groups")
    place, group = b.atoms.regroup(dims[1], (b.shape(x)[1] // groups, groups))
    return b.at(x, (dims[0], (*group, *place), *dims[2:]))


@lowers(
    "torch.nn.functional.interpolate", "torch.nn.functional.upsample",
    parameters="input size scale_factor mode *rest **", shape_only=True,
)  # fmt: skip
def interpolate(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Each element a whole number of times in a row. The recorded shapes say how often."""
    mode = args.text("mode", "nearest")
    if mode not in ("nearest", "nearest-exact"):
        raise NotLowerable(f"{mode} interpolation is outside the fragment")
    x = args.ref("input")
    inner = list(dims[:2])
    for dim, size, larger in zip(dims[2:], b.shape(x)[2:], b.values[args.output].shape[2:], strict=True):
        if larger % size:
            raise NotLowerable("interpolation by a factor that is no whole number is outside the fragment")
        inner.append(b.atoms.regroup(dim, (size, larger // size))[0])
    return b.at(x, inner)
