"""Matrix products: every one is a `dot` over named axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

from mugraph.ir.calls import Argument, Ref
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


def product(b: Builder, x: Ref, y: Ref, dims: AtomDims) -> Node:
    """torch.matmul at `dims`: vectors, matrices, and broadcast batches of them."""
    left, right = b.shape(x), b.shape(y)
    k = b.fresh(left[-1], "k", 3)
    rest = list(dims)
    column = (rest.pop(),) if len(right) > 1 else ()
    row = (rest.pop(),) if len(left) > 1 else ()
    x_dims = (*b.trim(left[:-2], rest), *row, k)
    y_dims = (*b.trim(right[:-2], rest), k, *column) if len(right) > 1 else (k,)
    return b.dot(b.at(x, x_dims), b.at(y, y_dims), k)


@lowers(
    "torch.matmul", "torch.mm", "torch.bmm", "torch.mv", "torch.dot", "torch.linalg.matmul",
    "Tensor.matmul", "Tensor.mm", "Tensor.bmm", "Tensor.mv", "Tensor.dot", "Tensor.__matmul__",
    parameters="input other|mat2|vec|tensor", tf32="cublas",
)  # fmt: skip
def matmul(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return product(b, args.ref("input"), args.ref("other"), dims)


@lowers("Tensor.__rmatmul__", parameters="input other", tf32="cublas")
def rmatmul(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return product(b, args.ref("other"), args.ref("input"), dims)


@lowers("torch.nn.functional.linear", parameters="input weight bias", tf32="cublas")
def linear(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x @ weight.T + bias; weight is [out, in]."""
    x, weight = args.ref("input"), args.ref("weight")
    k = b.fresh(b.shape(x)[-1], "k", 3)
    out = dims[-1:] if len(b.shape(weight)) == 2 else ()
    y = b.dot(b.at(x, (*dims[: len(dims) - len(out)], k)), b.at(weight, (*out, k)), k)
    bias = args.optional("bias")
    return y if bias is None else b.add(y, b.broadcast(bias, dims))


def _add_product(b: Builder, args: Arguments, dims: AtomDims, first: str, second: str) -> Node:
    return _added(b, args, dims, product(b, args.ref(first), args.ref(second), dims))


def _added(b: Builder, args: Arguments, dims: AtomDims, y: Node) -> Node:
    """beta input + alpha y."""
    scaled = b.mul(b.const(args.number("alpha", 1.0)), y)
    beta = args.number("beta", 1.0)
    if beta == 0.0:
        return scaled
    return b.add(b.mul(b.const(beta), b.broadcast(args.ref("input"), dims)), scaled)


@lowers("torch.addmm", "Tensor.addmm", parameters="input mat1 mat2 beta alpha", tf32="cublas")
def addmm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _add_product(b, args, dims, "mat1", "mat2")


@lowers("torch.baddbmm", "Tensor.baddbmm", parameters="input batch1 batch2 beta alpha", tf32="cublas")
def baddbmm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _add_product(b, args, dims, "batch1", "batch2")


@lowers("torch._grouped_mm", parameters="input mat2 offs bias out_dtype", in_part=True, in_float32=True)
def grouped_mm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """A product for each group, as torch.nn.functional.grouped_mm calls it."""
    if args.has("offs"):
        raise NotLowerable("torch._grouped_mm with offs multiplies groups whose sizes are numbers of a tensor")
    y = product(b, args.ref("input"), args.ref("mat2"), dims)
    bias = args.optional("bias")
    return y if bias is None else b.add(y, b.broadcast(bias, dims))


@lowers("torch.addmv", "Tensor.addmv", parameters="input mat vec beta alpha")
def addmv(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _add_product(b, args, dims, "mat", "vec")


@lowers("torch.outer", "torch.ger", "Tensor.outer", parameters="input vec2")
def outer(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.mul(b.at(args.ref("input"), dims[:1]), b.at(args.ref("vec2"), dims[1:]))


def _expand_ellipsis(spec: str, rank: int, letters: str) -> str:
    """'...ij' of a tensor with 4 dimensions -> 'CDij': the unnamed dimensions, aligned at the right."""
    if "..." not in spec:
        return spec
    count = rank - len(spec.replace("...", ""))
    return spec.replace("...", letters[len(letters) - count :] if count > 0 else "")


def _parse(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Operand and result indices, one letter each."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    spare = "ÀÁÂÃÄÅÆÇÈÉ"
    operands = [_expand_ellipsis(spec, rank, spare) for spec, rank in zip(operands, ranks, strict=True)]
    joined = "".join(operands)
    if arrow:
        most = max((sum(letter in spare for letter in spec) for spec in operands), default=0)
        return operands, right.replace("...", spare[len(spare) - most :])
    unnamed = [letter for letter in spare if letter in joined]
    named = sorted(letter for letter in set(joined) if joined.count(letter) == 1 and letter not in spare)
    return operands, "".join((*unnamed, *named))


@lowers("torch.einsum", parameters="equation *operands", tf32="cublas")
def einsum(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Up to four operands, contracted in the order that keeps the intermediate results smallest."""
    refs = args.refs("operands")
    if len(refs) > 4:
        raise NotLowerable("einsum of more than four operands")
    specs, result = _parse(args.text("equation"), [len(b.shape(ref)) for ref in refs])
    if any(len(set(spec)) < len(spec) for spec in (*specs, result)):
        raise NotLowerable("einsum over a diagonal")
    if any(len(spec) != len(b.shape(ref)) for spec, ref in zip(specs, refs, strict=True)):
        raise NotLowerable("einsum with a wrong number of indices")
    extent: dict[str, int] = {}
    for spec, ref in zip(specs, refs, strict=True):
        for letter, size in zip(spec, b.shape(ref), strict=True):
            extent[letter] = max(size, extent.get(letter, 1))
    axis: dict[str, AtomDim] = dict(zip(result, dims, strict=True))
    for letter, size in extent.items():
        if letter not in axis:
            axis[letter] = b.fresh(size, letter if letter.isascii() and letter.islower() else "k", 3)
    for letter in result:
        if letter.isascii() and letter.islower():
            b.atoms.suggest(axis[letter], letter, 2)
    terms: list[tuple[frozenset[str], Node]] = []
    for spec, ref in zip(specs, refs, strict=True):
        at = [axis[letter] if size > 1 else () for letter, size in zip(spec, b.shape(ref), strict=True)]
        here = frozenset(letter for letter, size in zip(spec, b.shape(ref), strict=True) if size > 1)
        terms.append((here, b.at(ref, at)))
    kept = frozenset(result)

    def over(letters: frozenset[str]) -> AtomDim:
        return tuple(atom for letter in sorted(letters) for atom in axis[letter])

    def needed(leaving: Sequence[int]) -> frozenset[str]:
        others = [letters for i, (letters, _) in enumerate(terms) if i not in leaving]
        return kept.union(*others)

    def cost(pair: tuple[int, int]) -> int:
        letters = (terms[pair[0]][0] | terms[pair[1]][0]) & needed(pair)
        return prod(extent[letter] for letter in letters)

    while len(terms) > 1:
        i, j = min(combinations(range(len(terms)), 2), key=cost)
        stay = needed((i, j))
        (la, a), (lb, c) = terms[i], terms[j]
        a, c = b.sum(a, over(la - lb - stay)), b.sum(c, over(lb - la - stay))
        common = (la & lb) - stay
        merged = ((la | lb) & stay, b.dot(a, c, over(common)))
        terms = [*(term for n, term in enumerate(terms) if n not in (i, j)), merged]
    letters, node = terms[0]
    return b.sum(node, over(letters - kept))


@lowers("torch.inner", "Tensor.inner", parameters="input other", tf32="cublas")
def inner(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Over the last dimension of both."""
    x, y = args.ref("input"), args.ref("other")
    rank = len(b.shape(x))
    if not rank or not b.shape(y):
        return b.mul(b.broadcast(x, dims), b.broadcast(y, dims))
    k = b.fresh(b.shape(x)[-1], "k", 3)
    return b.dot(b.at(x, (*dims[: rank - 1], k)), b.at(y, (*dims[rank - 1 :], k)), k)


@lowers("torch.tensordot", parameters="a b dims", tf32="cublas")
def tensordot(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Over the dimensions that are named of each, or the last ones of the first and the first ones of the second."""
    x, y, over = args.ref("a"), args.ref("b"), args.get("dims")
    left, right = b.shape(x), b.shape(y)
    over = 2 if over is None else over
    if isinstance(over, int):
        of_x, of_y = [*range(len(left) - over, len(left))], [*range(over)]
    elif isinstance(over, tuple) and len(over) == 2:
        of_x, of_y = ([dim % rank for dim in _numbers(named)]
                      for named, rank in zip(over, (len(left), len(right)), strict=True))  # fmt: skip
    else:
        raise NotLowerable("a tensordot over dimensions that a tensor says is outside the fragment")
    summed = [b.fresh(left[dim], "k", 3) for dim in of_x]
    rest = iter(dims)
    x_dims = [summed[of_x.index(i)] if i in of_x else next(rest) for i in range(len(left))]
    y_dims = [summed[of_y.index(i)] if i in of_y else next(rest) for i in range(len(right))]
    return b.dot(b.at(x, x_dims), b.at(y, y_dims), tuple(atom for dim in summed for atom in dim))


def _numbers(named: Argument) -> list[int]:
    found = [named] if isinstance(named, int) else list(named) if isinstance(named, tuple) else []
    if not found or not all(type(dim) is int for dim in found):
        raise NotLowerable("a tensordot over dimensions that are no numbers is outside the fragment")
    return [dim for dim in found if isinstance(dim, int)]


@lowers("torch.linalg.vecdot", "torch.vdot", "Tensor.vdot", parameters="input|x other|y dim")
def vecdot(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Of rows that broadcast, along a dimension of the result they would have in an element-wise product."""
    x, y = args.ref("input"), args.ref("other")
    rank = len(dims) + 1
    dim = args.integer("dim", -1) % rank
    size = max(b.shape(ref)[dim - rank] for ref in (x, y))
    k = b.fresh(size, "k", 3)
    inside = (*dims[:dim], k, *dims[dim:])
    return b.sum(b.mul(b.broadcast(x, inside), b.broadcast(y, inside)), k)


@lowers("torch.addbmm", "Tensor.addbmm", parameters="input batch1 batch2 beta alpha", tf32="cublas")
def addbmm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """The products of all matrices of the batch are added up."""
    x, y = args.ref("batch1"), args.ref("batch2")
    batch, k = b.fresh(b.shape(x)[0], "k", 3), b.fresh(b.shape(x)[2], "k", 3)
    total = b.dot(b.at(x, (batch, dims[0], k)), b.at(y, (batch, k, dims[1])), (*batch, *k))
    return _added(b, args, dims, total)


@lowers("torch.addr", "Tensor.addr", parameters="input vec1 vec2 beta alpha")
def addr(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _added(b, args, dims, b.mul(b.at(args.ref("vec1"), dims[:1]), b.at(args.ref("vec2"), dims[1:])))
