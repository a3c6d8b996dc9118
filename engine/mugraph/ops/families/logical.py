"""Conditions, which are 1 or 0: comparisons the other way round, and what is made of conditions."""

from __future__ import annotations

from collections.abc import Callable

from mugraph.ir.calls import Ref
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder, Rule
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.families.bits import masked, of_integers


def _pair(b: Builder, args: Arguments, dims: AtomDims) -> tuple[Node, Node]:
    return b.broadcast(args.operand("input"), dims), b.broadcast(args.operand("other"), dims)


def above(b: Builder, x: Node, y: Node) -> Node:
    return b.opaque(Kind.GREATER, x, y)


def _less(kind: Kind) -> Rule:
    def rule(b: Builder, args: Arguments, dims: AtomDims) -> Node:
        x, y = _pair(b, args, dims)
        return b.opaque(kind, y, x)

    return rule


lowers(
    "torch.lt", "torch.less", "Tensor.lt", "Tensor.less", "Tensor.__lt__", parameters="input other", truth=True
)(_less(Kind.GREATER))  # fmt: skip
lowers(
    "torch.le", "torch.less_equal", "Tensor.le", "Tensor.less_equal", "Tensor.__le__", parameters="input other",
    truth=True,
)(_less(Kind.GREATER_EQUAL))  # fmt: skip


@lowers("torch.ne", "torch.not_equal", "Tensor.ne", "Tensor.not_equal", "Tensor.__ne__", parameters="input other",
        truth=True)  # fmt: skip
def not_equal(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.masks.opposite(b.opaque(Kind.EQUAL, *_pair(b, args, dims)))


def _conditions(b: Builder, args: Arguments, dims: AtomDims, *names: str) -> list[Node]:
    for name in names:
        operand = args.get(name)
        if not isinstance(operand, Ref) or b.values[operand.value].dtype != "bool":
            raise NotLowerable(f"{args.call.target} of what is no condition is outside the fragment")
    return [b.broadcast(args.ref(name), dims) for name in names]


@lowers("torch.logical_not", "torch.bitwise_not", "Tensor.logical_not", "Tensor.bitwise_not", "Tensor.__invert__",
        truth=True)  # fmt: skip
def logical_not(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.masks.opposite(*_conditions(b, args, dims, "input"))


def _both(how: Callable[[Builder, Node, Node], Node]) -> Rule:
    return lambda b, args, dims: how(b, *_conditions(b, args, dims, "input", "other"))


def _spelled(name: str) -> list[str]:
    targets = [f"{owner}.{kind}_{name}" for owner in ("torch", "Tensor") for kind in ("logical", "bitwise")]
    return [*targets, f"Tensor.__{name}__"]


_and = _both(lambda b, x, y: b.mul(x, y))


@lowers(*_spelled("and"), "Tensor.__rand__", parameters="input other", truth=True)
def both(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Of conditions; of integers, their bits (but for "logical_and", which is a condition)."""
    bitwise = not args.call.target.endswith("logical_and")
    return masked(b, args, dims) if bitwise and of_integers(b, args) else _and(b, args, dims)


lowers(*_spelled("or"), parameters="input other", truth=True)(_both(lambda b, x, y: b.maximum(x, y)))
