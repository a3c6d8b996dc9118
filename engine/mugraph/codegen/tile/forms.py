"""The forms Triton has words for: constants are folded, `x / sqrt(y)` is `x * rsqrt(y)`, `a + -1 * b` is `a - b`,
`-max(-a, -b)` is a minimum."""

from __future__ import annotations

from dataclasses import replace

from mugraph.codegen.tile.kinds import MIN, RSQRT, SUB
from mugraph.codegen.tile.nodes import Node
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.kinds.numbers import Numbers


def with_forms(nodes: dict[str, Node]) -> dict[str, Node]:
    """Fold constants and choose Triton's forms, one operator at a time in dependency order."""
    out: dict[str, Node] = {}
    alias: dict[str, str] = {}
    for node in nodes.values():
        node = replace(node, inputs=tuple(alias[name] for name in node.inputs))
        args = [out[name] for name in node.inputs]
        formed = _form(node, args, out)
        if isinstance(formed, str):
            alias[node.name] = formed
        else:
            out[node.name] = formed
            alias[node.name] = node.name
    return out


def _form(node: Node, args: list[Node], out: dict[str, Node]) -> Node | str:
    """The node to define instead, or the name of the value it equals."""
    constants = [a.value for a in args if a.kind is Kind.CONST]
    if args and len(constants) == len(args) and node.kind.is_elementwise and not node.kind.is_function:
        try:
            return Node(node.name, Kind.CONST, value=node.kind.meaning(Numbers(), constants, node.fn, ()))
        except (ArithmeticError, ValueError) as error:
            raise Rejected(f"{node.name} is a constant expression that cannot be evaluated ({error}).") from error
    if not isinstance(node.kind, Kind):
        return node  # a form of Triton's already
    if node.kind.neutral is not None:
        for one, other in ((0, 1), (1, 0)):
            if args[one].kind is Kind.CONST and args[one].value == node.kind.neutral and args[other].axes == node.axes:
                return args[other].name
    if least := _least(node, out):
        return replace(node, kind=MIN, inputs=least)
    if node.kind.by_inverse is not None and args[1].kind is Kind.SQRT:
        root = Node(f"inv_{args[1].name}", RSQRT, args[1].inputs, args[1].axes)
        out[root.name] = root  # two divisions by one root share it
        if args[0].kind is Kind.CONST and args[0].value == 1.0:
            return root.name
        return replace(node, kind=node.kind.by_inverse, inputs=(args[0].name, root.name))
    if node.kind.shifted_by:
        for kept, negated in ((0, 1), (1, 0)):
            minus = _negated(args[negated], out)
            if minus:
                return replace(node, kind=SUB, inputs=(args[kept].name, minus))
    return node


def _negated(node: Node, out: dict[str, Node]) -> str:
    """The name of y when `node` is -1 * y."""
    for at in node.kind.scaled_by:
        constant = out[node.inputs[at]]
        if constant.kind is Kind.CONST and constant.value == -1.0:
            return node.inputs[1 - at]
    return ""


def _least(node: Node, out: dict[str, Node]) -> tuple[str, str] | None:
    """The operands of the minimum when `node` is -1 * max(-1 * a, -1 * b); a constant is negated as it is."""
    inner = _negated(node, out)
    if not inner or out[inner].kind is not Kind.MAX:
        return None
    found: list[str] = []
    for name in out[inner].inputs:
        operand = out[name]
        if operand.kind is Kind.CONST:
            negative = Node(f"neg_{name}", Kind.CONST, value=-operand.value)
            found.append(out.setdefault(negative.name, negative).name)
        elif plain := _negated(operand, out):
            found.append(plain)
    return (found[0], found[1]) if len(found) == 2 else None
