"""Losses that are element-wise programs and sums, and the distances that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from mugraph.ir.calls import Ref
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.counts import count_of
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.families.logarithm import soft_plus
from mugraph.ops.families.masking import kept

OLD = "size_average reduce"
"""What `reduction` was said by before."""


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that PyTorch broadcasts these to."""
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*wide, strict=True))


def reduced_loss(
    b: Builder,
    args: Arguments,
    dims: AtomDims,
    refs: Sequence[Ref],
    loss: Callable[[AtomDims], Node],
    counted: Callable[[AtomDims], Node] | None = None,
    *,
    without: int | None = None,
) -> Node:
    """The loss of each element, or their sum or mean, as the call says.

    refs: operands that are broadcast to the losses. without: a dimension of theirs that the losses do not have
    counted: as how much each counts in the mean; all alike if not given
    """
    if any(args.has(name) for name in OLD.split()):
        raise NotLowerable(f"{args.call.target} with size_average or reduce is outside the fragment")
    how = args.text("reduction", "mean")
    if how == "none":
        return loss(dims)
    if how not in ("sum", "mean", "batchmean"):
        raise NotLowerable(f"{args.call.target} with the reduction {how} is outside the fragment")
    shape = _broadcast(*map(b.shape, refs))
    atoms = [b.fresh(size, "k") if at != without else () for at, size in enumerate(shape)]
    inner = tuple(dim for at, dim in enumerate(atoms) if at != without)
    over = tuple(atom for dim in inner for atom in dim)
    total = b.sum(loss(inner), over)
    if how == "sum":
        return total
    if how == "mean" and counted is not None:
        return b.div(total, b.sum(counted(inner), over))
    dividing = (pair for pair in enumerate(atoms) if pair[0] != without)
    return count_of(b, refs, islice(dividing, 1) if how == "batchmean" else dividing).share(b, total)


def _of_difference(
    b: Builder, args: Arguments, dims: AtomDims, loss: Callable[[Node], Node], *, weighted: bool = True
) -> Node:
    """A loss of input - target. weighted: the call may have a weight for each element"""
    x, target = args.ref("input"), args.ref("target")
    weight = args.optional("weight") if weighted else None
    refs = [x, target, *([weight] if weight is not None else [])]

    def each(inner: AtomDims) -> Node:
        found = loss(b.sub(b.broadcast(x, inner), b.broadcast(target, inner)))
        return found if weight is None else b.mul(b.broadcast(weight, inner), found)

    if weight is not None and args.text("reduction", "mean") == "mean":
        raise NotLowerable(f"the mean of {args.call.target} with weights is outside the fragment")
    return reduced_loss(b, args, dims, refs, each)


@lowers("torch.nn.functional.mse_loss", parameters=f"input target {OLD} reduction weight")
def mse_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _of_difference(b, args, dims, lambda d: b.mul(d, d))


@lowers("torch.nn.functional.l1_loss", parameters=f"input target {OLD} reduction weight")
def l1_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _of_difference(b, args, dims, lambda d: b.unary("abs", d))


def _huber(b: Builder, difference: Node, delta: float) -> Node:
    """d² / 2 up to delta, from there on the straight line that goes on from it: with c = min(|d|, delta) it is
    c² / 2 + delta (|d| - c)."""
    size = b.unary("abs", difference)
    curved = b.minimum(size, b.const(delta))
    straight = b.mul(b.const(delta), b.sub(size, curved))
    return b.add(b.mul(b.const(0.5), b.mul(curved, curved)), straight)


@lowers("torch.nn.functional.huber_loss", parameters="input target reduction delta weight")
def huber_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    delta = args.number("delta", 1.0)
    return _of_difference(b, args, dims, lambda d: _huber(b, d, delta))


@lowers("torch.nn.functional.smooth_l1_loss", parameters=f"input target {OLD} reduction beta")
def smooth_l1_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    beta = args.number("beta", 1.0)
    if beta <= 0.0:
        return _of_difference(b, args, dims, lambda d: b.unary("abs", d), weighted=False)
    return _of_difference(b, args, dims, lambda d: b.mul(b.const(1.0 / beta), _huber(b, d, beta)), weighted=False)


@lowers("torch.nn.functional.kl_div", parameters=f"input target {OLD} reduction log_target")
def kl_div(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """target (log(target) - input), nothing where the target is 0."""
    x, target, is_log = args.ref("input"), args.ref("target"), args.flag("log_target")

    def each(inner: AtomDims) -> Node:
        given, wanted = b.broadcast(x, inner), b.broadcast(target, inner)
        if is_log:
            return b.mul(b.exp(wanted), b.sub(wanted, given))
        entropy = kept(b, wanted, b.mul(wanted, b.log(wanted)))
        return b.sub(entropy, b.mul(wanted, given))

    return reduced_loss(b, args, dims, [x, target], each)


@lowers(
    "torch.nn.functional.binary_cross_entropy_with_logits",
    parameters=f"input target weight {OLD} reduction pos_weight",
)
def binary_cross_entropy_with_logits(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """softplus(x) - x target."""
    if args.has("pos_weight"):
        raise NotLowerable("binary_cross_entropy_with_logits with pos_weight is outside the fragment")
    x, target, weight = args.ref("input"), args.ref("target"), args.optional("weight")

    def each(inner: AtomDims) -> Node:
        logit = b.broadcast(x, inner)
        found = b.sub(soft_plus(b, logit), b.mul(logit, b.broadcast(target, inner)))
        return found if weight is None else b.mul(b.broadcast(weight, inner), found)

    return reduced_loss(b, args, dims, [x], each)


@lowers("torch.nn.functional.soft_margin_loss", parameters=f"input target {OLD} reduction")
def soft_margin_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """log(1 + exp(-x target))."""
    x, target = args.ref("input"), args.ref("target")

    def each(inner: AtomDims) -> Node:
        return soft_plus(b, b.mul(b.const(-1.0), b.mul(b.broadcast(x, inner), b.broadcast(target, inner))))

    return reduced_loss(b, args, dims, [x, target], each)


@lowers("torch.nn.functional.binary_cross_entropy", parameters=f"input target weight {OLD} reduction")
def binary_cross_entropy(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """-(t log(x) + (1 - t) log(1 - x)), of logarithms that are no less than -100."""
    x, target, weight = args.ref("input"), args.ref("target"), args.optional("weight")
    one, minus, least = b.const(1.0), b.const(-1.0), b.const(-100.0)

    def each(inner: AtomDims) -> Node:
        given, wanted = b.at(x, inner), b.at(target, inner)
        yes = b.maximum(b.log(given), least)
        no = b.maximum(b.opaque(Kind.LOG1P, b.mul(minus, given)), least)
        loss = b.mul(minus, b.add(b.mul(wanted, yes), b.mul(b.sub(one, wanted), no)))
        return loss if weight is None else b.mul(b.broadcast(weight, inner), loss)

    return reduced_loss(b, args, dims, [x], each)


@lowers(
    "torch.nn.functional.poisson_nll_loss",
    parameters="input target log_input full size_average eps reduce reduction",
)  # fmt: skip
def poisson_nll_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """exp(x) - t x, or x - t log(x + eps), without what the target alone says."""
    if args.flag("full"):
        raise NotLowerable("a Poisson loss with Stirling's term is outside the fragment")
    x, target = args.ref("input"), args.ref("target")

    def each(inner: AtomDims) -> Node:
        rate, count = b.broadcast(x, inner), b.broadcast(target, inner)
        if args.flag("log_input", True):
            return b.sub(b.exp(rate), b.mul(count, rate))
        return b.sub(rate, b.mul(count, b.log(b.add(rate, b.const(args.number("eps", 1e-8))))))

    return reduced_loss(b, args, dims, [x, target], each)


@lowers("torch.nn.functional.margin_ranking_loss", parameters=f"input1 input2 target margin {OLD} reduction")
def margin_ranking_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """max(0, margin - target (input1 - input2))."""
    refs = [args.ref(name) for name in ("input1", "input2", "target")]
    margin = b.const(args.number("margin", 0.0))

    def each(inner: AtomDims) -> Node:
        one, other, target = (b.broadcast(ref, inner) for ref in refs)
        return b.unary("relu", b.sub(margin, b.mul(target, b.sub(one, other))))

    return reduced_loss(b, args, dims, refs, each)


def _length(b: Builder, x: Node, over: AtomDim) -> Node:
    return b.sqrt(b.sum(b.mul(x, x), over))


@lowers("torch.nn.functional.cosine_similarity", "torch.cosine_similarity", parameters="x1 x2 dim eps")
def cosine_similarity(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x1 . x2 over the product of their lengths, neither of which counts as less than eps."""
    refs = [args.ref("x1"), args.ref("x2")]
    shape = _broadcast(*map(b.shape, refs))
    dim, eps = args.integer("dim", 1) % len(shape), args.number("eps", 1e-8)
    over = b.fresh(shape[dim], "k")
    inner = (*dims[:dim], over, *dims[dim:])
    x, y = (b.broadcast(ref, inner) for ref in refs)
    if any(b.shape(ref) != shape for ref in refs):
        raise NotLowerable("a cosine of tensors that are broadcast is outside the fragment")
    lengths = [b.maximum(_length(b, one, over), b.const(eps)) for one in (x, y)]
    return b.div(b.sum(b.mul(x, y), over), b.mul(*lengths))


def _distance(b: Builder, one: Ref, other: Ref, args: Arguments, dims: AtomDims) -> Node:
    """Along the last dimension; eps is added to each difference. dims: of the others"""
    if args.number("p", 2.0) != 2.0:
        raise NotLowerable("a distance that is not Euclidean is outside the fragment")
    shape = _broadcast(b.shape(one), b.shape(other))
    if b.shape(one) != shape or b.shape(other) != shape:
        raise NotLowerable("a distance of tensors that are broadcast is outside the fragment")
    over = b.fresh(shape[-1], "k")
    difference = b.sub(b.at(one, (*dims, over)), b.at(other, (*dims, over)))
    return _length(b, b.add(difference, b.const(args.number("eps", 1e-6))), over)


@lowers("torch.nn.functional.pairwise_distance", "torch.pairwise_distance", parameters="x1 x2 p eps keepdim")
def pairwise_distance(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    rest = dims[:-1] if args.flag("keepdim") else dims
    return _distance(b, args.ref("x1"), args.ref("x2"), args, rest)


@lowers(
    "torch.nn.functional.triplet_margin_loss",
    parameters=f"anchor positive negative margin p eps swap {OLD} reduction",
)
def triplet_margin_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """max(0, margin + |anchor - positive| - |anchor - negative|)."""
    anchor, positive, negative = (args.ref(name) for name in ("anchor", "positive", "negative"))
    margin = b.const(args.number("margin", 1.0))

    def each(inner: AtomDims) -> Node:
        far = _distance(b, anchor, negative, args, inner)
        if args.flag("swap"):
            far = b.minimum(far, _distance(b, positive, negative, args, inner))
        return b.unary("relu", b.add(margin, b.sub(_distance(b, anchor, positive, args, inner), far)))

    return reduced_loss(b, args, dims, [anchor], each, without=len(b.shape(anchor)) - 1)
