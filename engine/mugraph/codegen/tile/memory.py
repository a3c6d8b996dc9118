"""The text of loads and stores."""

from __future__ import annotations

from dataclasses import replace

from mugraph.codegen.tile.axes import Dim, Role
from mugraph.codegen.tile.halves import load_halves
from mugraph.codegen.tile.lookups import row_texts, row_values
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pads import Pad
from mugraph.codegen.tile.text import Assign, Block, Expr, Item, Line, Ref, Region, Value, assigned, uses
from mugraph.codegen.tile.values import Values
from mugraph.codegen.tile.windows import found_places, window_masks
from mugraph.ir.dtypes import COMPUTED, WRITTEN
from mugraph.ir.kernel import Rejected


def load(out: Values, node: Node, region: Region) -> Value:
    """A value whose text `finish_loads` writes."""
    halves = load_halves(out, node, region)
    if halves is not None:
        return halves
    tensor = out.block.tensor(node.tensor)
    dims = out.dims(node)
    out.rows[node.tensor, region] = row_values(out, tensor, region)
    pads: dict[Dim, Pad] = {dim: 0.0 for dim in dims if dim.padded(out.plan)}
    named = node if node.tensor in out.nodes else replace(node, name=node.tensor)
    name = out.value_name(named)
    value = Value(name, dims, tensor.dtype, pads, region, Expr(()), named=True)
    region.items.append(Assign(value))
    out.loads.append((value, node))
    return value


def finish_loads(out: Values, root: Region) -> None:
    """Write the loads, when it is known how often each tensor is read and in which type it is used."""
    at = {value: position for position, value in enumerate(assigned(root.items))}
    out.loads.sort(key=lambda one: at[one[0]])
    count: dict[str, int] = {}
    for _, node in out.loads:
        count[node.tensor] = count.get(node.tensor, 0) + 1
    left = dict(count)
    for value, node in out.loads:
        left[node.tensor] -= 1
        value.expr = Expr((_load_text(out, value, node, again=left[node.tensor] > 0),))
        for dtype, kind in COMPUTED.items():
            converted = value.variants.get(dtype)
            if converted is not None and value.uses == 1 and out.by_bits(value, dtype) is None:
                converted.expr = Expr((f"{value.expr.parts[0]}.to({kind.triton})",))
                converted.name, converted.named = value.name, True
                value.uses, value.named = 0, False


def _load_text(out: Values, value: Value, node: Node, *, again: bool) -> str:
    tensor = out.block.tensor(node.tensor)
    rows = row_texts(out.rows[node.tensor, value.region], value.dims)
    places = {**found_places(tensor, value.dims, out.indices), **rows}
    arguments = [out.indices.pointer(tensor, value.dims, places)]
    outside = [out.indices.masks(value.dims), *window_masks(tensor, value.dims, out.indices)]
    outside.append(out.masks.unread(node, out.nodes))
    mask = " & ".join(test for test in outside if test)
    if mask:
        arguments += [f"mask={mask}", "other=0.0"]
    if node.tensor in out.meeting.fresh:  # PTX has either a cache operator or a priority of eviction
        arguments.append('cache_modifier=".cg"')
    elif again:
        arguments.append('eviction_policy="evict_last"')
    elif out.evicts and _read_once(out, value, node):
        arguments.append('eviction_policy="evict_first"')
    return f"tl.load({', '.join(arguments)})"


def _read_once(out: Values, value: Value, node: Node) -> bool:
    """No other block and no other iteration reads these elements, so the cache need not keep them."""
    tensor = out.block.tensor(node.tensor)
    grid = [axis for axis, p in out.plan.items() if p.role is Role.GRID]
    others = [other for other in out.block.tensors if other is not tensor]
    shared = any(tensor.is_within(other) or other.is_within(tensor) for other in others)
    strides = tensor.axis_strides(out.block.sizes)
    if tensor.windows:  # neighbouring positions share elements
        return False
    own = all(strides.get(axis) for axis in [*grid, *value.region.bound])
    return bool(grid) and own and not shared


def store(out: Values, node: Node, region: Region) -> Item:
    """The line that stores a value; raises Rejected where its axes are not the output's."""
    tensor = out.block.tensor(node.tensor)
    value = out.need(node.inputs[0], region)
    # A whole number is converted as it is stored: what is none is not told from it by the text.
    value = out.f32(value) if WRITTEN[tensor.dtype].is_whole else out.cast(value, tensor.dtype)
    dims = out.dims(node)
    if value.dtype == "" or set(value.dims) != set(dims):
        raise Rejected(f"output {tensor.name} has other axes than the value stored to it.")
    mask = out.indices.masks(dims)
    parts = (f"tl.store({out.indices.pointer(tensor, dims)}, ", Ref(value), f", mask={mask})" if mask else ")")
    line = Line("", uses(Expr(parts), region))
    grid = [axis for axis, p in out.plan.items() if p.role is Role.GRID]
    missing = [out.indices.grid.pids[a] for a in grid if a not in node.axes and a not in out.meeting.copied]
    if not missing:
        return line
    tests = [f"{pid} == 0" for pid in missing]  # every block along these axes has the same value
    return Block(f"if {tests[0] if len(tests) == 1 else ' & '.join(f'({t})' for t in tests)}", [line])
