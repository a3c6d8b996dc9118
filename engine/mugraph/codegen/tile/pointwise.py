"""The text of operators that work on each element, and of the constants among their operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.index import subscript
from mugraph.codegen.tile.nodes import Node, TileKind
from mugraph.codegen.tile.pads import ANY, VALID, Pad, elementwise
from mugraph.codegen.tile.text import Expr, Prec, Ref, Region, Value
from mugraph.codegen.tile.values import Values
from mugraph.ir.kernel import Rejected
from mugraph.ops.functions.unary import UNARY

_SYMBOL = {TileKind.ADD: " + ", TileKind.SUB: " - ", TileKind.MUL: " * ", TileKind.DIV: " / "}


def pointwise(out: Values, node: Node, region: Region) -> Value:
    """An arithmetic operator or a function of each element. Raises Rejected for any other."""
    values = _operands(out, node, region)
    dims = out.dims(node)
    index = [subscript(value.dims, dims) for value in values]
    match node.kind:
        case TileKind.ADD | TileKind.SUB:
            a, b = values
            parts = (Ref(a, Prec.ADD, index[0]), _SYMBOL[node.kind], Ref(b, Prec.MUL, index[1]))
            expr = Expr(parts, Prec.ADD)
        case TileKind.DIV if values[1].dtype and len(values[1].dims) < len(dims):
            a, b = values
            expr = Expr((Ref(a, Prec.MUL, index[0]), " * (1.0 / ", Ref(b, Prec.ATOM), f"){index[1]}"), Prec.MUL)
        case TileKind.MUL if (negated := _negated(out, node)) is not None:
            expr = Expr(("-", Ref(values[negated], Prec.ATOM, index[negated])), Prec.MUL)
        case TileKind.MUL | TileKind.DIV:
            a, b = values
            parts = (Ref(a, Prec.MUL, index[0]), _SYMBOL[node.kind], Ref(b, Prec.ATOM, index[1]))
            expr = Expr(parts, Prec.MUL)
        case TileKind.SQRT | TileKind.RSQRT:
            expr = Expr((f"tl.{node.kind.value}(", Ref(values[0]), ")"))
        case TileKind.MAX | TileKind.MIN:
            a, b = (Ref(value, index=i) for value, i in sorted(zip(values, index, strict=True), key=_is_constant))
            expr = larger(a, b, least=node.kind is TileKind.MIN)
        case TileKind.UNARY:
            expr = _unary(node, values[0])
        case _:
            raise Rejected(f"{node.name} has no text in Triton.")
    pads = result_pads(out, node, values)
    return out.define(out.value_name(node), dims, pads, region, expr)


def constant(out: Values, node: Node, region: Region, reduced: frozenset[str] = frozenset(), role: str = "") -> Value:
    """A number, or the name it has in the kernel.

    reduced: axes summed in what it multiplies or divides. role: what to call it where it has no name of its own
    """
    wanted = role if role and node.name.rstrip("_0123456789") == "c" else node.name
    value = Value(node.name, (), "", {}, region, Expr((out.constants.text(wanted, node.value, reduced),)))
    value.inlined = str(value.expr.parts[0])
    return value


def _operands(out: Values, node: Node, region: Region) -> list[Value]:
    values: list[Value] = []
    for at, name in enumerate(node.inputs):
        source = out.nodes[name]
        if source.kind is TileKind.CONST:
            others = (out.facts.reduced[other] for i, other in enumerate(node.inputs) if i != at)
            scaling = node.kind in (TileKind.MUL, TileKind.DIV)
            reduced = frozenset[str]().union(*others) if scaling else frozenset[str]()
            limit = node.kind in (TileKind.MAX, TileKind.MIN)
            role = "scale" if scaling else "limit" if limit else "eps" if 0 < source.value < 0.01 else "offset"
            values.append(constant(out, source, region, reduced, role))
        else:
            values.append(out.f32(out.need(name, region)))
    return values


def _negated(out: Values, node: Node) -> int | None:
    """The position of y where the product is -1 * y."""
    factors = [out.nodes[name] for name in node.inputs]
    minus = [factor.kind is TileKind.CONST and factor.value == -1.0 for factor in factors]
    return minus.index(False) if any(minus) and not all(minus) else None


def keep(out: Values, node: Node, region: Region) -> Value:
    """What a mask leaves of a value; the node's own value elsewhere."""
    value = out.f32(out.need(node.inputs[0], region))
    condition = out.masks.condition(out.nodes[node.inputs[1]], value.dims)
    other = "0.0" if node.value == 0.0 else 'float("-inf")'
    expr = Expr((f"tl.where({condition}, ", Ref(value), f", {other})"))
    pads: dict[Dim, Pad] = {}
    for dim, pad in value.pads.items():
        pads[dim] = elementwise(node.kind, "", (pad,)) if node.value == 0.0 else pad if pad == -inf else ANY
    return out.define(out.value_name(node), value.dims, pads, region, expr)


def result_pads(out: Values, node: Node, values: Sequence[Value]) -> dict[Dim, Pad]:
    """What the padded lanes of an element-wise result hold."""
    result: dict[Dim, Pad] = {}
    for dim in out.order:
        if any(dim in value.pads for value in values):
            args = tuple(_pad(out, name, value, dim) for name, value in zip(node.inputs, values, strict=False))
            result[dim] = elementwise(node.kind, node.fn, args)
    return result


def _pad(out: Values, name: str, value: Value, dim: Dim) -> Pad:
    if out.nodes[name].kind is TileKind.CONST:
        return out.nodes[name].value
    return value.pads.get(dim, VALID)


def _is_constant(operand: tuple[Value, str]) -> bool:
    return not operand[0].dtype


def larger(a: str | Ref, b: str | Ref, *, least: bool = False) -> Expr:
    """The larger of two (least: the smaller), NaN where one of them is, as PyTorch's."""
    function = "minimum" if least else "maximum"
    return Expr((f"tl.{function}(", a, ", ", b, ", propagate_nan=tl.PropagateNan.ALL)"))


def _unary(node: Node, value: Value) -> Expr:
    if node.fn not in UNARY:
        raise Rejected(f"{node.name} applies {node.fn or 'no function'}, which has no text in Triton.")
    template = UNARY[node.fn].triton
    pieces = template.split("{x}")
    if len(pieces) > 2:
        value.named = True
    parts: list[str | Ref] = [pieces[0]]
    for piece in pieces[1:]:
        parts += [Ref(value, Prec.ATOM), piece]
    return Expr(tuple(parts), _precedence(template))


def _precedence(text: str) -> Prec:
    """How tightly an expression without brackets around it binds."""
    depth, prec = 0, Prec.ATOM
    for before, character in zip(" " + text, text, strict=False):
        depth += (character == "(") - (character == ")")
        if depth == 0 and before == " " and character in "+-":
            return Prec.ADD
        if depth == 0 and character in "*/":
            prec = Prec.MUL
    return prec
