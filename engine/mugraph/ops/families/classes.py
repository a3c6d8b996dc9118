"""Losses of classes: the logarithm of a class's share, of a class that is given by its index or by probabilities.

What stands at an index is a sum over the classes (picking.py), so it is found in the pass over them that their
logarithm needs anyway.
"""

from __future__ import annotations

from mugraph.ir.calls import Ref
from mugraph.ir.dtypes import COMPARED
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.picking import picked
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.families.logarithm import log_normalized_exp
from mugraph.ops.families.loss import reduced_loss
from mugraph.ops.families.masking import kept


class _Classes:
    """A call whose first argument has classes along its second dimension (or its only one)."""

    def __init__(self, b: Builder, args: Arguments) -> None:
        self.b, self.args = b, args
        self.x, self.target, self.weight = args.ref("input"), args.ref("target"), args.optional("weight")
        self.shape = b.shape(self.x)
        self.at = 1 if len(self.shape) > 1 else 0
        self.rest = (*self.shape[: self.at], *self.shape[self.at + 1 :])
        self.ignored = b.const(float(args.integer("ignore_index", -100)))

    def along(self, inner: AtomDims, classes: AtomDim) -> Node:
        """The input with these classes."""
        return self.b.at(self.x, (*inner[: self.at], classes, *inner[self.at :]))

    def classes(self) -> AtomDim:
        return self.b.fresh(self.shape[self.at], "c")

    def counts(self, inner: AtomDims) -> Node:
        """1 where the target is not ignored."""
        equal = self.b.opaque(Kind.EQUAL, self.b.at(self.target, inner), self.ignored)
        return self.b.masks.opposite(equal)

    def at_target(self, of: Node, inner: AtomDims, classes: AtomDim) -> Node:
        """What stands at the target's place along the classes."""
        return picked(self.b, self.b.at(self.target, inner), of, classes)

    def counted(self, inner: AtomDims) -> Node:
        """As how much each counts in the mean."""
        return self.b.mul(self.counts(inner), self.factor(inner))

    def factor(self, inner: AtomDims) -> Node:
        """The target's weight."""
        if self.weight is None:
            return self.b.const(1.0)
        classes = self.classes()
        return self.at_target(self.b.at(self.weight, (classes,)), inner, classes)

    def kept(self, inner: AtomDims, loss: Node) -> Node:
        return kept(self.b, self.counts(inner), loss)


def _check(b: Builder, args: Arguments, found: _Classes) -> None:
    if b.values[found.target.value].dtype not in COMPARED or b.shape(found.target) != found.rest:
        raise NotLowerable(f"{args.call.target} with targets that are no indices is outside the fragment")


@lowers(
    "torch.nn.functional.nll_loss", "torch.nn.functional.nll_loss_nd", "torch.nll_loss",
    parameters="input target weight size_average ignore_index reduce reduction",
)  # fmt: skip
def nll_loss(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """-input at the target's place, times its weight."""
    call = _Classes(b, args)
    _check(b, args, call)

    def each(inner: AtomDims) -> Node:
        classes = call.classes()
        picked = call.at_target(call.along(inner, classes), inner, classes)
        return call.kept(inner, b.mul(b.const(-1.0), b.mul(call.factor(inner), picked)))

    return reduced_loss(b, args, dims, [call.x], each, call.counted, without=call.at)


@lowers(
    "torch.nn.functional.cross_entropy",
    parameters="input target weight size_average ignore_index reduce reduction label_smoothing",
)
def cross_entropy(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    call, smoothing = _Classes(b, args), args.number("label_smoothing", 0.0)
    if b.values[call.target.value].dtype not in COMPARED:
        return _of_probabilities(b, args, dims, call, smoothing)
    _check(b, args, call)

    def each(inner: AtomDims) -> Node:
        """log(sum of exp(input)) - input at the target's place; smoothed, less of that and some of the mean of all."""
        classes = call.classes()
        x = call.along(inner, classes)
        whole = b.log(b.sum(b.exp(x), classes))
        loss = b.mul(call.factor(inner), b.sub(whole, call.at_target(x, inner, classes)))
        if smoothing:  # the sum of whole - x over the classes, without another pass over them
            size = call.shape[call.at]
            if call.weight is None:
                missed = b.sub(b.mul(b.const(float(size)), whole), b.sum(x, classes))
            else:
                weight = b.at(call.weight, (classes,))
                missed = b.sub(b.mul(b.sum(weight, classes), whole), b.sum(b.mul(weight, x), classes))
            loss = b.add(b.mul(b.const(1.0 - smoothing), loss), b.mul(b.const(smoothing / size), missed))
        return call.kept(inner, loss)

    return reduced_loss(b, args, dims, [call.x], each, call.counted, without=call.at)


def _of_probabilities(b: Builder, args: Arguments, dims: AtomDims, call: _Classes, smoothing: float) -> Node:
    """-target . log_softmax(input) along the classes."""
    target: Ref = call.target
    if b.shape(target) != call.shape:
        raise NotLowerable(f"{args.call.target} with targets of another shape is outside the fragment")

    def each(inner: AtomDims) -> Node:
        classes = call.classes()
        whole = (*inner[: call.at], classes, *inner[call.at :])
        share = b.mul(b.const(1.0 - smoothing), b.at(target, whole))
        if smoothing:
            share = b.add(share, b.const(smoothing / call.shape[call.at]))
        if call.weight is not None:
            share = b.mul(share, b.at(call.weight, (classes,)))
        missed = b.mul(b.const(-1.0), log_normalized_exp(b, call.x, whole, call.at))
        return b.sum(b.mul(share, missed), classes)

    return reduced_loss(b, args, dims, [call.x], each, without=call.at)
