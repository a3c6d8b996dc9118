"""Operands of products that are computed of bytes in float16, where it has each number on the way: by the bits of its
mantissa (ir/mantissa.py), and sums and products with constants. A zero point is subtracted from two weights at once
then, and nothing is converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import frexp

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pads import Pad
from mugraph.codegen.tile.pointwise import constant, result_pads, spelled
from mugraph.codegen.tile.text import Assign, Expr, Prec, Ref, Region, Value, uses
from mugraph.codegen.tile.values import Values
from mugraph.ir.dtypes import COMPUTED, READ, DType
from mugraph.ir.mantissa import OF_BYTES, of_bits
from mugraph.ir.ops import Kind

HALF = "f16"
_BYTE: DType = "u8"
_STEPS = 1 / COMPUTED["f16"].epsilon
"""Of the numbers that float16 has between 0 and some power of two, one after the other."""


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Multiples of `step`, a power of two, from `least` to `most`."""

    least: float
    most: float
    step: float

    @property
    def are_halves(self) -> bool:
        """Has float16 each of them? It has as many steps, none shorter than its least number."""
        size = max(abs(self.least), abs(self.most))
        half = COMPUTED["f16"]
        return size <= min(_STEPS * self.step, half.largest) and self.step >= half.smallest


class _Exact:
    """An arithmetic of numbers that float16 has; None of others, and of all other operations."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None

    def add(self, a: _Numbers | None, b: _Numbers | None) -> _Numbers | None:
        return a and b and _if_halves(a.least + b.least, a.most + b.most, min(a.step, b.step))

    def sub(self, a: _Numbers | None, b: _Numbers | None) -> _Numbers | None:
        return a and b and _if_halves(a.least - b.most, a.most - b.least, min(a.step, b.step))

    def mul(self, a: _Numbers | None, b: _Numbers | None) -> _Numbers | None:
        if a is None or b is None:
            return None
        ends = [one * two for one in (a.least, a.most) for two in (b.least, b.most)]
        return _if_halves(min(ends), max(ends), a.step * b.step)


def _if_halves(least: float, most: float, step: float) -> _Numbers | None:
    found = _Numbers(least, most, step)
    return found if found.are_halves else None


def of_bytes(out: Values, name: str, region: Region) -> Value | None:
    """The operand in float16; None where it is something else, or float16 lacks one of its numbers."""
    node = out.nodes[name]
    if node.kind is Kind.CONST or _numbers(out, node) is None:
        return None
    return _computed(out, node, region)


def _numbers(out: Values, node: Node) -> _Numbers | None:
    """What it may be; None where it is not computed of bytes and constants, or float16 lacks one of them."""
    found: _Numbers | None = None
    if node.kind is Kind.CONST:
        found = _one(node.value)
    elif (masked := _masked(out, node)) is not None:
        mask = masked[1]
        found = _Numbers(0.0, float(mask), float(mask & -mask or 1))
    elif node.kind is Kind.LOAD:
        dtype = out.block.tensor(node.tensor).dtype
        kind = READ[dtype]
        found = _Numbers(kind.least or 0.0, kind.largest, 1.0) if dtype in OF_BYTES else None
    elif node.kind.is_elementwise and node.inputs:
        operands = [out.nodes[one] for one in node.inputs]
        if len({one.axes for one in operands if one.kind is not Kind.CONST}) == 1:
            numbers = [_numbers(out, one) for one in operands]
            found = node.kind.meaning(_Exact(), numbers, node.fn, node.over)
    return found if found is not None and found.are_halves else None


def _one(value: float) -> _Numbers:
    """A constant, and the longest step to it."""
    mantissa, exponent = frexp(value)
    digits = 0
    while mantissa and not mantissa.is_integer():
        mantissa, digits = 2 * mantissa, digits + 1
    return _Numbers(value, value, 2.0 ** (exponent - digits) if value else 1.0)


def _masked(out: Values, node: Node) -> tuple[Node, int] | None:
    """Of an operator that is one on unsigned bytes: these as they are loaded, and its constant."""
    if not isinstance(node.kind, Kind) or not node.kind.of_byte:
        return None
    source, by = (out.nodes[one] for one in node.inputs)
    if source.kind is not Kind.LOAD or out.block.tensor(source.tensor).dtype != _BYTE:
        return None
    is_byte = by.kind is Kind.CONST and by.value.is_integer() and 0 <= by.value <= READ[_BYTE].largest
    return (source, int(by.value)) if is_byte else None


def _computed(out: Values, node: Node, region: Region) -> Value:
    masked = _masked(out, node)
    if masked is not None:
        source, mask = masked
        assert isinstance(node.kind, Kind)
        return _of_bits(out, source, node, of_bits(node.kind.of_byte.format("{x}", mask)), region)
    if node.kind is Kind.LOAD:
        return _of_bits(out, node, node, OF_BYTES[out.block.tensor(node.tensor).dtype], region)
    key = f"half {node.name}"
    if key not in region.memo:
        operands: list[Value] = []
        for one in (out.nodes[name] for name in node.inputs):
            is_constant = one.kind is Kind.CONST
            operands.append(constant(out, one, region) if is_constant else _computed(out, one, region))
        expr = spelled(node.kind, [Ref(value) for value in operands])
        pads = result_pads(out, node, operands)
        region.memo[key] = _assigned(out, node, pads, expr, region)
    return region.memo[key]


def _of_bits(out: Values, source: Node, node: Node, text: str, region: Region) -> Value:
    """Once, in the region of the bytes."""
    value = out.need(source.name, region)
    key = f"half {node.name}"
    if key not in value.variants:
        before, after = text.split("{x}")
        expr = Expr((before, Ref(value, Prec.ATOM), after))
        value.variants[key] = _assigned(out, node, value.pads, expr, value.region)
    return value.variants[key]


def _assigned(out: Values, node: Node, pads: dict[Dim, Pad], expr: Expr, region: Region) -> Value:
    found = Value(out.fresh(f"{node.name}_{HALF}"), out.dims(node), HALF, pads, region, uses(expr, region))
    region.items.append(Assign(found))
    return found
