"""Softmax and attention: exp, sum and division. Keeping the numbers in range is the code generator's duty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import sqrt

from mugraph.ir.calls import Ref
from mugraph.ir.dtypes import largest
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.hiding import parts, read_parts
from mugraph.ops.algebra.nodes import Node, conjuncts, constant_factor
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.algebra.rows import rows
from mugraph.ops.families.logical import above
from mugraph.ops.families.masking import kept
from mugraph.ops.families.reduce import reduced


def _normalized_exp(b: Builder, logits: Ref, dims: AtomDims, dim: int) -> Node:
    """exp(logits) over its sum along the dimension."""
    return b.div(b.exp(b.at(logits, dims)), rows(b, logits, dims, dims[dim]).sum(b.exp))


@lowers("torch.softmax", "torch.special.softmax", "Tensor.softmax", parameters="input dim dtype")
def softmax(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if not dims:
        raise NotLowerable("a softmax of one number is a constant")
    return _normalized_exp(b, args.ref("input"), dims, args.integer("dim"))


@lowers("torch.nn.functional.softmax", parameters="input dim _stacklevel dtype")
def functional_softmax(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if args.has("dim") or not dims:
        return softmax(b, args, dims)
    return _normalized_exp(b, args.ref("input"), dims, implicit_dim(dims))


def implicit_dim(dims: AtomDims) -> int:
    """Without a dimension, PyTorch still chooses the first one of a vector or a batch of matrices, else the second."""
    return 0 if len(dims) in (1, 3) else 1


@lowers("torch.logsumexp", "torch.special.logsumexp", "Tensor.logsumexp", parameters="input dim keepdim")
def logsumexp(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Where it is subtracted before an exponential: exp(x - logsumexp(x)) is a softmax."""
    x, over, _ = reduced(b, args, dims, args.integers("dim"))
    return b.log(b.sum(b.exp(x), over))


@dataclass(frozen=True)
class _Masked:
    """Logits under a mask, which holds truth values or is added to them.

    seen: 1 where something of a row is seen, at the axes of the mask that do not run along it; None where it is so for
          every row
    """

    logits: Node
    seen: Node | None


def _masked(b: Builder, logits: Node, mask: Ref, dims: AtomDims) -> _Masked:
    is_constant, is_truth = b.values[mask.value].triangle is not None, b.values[mask.value].dtype == "bool"
    if is_constant and is_truth:
        return _Masked(b.hide(logits, b.masks.where(mask, dims)), None)
    found = b.broadcast(mask, dims)
    if is_truth and (conjuncts(found) or found.kind is Kind.CONST):
        return _Masked(b.hide(logits, found), None)
    along = () if b.shape(mask)[-1:] == (1,) else dims[-1]
    keep = found if is_truth else found.keep
    if keep is not None and (read := read_parts(keep)):
        shown = logits if is_truth else b.add(logits, found.inputs[0])
        masks = [part for part in parts(keep) if conjuncts(part)]
        seen = b.amax(keep if is_truth else reduce(b.mul, read), along)
        return _Masked(reduce(b.hide, masks, _attended(b, shown, reduce(b.mul, read))), seen)
    if is_constant or b.places.decide(found):
        return _Masked(b.add(logits, found), None)
    hides_all = above(b, b.const(-largest("f32")), b.amax(found, along))  # no NaN does
    return _Masked(b.add(logits, found), b.masks.opposite(hides_all))


def _attended(b: Builder, logits: Node, condition: Node) -> Node:
    """The logits where the condition is 1, elsewhere with minus infinity added to them."""
    factor, scaled = constant_factor(logits) or (1.0, logits)
    if factor > 0.0:  # a kernel's powers of two take the factor in
        return b.mul(b.const(factor), b.opaque(Kind.ATTENDED, condition, scaled))
    return b.opaque(Kind.ATTENDED, condition, logits)


@lowers(
    "torch.nn.functional.scaled_dot_product_attention",
    parameters="query key value attn_mask dropout_p is_causal scale enable_gqa",
)
def attention(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """softmax(query @ key.T * scale) @ value; query [.., heads, s, d], key and value [.., heads or fewer, t, d].

    Where a mask hides all of a row, the result is 0, as PyTorch says since version 2.5."""
    q, k, v = args.ref("query"), args.ref("key"), args.ref("value")
    if args.number("dropout_p", 0.0) != 0.0:
        raise NotLowerable("attention with dropout draws random numbers")
    batch, (s, e) = dims[:-2], dims[-2:]
    shape, keys, values = b.shape(q), b.shape(k), b.shape(v)
    d, t = b.fresh(shape[-1], "d", 4), b.fresh(keys[-2], "t", 4)
    for dim, hint in ((s, "s"), (e, "e")):
        b.atoms.suggest(dim, hint, 4)
    for dim, hint in zip(reversed(batch), ("h", "b"), strict=False):
        b.atoms.suggest(dim, hint, 4)

    def shared(heads: tuple[int, ...]) -> AtomDims:
        """The batch axes of keys or values: with grouped queries, the outer part of the query heads."""
        if args.flag("enable_gqa") and heads and heads[-1] != shape[-3]:
            groups = shape[-3] // heads[-1]
            outer, inner = b.atoms.regroup(batch[-1], (heads[-1], groups))
            b.atoms.suggest(outer, "h", 4)
            b.atoms.suggest(inner, "g", 5)
            return (*b.trim(heads[:-1], batch[:-1]), outer)
        return b.trim(heads, batch)

    logits = b.dot(b.at(q, (*b.trim(shape[:-2], batch), s, d)), b.at(k, (*shared(keys[:-2]), t, d)), d)
    logits = b.mul(b.const(args.number("scale", 1.0 / sqrt(shape[-1]))), logits)
    if args.flag("is_causal"):  # the first query sees the first key, also where there are more keys than queries
        logits = b.hide(logits, b.mask(s, t, 0))
    seen: Node | None = None
    if args.has("attn_mask"):
        masked = _masked(b, logits, args.ref("attn_mask"), (*batch, s, t))
        logits, seen = masked.logits, masked.seen
    weights = b.exp(logits)
    mixed = b.dot(b.div(weights, b.sum(weights, t)), b.at(v, (*shared(values[:-2]), t, e)), t)
    return mixed if seen is None else kept(b, seen, mixed)
