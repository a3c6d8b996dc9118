"""The text of running sums: within one tile, and through the tiles of a loop, which carries the sum from one to the
next."""

from __future__ import annotations

from mugraph.codegen.tile.axes import Dim, Role
from mugraph.codegen.tile.index import subscript
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.pads import ANY, Pad, summed
from mugraph.codegen.tile.text import Expr, Line, Prec, Ref, Region, Value, uses
from mugraph.codegen.tile.values import Values
from mugraph.ir.kernel import Rejected
from mugraph.kinds import Kind


def running(out: Values, node: Node, region: Region) -> Value:
    """Raises Rejected where the loop around it is over another axis, or goes the other way."""
    assert isinstance(node.kind, Kind)
    (axis,) = node.over
    value = out.f32(out.need(node.inputs[0], region))
    along = next((dim for dim in value.dims if axis in dim.axes), None)
    if along is not None and len(along.axes) > 1:
        raise Rejected(f"{node.name} runs along {axis}, which is one dimension with {', '.join(along.axes)}.")
    if along is not None:
        value = out.forced(value, along, 0.0)
    parts = _in_tile(node.kind, value, along)
    pads: dict[Dim, Pad] = {dim: ANY if dim == along else summed(pad) for dim, pad in value.pads.items()}
    name, dims = out.value_name(node), out.dims(node)
    if out.plan[axis].role is not Role.LOOP:
        return out.define(name, dims, pads, region, Expr(parts))
    if region.axis != axis or region.parent is None:
        raise Rejected(f"{node.name} runs along {axis} and varies in the loop over {region.axis or 'nothing'} inside.")
    if region.backwards is not None and region.backwards != node.kind.backwards:
        raise Rejected(f"the loop over {axis} has running sums in both directions.")
    region.backwards = node.kind.backwards
    rest = tuple(dim for dim in dims if dim != along)
    carried = Value(out.fresh(f"{node.name}_carried"), rest, "f32", {}, region.parent, Expr(()), named=True)
    region.before.append(Line(carried.name, Expr((out.filled(rest, "0.0"),))))
    text = Expr((Ref(carried, index=subscript(rest, dims)), " + ", *parts), Prec.ADD)
    found = out.define(name, dims, pads, region, text, named=True)
    if along is None:
        region.items.append(Line(carried.name, uses(Expr((Ref(value),)), region), "+="))
        return found
    region.items.append(Line(carried.name, uses(_end(out, found, along, node.kind), region)))
    return found


def _end(out: Values, found: Value, along: Dim, kind: Kind) -> Expr:
    """The element that the next tile goes on from. What is masked away is 0, so the sum stays as it is to the end.

    The tile's own sum would be one number less to choose, but a sum of what is loaded, added to what a loop carries and
    uses otherwise as well, is what Triton's pass for the locality of threads makes invalid (seen in 3.6 and 3.7).
    """
    (size,) = out.shape((along,)).strip("(,)").split(",")
    place = "0" if kind.backwards else f"{size} - 1"
    is_end = f"(tl.arange(0, {size}) == {place}){subscript((along,), found.dims)}"
    head = (f"tl.sum(tl.where({is_end}, ", Ref(found), ", 0.0)")
    return Expr((*head, ")" if len(found.dims) == 1 else f", axis={found.dims.index(along)})"))


def _in_tile(kind: Kind, value: Value, along: Dim | None) -> tuple[str | Ref, ...]:
    """Along one dimension of the tile; of a tile of one element that element."""
    if along is None:
        return (Ref(value, Prec.MUL),)
    turned = ", reverse=True" if kind.backwards else ""
    return (f"{kind.triton}(", Ref(value), f", axis={value.dims.index(along)}{turned})")
