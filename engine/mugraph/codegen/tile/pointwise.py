"""The text of operators that work on each element, and of the constants among their operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from string import Formatter

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.index import subscript
from mugraph.codegen.tile.kinds import AnyKind
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pads import ANY, FINITE, VALID, Pad, elementwise
from mugraph.codegen.tile.text import Assign, Expr, Prec, Ref, Region, Value, number, uses
from mugraph.codegen.tile.values import Values
from mugraph.ir.dtypes import COMPARED, ELEMENTS
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.bounds import ANYWHERE, Ends, EndsArithmetic
from mugraph.ops.functions.unary import UNARY

_LOOKED_AT = 5
"""Operators between a conversion and the clamp before it, and those of the clamp."""
_NEEDS = {"": Prec.ADD, "product": Prec.MUL, "atom": Prec.ATOM}


def pointwise(out: Values, node: Node, region: Region) -> Value:
    """An arithmetic operator or a function of each element. Raises Rejected for any other."""
    values = _operands(out, node, region)
    dims = out.dims(node)
    operands = [Ref(value, index=subscript(value.dims, dims)) for value in values]
    if node.kind.inverted and values[1].dtype and len(values[1].dims) < len(dims):
        a, b = operands
        parts = (replace(a, need=Prec.MUL), f" * ({node.kind.inverted}", Ref(b.value, Prec.ATOM), f"){b.index}")
        expr = Expr(parts, Prec.MUL)
    elif node.kind.negated and (negated := _negated(out, node)) is not None:
        expr = Expr((node.kind.negated, replace(operands[negated], need=Prec.ATOM)), Prec.MUL)
    elif node.kind.is_function:
        expr = _filled(_function(node), operands)
    elif node.kind.inside and _is_inside(out, node):
        expr = _filled(node.kind.inside, operands)
    elif node.kind.is_elementwise and node.kind.triton:
        expr = spelled(node.kind, operands)
    else:
        raise Rejected(f"{node.name} has no text in Triton.")
    pads = result_pads(out, node, values)
    return out.define(out.value_name(node), dims, pads, region, expr, dtype=node.kind.stored or "f32")


def _is_inside(out: Values, node: Node) -> bool:
    """Is what is rounded to a stored type known to be within that type's range, as a clamp makes it?"""
    low, high = _ends(out, out.nodes[node.inputs[0]], _LOOKED_AT)
    return max(-low, high) <= ELEMENTS[node.kind.stored].largest


def _ends(out: Values, node: Node, steps: int) -> Ends:
    """Between which its numbers lie. steps: operators that are looked through"""
    if node.kind is Kind.CONST:
        return node.value, node.value
    if not steps or not node.kind.is_elementwise or not node.inputs:
        return ANYWHERE
    operands = [_ends(out, out.nodes[name], steps - 1) for name in node.inputs]
    found: Ends = node.kind.meaning(EndsArithmetic(), operands, node.fn, node.over)
    return found


def spelled(kind: AnyKind, operands: Sequence[str | Ref]) -> Expr:
    """The text of an element-wise kind; a constant comes last in a call whose arguments may change places."""
    if kind.commutes and _precedence(kind.triton) is Prec.ATOM:
        operands = sorted(operands, key=_is_constant)
    return _filled(kind.triton, operands)


def _filled(template: str, operands: Sequence[str | Ref]) -> Expr:
    """A text with {0} and {1} (kinds/kind.py: `triton`); what is in it twice is a statement before."""
    parts: list[str | Ref] = []
    places: set[str] = set()
    for text, place, need, _ in Formatter().parse(template):
        parts += [text] if text else []
        if place is None:
            continue
        operand = operands[int(place)]
        if isinstance(operand, Ref):
            operand = replace(operand, need=_NEEDS[need or ""])
            operand.value.named |= place in places
        places.add(place)
        parts.append(operand)
    return Expr(tuple(parts), _precedence(template))


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
    are_whole = _are_whole(out, node)
    for at, name in enumerate(node.inputs):
        source = out.nodes[name]
        if source.kind is Kind.CONST:
            others = (out.facts.reduced[other] for i, other in enumerate(node.inputs) if i != at)
            role = node.kind.constant
            reduced = frozenset[str]().union(*others) if role == "scale" else frozenset[str]()
            role = "eps" if role == "offset" and 0 < source.value < 0.01 else role
            values.append(constant(out, source, region, reduced, role))
        else:
            value = out.need(name, region)
            values.append(value if are_whole else out.f32(value))
    return values


def _are_whole(out: Values, node: Node) -> bool:
    """Are whole numbers compared? As integers they are what they are, however large."""
    is_truth = isinstance(node.kind, Kind) and node.kind.opaque is not None and node.kind.opaque.is_truth
    return is_truth and all(_is_whole(out, out.nodes[name]) for name in node.inputs)


def _is_whole(out: Values, node: Node) -> bool:
    if node.kind is Kind.CONST:
        return node.value.is_integer()
    if node.kind is Kind.LOAD:
        return out.block.tensor(node.tensor).dtype in COMPARED
    return node.kind is Kind.POSITION


def _negated(out: Values, node: Node) -> int | None:
    """The position of y where the product is -1 * y."""
    factors = [out.nodes[name] for name in node.inputs]
    minus = [factor.kind is Kind.CONST and factor.value == -1.0 for factor in factors]
    return minus.index(False) if any(minus) and not all(minus) else None


def position(out: Values, node: Node, region: Region) -> Value:
    """A place along axes: a whole number, or a float32 one where it is the same in all of the tile."""
    dims = out.dims(node)
    text = out.masks.place(node, dims)
    pads: dict[Dim, Pad] = {dim: FINITE for dim in dims if dim.padded(out.plan)}
    prec = Prec.ADD if " + " in text or " - " in text else Prec.MUL if " * " in text else Prec.ATOM
    if not dims:
        expr = Expr((f"({text}) * 1.0" if prec is Prec.ADD else f"{text} * 1.0",), Prec.MUL)
        return out.define(out.value_name(node), dims, pads, region, expr)
    value = Value(out.value_name(node), dims, "i32", pads, region, uses(Expr((text,), prec), region))
    if prec is Prec.ATOM:
        value.inlined = text  # an index, which has a name
    else:
        region.items.append(Assign(value))
    return value


def keep(out: Values, node: Node, region: Region) -> Value:
    """What a mask leaves of a value; the node's own value elsewhere."""
    value = out.f32(out.need(node.inputs[0], region))
    dims = out.dims(node)
    condition = out.masks.condition(out.nodes[node.inputs[1]], dims, out.nodes)
    operand = Ref(value, index=subscript(value.dims, dims)) if value.dims != dims else Ref(value)
    expr = Expr((f"tl.where({condition}, ", operand, f", {number(node.value)})"))
    pads: dict[Dim, Pad] = {}
    for dim, pad in value.pads.items():
        pads[dim] = elementwise(node.kind, "", (pad,)) if node.value == 0.0 else pad if pad == -inf else ANY
    pads |= {dim: ANY for dim in dims if dim not in value.dims and dim.padded(out.plan)}
    return out.define(out.value_name(node), dims, pads, region, expr)


def result_pads(out: Values, node: Node, values: Sequence[Value]) -> dict[Dim, Pad]:
    """What the padded lanes of an element-wise result hold."""
    result: dict[Dim, Pad] = {}
    for dim in out.order:
        if any(dim in value.pads for value in values):
            args = tuple(_pad(out, name, value, dim) for name, value in zip(node.inputs, values, strict=False))
            result[dim] = elementwise(node.kind, node.fn, args)
    return result


def _pad(out: Values, name: str, value: Value, dim: Dim) -> Pad:
    if out.nodes[name].kind is Kind.CONST:
        return out.nodes[name].value
    return value.pads.get(dim, VALID)


def _is_constant(operand: str | Ref) -> bool:
    return isinstance(operand, Ref) and not operand.value.dtype


def _function(node: Node) -> str:
    """The text of a function by its name."""
    if node.fn not in UNARY:
        raise Rejected(f"{node.name} applies {node.fn or 'no function'}, which has no text in Triton.")
    return UNARY[node.fn].triton.replace("{x}", "{0:atom}")


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
