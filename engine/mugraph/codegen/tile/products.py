"""The text of matrix products: the order, types and padded lanes of what `tl.dot` takes.

In tf32, the tensor cores cut off what they do not take of a float32 number. So operands are rounded to the nearest
before, as cuBLAS and cuDNN round them.
"""

from __future__ import annotations

from math import isfinite

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.byte_operands import of_bytes
from mugraph.codegen.tile.dims import product_dims
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pads import VALID, Pad, Unknown, summed
from mugraph.codegen.tile.text import Expr, Ref, Region, Value
from mugraph.codegen.tile.values import Values
from mugraph.ir.block import TF32
from mugraph.ir.dtypes import STORED
from mugraph.ir.ops import Kind


def dot(out: Values, node: Node, region: Region, accumulator: str = "") -> Expr:
    """`tl.dot`, its left operand the one whose side comes first in the kernel's order."""
    product = product_dims(node, out.nodes, out.plan, out.order)
    at = {dim: position for position, dim in enumerate(out.order)}
    operands = _dot_operands(out, node, region, product.inner)
    exact = "f32" in _storage(out, node)
    if exact and node.tf32 and out.precision == TF32:
        operands = [out.tf32(value) for value in operands]
    if at[product.left] > at[product.right]:
        operands.reverse()
    texts: list[str | Ref] = []
    for position, value in enumerate(operands):
        natural = (value.dims[1] if position == 0 else value.dims[0]) == product.inner
        texts += [Ref(value)] if natural else ["tl.trans(", Ref(value), ")"]
        texts.append(", ")
    texts[-1] = f", {accumulator}" if accumulator else ""
    if operands[0].dtype == "f32":
        # float16 and bfloat16 both fit tf32 without loss; float32 programs keep their precision, unless they may not.
        own = "ieee" if out.precision == TF32 and not node.tf32 else out.precision
        texts.append(f', input_precision="{own if exact else TF32}"')
    return Expr(("tl.dot(", *texts, ")"))


def dot_pads(out: Values, node: Node, region: Region) -> dict[Dim, Pad]:
    """What the padded lanes of a product hold; its operands are what `dot` takes."""
    product = product_dims(node, out.nodes, out.plan, out.order)
    values = _dot_operands(out, node, region, product.inner)
    return {dim: summed(pad, VALID) for value in values for dim, pad in value.pads.items() if dim != product.inner}


def _dot_operands(out: Values, node: Node, region: Region, inner: Dim) -> list[Value]:
    """The operands in their storage type, exactly 0 beyond the end of the summed dimension."""
    storage = _storage(out, node)
    dtype = next(iter(storage)) if len(storage) == 1 else "f32"
    bits = [of_bytes(out, name, region) if dtype == "f16" else None for name in node.inputs]
    values = [value or out.need(name, region) for value, name in zip(bits, node.inputs, strict=True)]
    pads = [value.pads.get(inner) for value in values]
    if inner in values[0].pads or inner in values[1].pads:
        if pads[0] == 0.0:
            keep = (True, _harmless(pads[1]))
        elif pads[1] == 0.0:
            keep = (_harmless(pads[0]), True)
        else:
            keep = (_harmless(pads[0]) and not _harmless(pads[1]), False)
        values = [v if ok else out.forced(v, inner, 0.0) for v, ok in zip(values, keep, strict=True)]
    return [out.cast(value, dtype) for value in values]


def _storage(out: Values, node: Node) -> frozenset[str]:
    """Types the operands have in memory. A computed operand counts as its inputs' 16-bit type, or as the other
    operand's, as in PyTorch, where both have one type; as float32 where the program multiplies in float32, or nothing
    says more. Two that are loaded in types that nothing is computed with are multiplied as float16, which has all of
    their numbers."""
    operands = [out.nodes[name] for name in node.inputs]
    if all(one.kind is Kind.LOAD and out.block.tensor(one.tensor).dtype in STORED for one in operands):
        return frozenset({"f16"})
    loaded: set[str] = set()
    computed: set[str] = set()
    for name in node.inputs:
        below = out.facts.storage[name]
        if out.nodes[name].kind is Kind.LOAD:
            loaded |= below
        else:
            computed |= {"f32"} if node.f32 or not below else below
    if not node.f32 and (loaded | computed) - {"f32"}:
        computed.discard("f32")
    return frozenset(loaded | computed)


def _harmless(pad: Pad | None) -> bool:
    """Is 0 times what the lane holds 0?"""
    return pad is None or (pad is not Unknown.ANY if isinstance(pad, Unknown) else isfinite(pad))
