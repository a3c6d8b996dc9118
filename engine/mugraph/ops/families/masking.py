"""Calls that hide a part of a tensor: masked_fill, where, tril and triu."""

from __future__ import annotations

from math import inf

from mugraph.ir.calls import Ref
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.hiding import replaced
from mugraph.ops.algebra.masks import is_low
from mugraph.ops.algebra.nodes import Node, conjuncts
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


def filler(b: Builder, args: Arguments, name: str) -> float:
    """The number an argument is, also as a tensor that holds nothing else; it may be minus infinity."""
    argument = args.get(name)
    if isinstance(argument, Ref):
        triangle = b.values[argument.value].triangle
        if triangle is None or not triangle.is_uniform:
            raise NotLowerable(f"{args.call.target} with a tensor as {name} is outside the fragment")
        return -inf if triangle.below is None else triangle.below
    if not isinstance(argument, (int, float)) or argument != argument or argument == float("inf"):
        raise NotLowerable(f"{args.call.target} needs a number as {name}")
    return float(argument)


def chosen(b: Builder, args: Arguments, x: Node, keep: Node, number: str) -> Node:
    """`x` where the mask `keep` is 1, elsewhere the number that an argument is."""
    other = filler(b, args, number)
    if other == -inf:
        return b.hide(x, keep)
    if is_low(other, b.values[args.output].dtype):
        return b.hide(x, keep, b.const(other))
    return b.mul(x, keep) if other == 0.0 else replaced(b, x, keep, b.const(other))


def kept(b: Builder, condition: Node, value: Node) -> Node:
    """The value where a condition is 1, else 0, whatever the value is there."""
    return b.mul(condition, value) if value.kind is Kind.CONST else b.opaque(Kind.KEPT, condition, value)


def where_holds(b: Builder, condition: Node, x: Node, y: Node) -> Node:
    """`x` where a condition is 1, `y` where it is 0. The other one may be no number there."""

    if y.kind is Kind.CONST and y.value == 0.0:
        return kept(b, condition, x)
    opposite = b.sub(b.const(1.0), condition)
    if x.kind is Kind.CONST and x.value == 0.0:
        return kept(b, opposite, y)
    return b.add(kept(b, condition, x), kept(b, opposite, y))


def _of_places(b: Builder, condition: Ref, dims: AtomDims, holds: bool) -> Node | None:
    """1 where a condition on places holds (or, holds=False, where it does not), if that is masks or their product."""
    found = b.broadcast(condition, dims)
    found = found if holds else b.masks.opposite(found)
    return found if conjuncts(found) or found.kind is Kind.CONST else None


def _varies(b: Builder, condition: Ref) -> bool:
    """Is the condition computed here, element by element, or read, and no constant?"""
    return b.values[condition.value].triangle is None


@lowers(
    "torch.masked_fill", "Tensor.masked_fill", "Tensor.masked_fill_", parameters="input mask value",
)  # fmt: skip
def masked_fill(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if _varies(b, args.ref("mask")):
        keep = _of_places(b, args.ref("mask"), dims, holds=False)
        if keep is not None:
            return chosen(b, args, b.broadcast(args.ref("input"), dims), keep, "value")
        holds, x = b.broadcast(args.ref("mask"), dims), b.broadcast(args.ref("input"), dims)
        if _hides(b, args, "value"):
            return b.hide(x, b.masks.opposite(holds))
        return where_holds(b, holds, b.const(args.number("value")), x)
    keep = b.masks.where(args.ref("mask"), dims, holds=False)
    return chosen(b, args, b.broadcast(args.ref("input"), dims), keep, "value")


@lowers("torch.where", parameters="condition input other")
def where(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    condition = args.ref("condition")
    if _varies(b, condition):
        for kept, filled, holds in (("input", "other", True), ("other", "input", False)):
            keep = _of_places(b, condition, dims, holds) if _filled(b, args, filled) else None
            if keep is not None:
                return chosen(b, args, b.broadcast(args.operand(kept), dims), keep, filled)
        holds = b.broadcast(condition, dims)
        if _hides(b, args, "other"):
            return b.hide(b.broadcast(args.operand("input"), dims), holds)
        if _hides(b, args, "input"):
            return b.hide(b.broadcast(args.operand("other"), dims), b.masks.opposite(holds))
        x, y = (b.broadcast(args.operand(name), dims) for name in ("input", "other"))
        return where_holds(b, holds, x, y)
    b.masks.truth(condition)
    number = _filled(b, args, "other")
    if number:
        keep = b.masks.where(condition, dims)
        return chosen(b, args, b.broadcast(args.operand("input"), dims), keep, "other")
    keep = b.masks.where(condition, dims, holds=False)
    return chosen(b, args, b.broadcast(args.operand("other"), dims), keep, "input")


def _hides(b: Builder, args: Arguments, name: str) -> bool:
    """Is the argument minus infinity itself? (A condition that is read may choose between two finite numbers.)"""
    argument = args.get(name)
    if isinstance(argument, Ref):
        triangle = b.values[argument.value].triangle
        return triangle is not None and triangle.is_uniform and triangle.below is None
    return argument == -inf


def _filled(b: Builder, args: Arguments, name: str) -> bool:
    """Is the argument one number?"""
    argument = args.get(name)
    if not isinstance(argument, Ref):
        return True
    triangle = b.values[argument.value].triangle
    return triangle is not None and triangle.is_uniform


@lowers("torch.tril", "Tensor.tril", "Tensor.tril_", parameters="input diagonal")
def tril(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    mask = b.mask(dims[-2], dims[-1], args.integer("diagonal", 0))
    return b.mul(b.at(args.ref("input"), dims), mask)


@lowers("torch.triu", "Tensor.triu", "Tensor.triu_", parameters="input diagonal")
def triu(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    below = b.mask(dims[-2], dims[-1], args.integer("diagonal", 0) - 1)
    return b.mul(b.at(args.ref("input"), dims), b.masks.complement(below))
