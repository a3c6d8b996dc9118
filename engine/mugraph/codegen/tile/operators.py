"""The text of each tile operator over values that are already emitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, prod

from mugraph.codegen.kernel import Rejected
from mugraph.codegen.tile.analyses import Analyses
from mugraph.codegen.tile.axes import MAX_TILE, Dim, Plan, Role
from mugraph.codegen.tile.constants import Constants
from mugraph.codegen.tile.dims import product_dims
from mugraph.codegen.tile.index import Indices, subscript
from mugraph.codegen.tile.masks import MaskText
from mugraph.codegen.tile.nodes import Node, Nodes, TileKind
from mugraph.codegen.tile.pads import ANY, VALID, Pad, Unknown, elementwise, summed
from mugraph.codegen.tile.text import Assign, Block, Expr, Item, Line, Prec, Ref, Region, Value, assigned, uses
from mugraph.codegen.tile.windows import window_masks
from mugraph.ir.block import BlockGraph
from mugraph.ops.unary import UNARY

TRITON_TYPE = {"f16": "tl.float16", "bf16": "tl.bfloat16", "f32": "tl.float32"}
_SYMBOL = {TileKind.ADD: " + ", TileKind.SUB: " - ", TileKind.MUL: " * ", TileKind.DIV: " / "}


class Operators(ABC):
    """Values and expressions; the loops around them are the emitter's."""

    def __init__(
        self, block: BlockGraph, plan: Plan, nodes: Nodes, facts: Analyses, order: Sequence[Dim],
        indices: Indices, constants: Constants,
    ) -> None:  # fmt: skip
        self.block = block
        self.plan = plan
        self.nodes = nodes
        self.facts = facts
        self.order = tuple(order)
        self.indices = indices
        self.constants = constants
        self.masks = MaskText(plan, indices)
        self._loads: list[tuple[Value, Node]] = []
        self._names: dict[str, str] = {}

    @abstractmethod
    def need(self, name: str, region: Region) -> Value:
        """The value of node `name`, usable in `region`."""

    @abstractmethod
    def whole_max(self, node: Node, region: Region) -> Value:
        """A row maximum that no loop closes."""

    # Values

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
        self, name: str, dims: tuple[Dim, ...], pads: dict[Dim, Pad], region: Region, expr: Expr, *, named: bool = False
    ) -> Value:
        """A float32 value of `region`, computed where its text stands now."""
        value = Value(name, dims, "f32", pads, region, uses(expr, region), named)
        region.items.append(Assign(value))
        return value

    def f32(self, value: Value) -> Value:
        return self.cast(value, "f32")

    def cast(self, value: Value, dtype: str) -> Value:
        """`value` in another type, converted once, in its own region."""
        if value.dtype in (dtype, ""):
            return value
        if dtype not in value.variants:
            expr = uses(Expr((Ref(value, Prec.ATOM), f".to({TRITON_TYPE[dtype]})")), value.region)
            converted = Value(self.fresh(f"{value.name}_{dtype}"), value.dims, dtype, value.pads, value.region, expr)
            value.region.items.append(Assign(converted))
            value.variants[dtype] = converted
        return value.variants[dtype]

    def forced(self, value: Value, dim: Dim, neutral: float) -> Value:
        """`value` with `neutral` in the lanes beyond the end of `dim`."""
        if dim not in value.dims or value.pads.get(dim, neutral) == neutral:
            return value
        key = f"{dim.name}:{neutral}"
        if key not in value.variants:
            mask = self.indices.mask[dim] + self.indices.broadcast(dim, value.dims)
            text = "0.0" if neutral == 0.0 else 'float("-inf")'
            expr = uses(Expr((f"tl.where({mask}, ", Ref(value), f", {text})")), value.region)
            pads = {**value.pads, dim: neutral}
            kept = Value(self.fresh(f"{value.name}_masked"), value.dims, value.dtype, pads, value.region, expr)
            value.region.items.append(Assign(kept))
            value.variants[key] = kept
        return value.variants[key]

    # Operators

    def operator(self, node: Node, region: Region) -> Value:
        match node.kind:
            case TileKind.LOAD:
                return self._load(node, region)
            case TileKind.CONST:
                return self._constant(node, region, node.name)
            case TileKind.SUM | TileKind.AMAX:
                return self._reduced(node, region)
            case TileKind.KEEP:
                return self._keep(node, region)
            case TileKind.MASK:
                dims = self.dims(node)
                expr = Expr((f"tl.where({self.masks.condition(node, dims)}, 1.0, 0.0)",))
                pads: dict[Dim, Pad] = {dim: Unknown.FINITE for dim in dims if dim.padded(self.plan)}
                return self.define(self.value_name(node), dims, pads, region, expr)
            case TileKind.ROWMAX:
                return self.whole_max(node, region)
            case TileKind.DOT:
                pads = self.dot_pads(node, region)
                return self.define(self.value_name(node), self.dims(node), pads, region, self.dot(node, region))
            case _:
                return self._elementwise(node, region)

    def value_name(self, node: Node) -> str:
        """One name per node, in whichever regions it is computed."""
        if node.name not in self._names:
            self._names[node.name] = self.fresh(node.name)
        return self._names[node.name]

    def _load(self, node: Node, region: Region) -> Value:
        tensor = self.block.tensor(node.tensor)
        dims = self.dims(node)
        pads: dict[Dim, Pad] = {dim: 0.0 for dim in dims if dim.padded(self.plan)}
        named = node if node.tensor in self.nodes else replace(node, name=node.tensor)
        name = self.value_name(named)
        value = Value(name, dims, tensor.dtype, pads, region, Expr(()), named=True)
        region.items.append(Assign(value))
        self._loads.append((value, node))
        return value

    def finish_loads(self, root: Region) -> None:
        """Write the loads, when it is known how often each tensor is read and in which type it is used."""
        at = {value: position for position, value in enumerate(assigned(root.items))}
        self._loads.sort(key=lambda load: at[load[0]])
        count: dict[str, int] = {}
        for _, node in self._loads:
            count[node.tensor] = count.get(node.tensor, 0) + 1
        left = dict(count)
        for value, node in self._loads:
            left[node.tensor] -= 1
            value.expr = Expr((self._load_text(value, node, again=left[node.tensor] > 0),))
            converted = value.variants.get("f32")
            if converted is not None and value.uses == 1:
                converted.expr = Expr((f"{value.expr.parts[0]}.to(tl.float32)",))
                converted.name, converted.named = value.name, True
                value.uses, value.named = 0, False

    def _load_text(self, value: Value, node: Node, *, again: bool) -> str:
        tensor = self.block.tensor(node.tensor)
        arguments = [self.indices.pointer(tensor, value.dims)]
        outside = [self.indices.masks(value.dims), *window_masks(tensor, value.dims, self.indices)]
        mask = " & ".join(test for test in outside if test)
        if mask:
            arguments += [f"mask={mask}", "other=0.0"]
        if again:
            arguments.append('eviction_policy="evict_last"')
        elif self._read_once(value, node):
            arguments.append('eviction_policy="evict_first"')
        return f"tl.load({', '.join(arguments)})"

    def _read_once(self, value: Value, node: Node) -> bool:
        """No other block and no other iteration reads these elements, so the cache need not keep them."""
        tensor = self.block.tensor(node.tensor)
        grid = [axis for axis, p in self.plan.items() if p.role is Role.GRID]
        shared = tensor.source and any(t.source == tensor.source for t in self.block.tensors if t is not tensor)
        strides = tensor.axis_strides(self.block.sizes)
        if tensor.windows:  # neighbouring positions share elements
            return False
        own = all(strides.get(axis) for axis in [*grid, *value.region.bound])
        return bool(grid) and own and not shared

    def _constant(
        self, node: Node, region: Region, name: str, reduced: frozenset[str] = frozenset(), role: str = ""
    ) -> Value:
        """role: what to call it where it has no name of its own."""
        wanted = role if role and node.name.rstrip("_0123456789") == "c" else node.name
        value = Value(name, (), "", {}, region, Expr((self.constants.text(wanted, node.value, reduced),)))
        value.inlined = str(value.expr.parts[0])
        return value

    def _operands(self, node: Node, region: Region) -> list[Value]:
        values: list[Value] = []
        for at, name in enumerate(node.inputs):
            source = self.nodes[name]
            if source.kind is TileKind.CONST:
                others = (self.facts.reduced[other] for i, other in enumerate(node.inputs) if i != at)
                scaling = node.kind in (TileKind.MUL, TileKind.DIV)
                reduced = frozenset[str]().union(*others) if scaling else frozenset[str]()
                limit = node.kind in (TileKind.MAX, TileKind.MIN)
                role = "scale" if scaling else "limit" if limit else "eps" if 0 < source.value < 0.01 else "offset"
                values.append(self._constant(source, region, name, reduced, role))
            else:
                values.append(self.f32(self.need(name, region)))
        return values

    def _elementwise(self, node: Node, region: Region) -> Value:
        values = self._operands(node, region)
        dims = self.dims(node)
        index = [subscript(value.dims, dims) for value in values]
        match node.kind:
            case TileKind.ADD | TileKind.SUB:
                a, b = values
                parts = (Ref(a, Prec.ADD, index[0]), _SYMBOL[node.kind], Ref(b, Prec.MUL, index[1]))
                expr = Expr(parts, Prec.ADD)
            case TileKind.DIV if values[1].dtype and len(values[1].dims) < len(dims):
                a, b = values
                expr = Expr((Ref(a, Prec.MUL, index[0]), " * (1.0 / ", Ref(b, Prec.ATOM), f"){index[1]}"), Prec.MUL)
            case TileKind.MUL if (negated := self._negated(node)) is not None:
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
        pads = self.pads(node, values)
        return self.define(self.value_name(node), dims, pads, region, expr)

    def _negated(self, node: Node) -> int | None:
        """The position of y where the product is -1 * y."""
        factors = [self.nodes[name] for name in node.inputs]
        minus = [factor.kind is TileKind.CONST and factor.value == -1.0 for factor in factors]
        return minus.index(False) if any(minus) and not all(minus) else None

    def _keep(self, node: Node, region: Region) -> Value:
        value = self.f32(self.need(node.inputs[0], region))
        condition = self.masks.condition(self.nodes[node.inputs[1]], value.dims)
        other = "0.0" if node.value == 0.0 else 'float("-inf")'
        expr = Expr((f"tl.where({condition}, ", Ref(value), f", {other})"))
        pads: dict[Dim, Pad] = {}
        for dim, pad in value.pads.items():
            pads[dim] = elementwise(node.kind, "", (pad,)) if node.value == 0.0 else pad if pad == -inf else ANY
        return self.define(self.value_name(node), value.dims, pads, region, expr)

    def pads(self, node: Node, values: Sequence[Value]) -> dict[Dim, Pad]:
        """What the padded lanes of an element-wise result hold."""
        result: dict[Dim, Pad] = {}
        for dim in self.order:
            if any(dim in value.pads for value in values):
                args = tuple(self._pad(name, value, dim) for name, value in zip(node.inputs, values, strict=False))
                result[dim] = elementwise(node.kind, node.fn, args)
        return result

    def _pad(self, name: str, value: Value, dim: Dim) -> Pad:
        if self.nodes[name].kind is TileKind.CONST:
            return self.nodes[name].value
        return value.pads.get(dim, VALID)

    def _reduced(self, node: Node, region: Region) -> Value:
        value = self.need(node.inputs[0], region)
        over = [dim for dim in value.dims if node.over.intersection(dim.axes)]
        if not over:  # only a scalar index is reduced: its loop's accumulator does that
            return value
        value = self.f32(value)
        for dim in over:
            value = self.forced(value, dim, 0.0 if node.kind is TileKind.SUM else -inf)
        pads = {dim: summed(pad) for dim, pad in value.pads.items() if dim not in over}
        total = self._largest(value, over) if node.kind is TileKind.AMAX else self.reduction("tl.sum", value, over)
        return self.define(self.value_name(node), self.dims(node), pads, region, total)

    def _largest(self, value: Value, over: Sequence[Dim]) -> Expr:
        """NaN where an element is NaN, as PyTorch's: `tl.max` alone would pass over it."""
        value.named = True  # it is written three times
        largest = self.reduction("tl.max", value, over)
        is_nan = ("(", Ref(value), " != ", Ref(value), ").to(tl.int32)")
        found = [text for part in largest.parts for text in (is_nan if isinstance(part, Ref) else (part,))]
        return Expr(("tl.where(", *found, ' > 0, float("nan"), ', *largest.parts, ")"))

    def reduction(self, function: str, value: Value, over: Sequence[Dim]) -> Expr:
        """`function` over the given dimensions, innermost first."""
        if not over:
            return Expr((Ref(value, Prec.MUL),), Prec.MUL)
        if len(over) == len(value.dims):
            return Expr((f"{function}(", Ref(value), ")"))
        axes = sorted((value.dims.index(dim) for dim in over), reverse=True)
        head = f"{function}(" * len(axes)
        return Expr((head, Ref(value), "".join(f", axis={axis})" for axis in axes)))

    # Products

    def dot(self, node: Node, region: Region, accumulator: str = "") -> Expr:
        """`tl.dot`, its left operand the one whose side comes first in the kernel's order."""
        product = product_dims(node, self.nodes, self.plan, self.order)
        at = {dim: position for position, dim in enumerate(self.order)}
        operands = self._dot_operands(node, region, product.inner)
        if at[product.left] > at[product.right]:
            operands.reverse()
        texts: list[str | Ref] = []
        for position, value in enumerate(operands):
            natural = (value.dims[1] if position == 0 else value.dims[0]) == product.inner
            texts += [Ref(value)] if natural else ["tl.trans(", Ref(value), ")"]
            texts.append(", ")
        texts[-1] = f", {accumulator}" if accumulator else ""
        if operands[0].dtype == "f32":
            # float16 and bfloat16 both fit tf32 without loss; float32 programs keep their precision.
            exact = "f32" in self._storage(node)
            texts.append(f', input_precision="{"ieee" if exact else "tf32"}"')
        return Expr(("tl.dot(", *texts, ")"))

    def dot_pads(self, node: Node, region: Region) -> dict[Dim, Pad]:
        """What the padded lanes of a product hold; its operands are what `dot` takes."""
        product = product_dims(node, self.nodes, self.plan, self.order)
        values = self._dot_operands(node, region, product.inner)
        return {dim: summed(pad, VALID) for value in values for dim, pad in value.pads.items() if dim != product.inner}

    def _dot_operands(self, node: Node, region: Region, inner: Dim) -> list[Value]:
        """The operands in their storage type, exactly 0 beyond the end of the summed dimension."""
        values = [self.need(name, region) for name in node.inputs]
        pads = [value.pads.get(inner) for value in values]
        if inner in values[0].pads or inner in values[1].pads:
            if pads[0] == 0.0:
                keep = (True, _harmless(pads[1]))
            elif pads[1] == 0.0:
                keep = (_harmless(pads[0]), True)
            else:
                keep = (_harmless(pads[0]) and not _harmless(pads[1]), False)
            values = [v if ok else self.forced(v, inner, 0.0) for v, ok in zip(values, keep, strict=True)]
        storage = self._storage(node)
        dtype = next(iter(storage)) if len(storage) == 1 else "f32"
        return [self.cast(value, dtype) for value in values]

    def _storage(self, node: Node) -> frozenset[str]:
        """Types the operands have in memory. A computed operand counts as its inputs' 16-bit type, as in PyTorch; as
        float32 where the program multiplies in float32."""
        types: set[str] = set()
        for name in node.inputs:
            below = self.facts.storage[name]
            if self.nodes[name].kind is not TileKind.LOAD:
                below = frozenset({"f32"}) if node.f32 else below - {"f32"} or below
            types |= below
        return frozenset(types)

    # Stores

    def store(self, node: Node, region: Region) -> Item:
        tensor = self.block.tensor(node.tensor)
        value = self.cast(self.need(node.inputs[0], region), tensor.dtype)
        dims = self.dims(node)
        if value.dtype == "" or set(value.dims) != set(dims):
            raise Rejected(f"output {tensor.name} has other axes than the value stored to it.")
        mask = self.indices.masks(dims)
        parts = (f"tl.store({self.indices.pointer(tensor, dims)}, ", Ref(value), f", mask={mask})" if mask else ")")
        line = Line("", uses(Expr(parts), region))
        grid = [axis for axis, p in self.plan.items() if p.role is Role.GRID]
        missing = [self.indices.grid.pids[axis] for axis in grid if axis not in node.axes]
        if not missing:
            return line
        tests = [f"{pid} == 0" for pid in missing]  # every block along these axes has the same value
        return Block(f"if {tests[0] if len(tests) == 1 else ' & '.join(f'({t})' for t in tests)}", [line])

    def shape(self, dims: Sequence[Dim]) -> str:
        extents = [" * ".join(self.indices.names.block[axis] for axis in dim.axes) for dim in dims]
        return f"({', '.join(extents)},)" if len(extents) == 1 else f"({', '.join(extents)})"


def _harmless(pad: Pad | None) -> bool:
    """0 times it is 0."""
    return pad is None or (pad is not Unknown.ANY if isinstance(pad, Unknown) else isfinite(pad))


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
