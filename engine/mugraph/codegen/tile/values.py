"""The values of a kernel while it is written: their names, dimensions and types, and what their padded lanes hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod

from mugraph.codegen.tile.analyses import Analyses
from mugraph.codegen.tile.axes import MAX_TILE, Dim, Plan
from mugraph.codegen.tile.constants import Constants
from mugraph.codegen.tile.index import Indices
from mugraph.codegen.tile.masks import MaskText
from mugraph.codegen.tile.meeting import ALONE, Meeting
from mugraph.codegen.tile.nodes import Node, Nodes
from mugraph.codegen.tile.pads import ANY, Pad, Unknown
from mugraph.codegen.tile.text import Assign, Expr, Prec, Ref, Region, Value, number, uses
from mugraph.ir.block import TF32, BlockGraph, Precision
from mugraph.ir.dtypes import ELEMENTS
from mugraph.ir.kernel import Rejected
from mugraph.ir.mantissa import SINGLES
from mugraph.ir.tf32 import ROUNDED


class Values(ABC):
    """What operators are written with; the loops around them are the emitter's."""

    def __init__(
        self, block: BlockGraph, plan: Plan, nodes: Nodes, facts: Analyses, order: Sequence[Dim],
        indices: Indices, constants: Constants, precision: Precision, meeting: Meeting = ALONE, evicts: bool = False,
    ) -> None:  # fmt: skip
        self.block = block
        self.plan = plan
        self.nodes = nodes
        self.facts = facts
        self.order = tuple(order)
        self.indices = indices
        self.constants = constants
        self.precision: Precision = precision
        self.meeting = meeting
        self.masks = MaskText(plan, indices)
        self.evicts = evicts
        """Is what is read once the first to leave the cache?"""
        self.loads: list[tuple[Value, Node]] = []  # to be written last: memory.py
        self.rows: dict[tuple[str, Region], dict[int, Value]] = {}  # of tensors that are loaded: lookups.py
        self._names: dict[str, str] = {}

    @abstractmethod
    def need(self, name: str, region: Region) -> Value:
        """The value of node `name`, usable in `region`."""

    def fresh(self, name: str) -> str:
        return self.indices.names.scope.unique(name)

    def dims(self, node: Node) -> tuple[Dim, ...]:
        """Dimensions of a node's tile in the kernel's order. Raises Rejected where Triton allows no tile so large."""
        dims = tuple(dim for dim in self.order if node.axes.intersection(dim.axes))
        elements = prod(dim.extent(self.plan) for dim in dims)
        if elements > MAX_TILE:
            raise Rejected(f"the tile of {node.name} has {elements} elements; Triton allows {MAX_TILE}.")
        return dims

    def define(
        self,
        name: str,
        dims: tuple[Dim, ...],
        pads: dict[Dim, Pad],
        region: Region,
        expr: Expr,
        *,
        named: bool = False,
        dtype: str = "f32",
    ) -> Value:
        """A float32 value of `region`, or one of another type, computed where its text stands now."""
        value = Value(name, dims, dtype, pads, region, uses(expr, region), named)
        region.items.append(Assign(value))
        return value

    def f32(self, value: Value) -> Value:
        return self.cast(value, "f32")

    def cast(self, value: Value, dtype: str) -> Value:
        """`value` in another type, converted once, in its own region."""
        if value.dtype in (dtype, ""):
            return value
        if dtype not in value.variants:
            text = self.by_bits(value, dtype) or f"{{x}}.to({ELEMENTS[dtype].triton})"
            before, after = text.split("{x}")
            expr = uses(Expr((before, Ref(value, Prec.ATOM), after)), value.region)
            converted = Value(self.fresh(f"{value.name}_{dtype}"), value.dims, dtype, value.pads, value.region, expr)
            value.region.items.append(Assign(converted))
            value.variants[dtype] = converted
        return value.variants[dtype]

    def by_bits(self, value: Value, dtype: str) -> str | None:
        """The text that makes numbers of this type of its bits, where that is faster than to convert them."""
        if dtype != "f32" or not self._only_sums:
            return None
        return next((text for one, text in SINGLES.items() if one == value.dtype), None)

    @cached_property
    def _only_sums(self) -> bool:
        """Does it reduce, without products on tensor cores? Then each number is converted for itself."""
        kinds = [node.kind for node in self.nodes.values()]
        return any(kind.reduces for kind in kinds) and not any(kind.contracts for kind in kinds)

    def tf32(self, value: Value) -> Value:
        """`value`, of float32, rounded to the nearest number of tf32, once, in its own region."""
        if TF32 not in value.variants:
            first, *rest = ROUNDED.split("{x}")
            parts = [first, *(part for text in rest for part in (Ref(value, Prec.ATOM), text))]
            pads: dict[Dim, Pad] = {
                dim: pad if isinstance(pad, Unknown) or pad == 0.0 else ANY for dim, pad in value.pads.items()
            }
            expr = uses(Expr(tuple(parts)), value.region)
            rounded = Value(self.fresh(f"{value.name}_tf32"), value.dims, "f32", pads, value.region, expr)
            value.region.items.append(Assign(rounded))
            value.variants[TF32] = rounded
        return value.variants[TF32]

    def forced(self, value: Value, dim: Dim, neutral: float) -> Value:
        """`value` with `neutral` in the lanes beyond the end of `dim`."""
        if dim not in value.dims or value.pads.get(dim, neutral) == neutral:
            return value
        key = f"{dim.name}:{neutral}"
        if key not in value.variants:
            mask = self.indices.mask[dim] + self.indices.broadcast(dim, value.dims)
            expr = uses(Expr((f"tl.where({mask}, ", Ref(value), f", {number(neutral)})")), value.region)
            pads = {**value.pads, dim: neutral}
            kept = Value(self.fresh(f"{value.name}_masked"), value.dims, value.dtype, pads, value.region, expr)
            value.region.items.append(Assign(kept))
            value.variants[key] = kept
        return value.variants[key]

    def value_name(self, node: Node) -> str:
        """One name per node, in whichever regions it is computed."""
        if node.name not in self._names:
            self._names[node.name] = self.fresh(node.name)
        return self._names[node.name]

    def shape(self, dims: Sequence[Dim]) -> str:
        extents = [" * ".join(self.indices.names.block[axis] for axis in dim.axes) for dim in dims]
        return f"({', '.join(extents)},)" if len(extents) == 1 else f"({', '.join(extents)})"

    def filled(self, dims: Sequence[Dim], value: str) -> str:
        """A tile of float32 `value`, a number of Triton's text; the value itself where there are no dimensions."""
        if not dims:
            return value
        shape = self.shape(dims)
        return f"tl.zeros({shape}, dtype=tl.float32)" if value == "0.0" else f"tl.full({shape}, {value}, tl.float32)"
