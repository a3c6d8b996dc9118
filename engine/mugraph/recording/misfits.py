"""What a region's guard would refuse of a recorded call. What a recording does not say counts as fitting."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from mugraph.ir.numbers import number_in
from mugraph.ir.ranges import FIXED, DynamicSize, Product, largest_point
from mugraph.ir.region import Named, Region
from mugraph.recording.memory import Seen
from mugraph.recording.shown import argument, shown, trains

GRADIENT = "a gradient is wanted"


def misfits(region: Region, seen: Seen, bound: frozenset[str] = frozenset(), *, gpu: bool = False) -> Iterator[str]:
    """Each in words, in the order that a guard asks: "x is f32, the kernel is for f16".

    bound: arguments that the function binds anew: a recording does not say what they are at the region. gpu: the kernel
    would run on one
    """
    call = seen.call
    live_ins = _tensors(region)
    known = [one for one in live_ins if _root(one.expression) not in bound]
    tensors = [
        (live_in, found)
        for live_in in known
        if (found := shown(seen, live_in.expression, _self_name(region))) is not None
    ]
    values = {live_in.value for live_in, _ in tensors}
    others = [(one.expression, region.values[one.value]) for one in live_ins if one.value not in values]
    if any(found.wants_gradient for _, found in tensors) or any(
        trains(seen, expression, info.dtype, info.shape) for expression, info in others
    ):
        yield GRADIENT
    if gpu and call.devices and all(device.partition(":")[0] == "cpu" for device in call.devices):
        yield "the tensors are on the CPU"
    for live_in in known:
        if live_in.value not in values and argument(seen, live_in.expression) == "None":
            yield f"{live_in.expression} is None, the kernel is for a tensor"
    made = region.dynamic
    for name, of in made.arguments.items() if made is not None else ():
        if made is not None and (why := _outside(made, of, seen, name)) is not None:
            yield why
    for guard in region.guards:
        if (why := _refused(guard, seen, bound)) is not None:
            yield why
    for live_in, found in tensors:
        name, info = live_in.expression, region.values[live_in.value]
        if found.dtype != info.dtype:
            yield f"{name} is {found.dtype}, the kernel is for {info.dtype}"
        if not _fits(region, live_in.value, found.shape):
            yield f"{name} has shape {_listed(found.shape)}, the kernel is for {_listed(info.shape)}"
        elif found.strides is not None and not _laid_out(region, live_in.value, found.shape, found.strides):
            yield f"{name} has strides {_listed(found.strides)}, the kernel is for {_listed(info.strides)}"


def part_inside(region: Region, seen: Seen) -> float:
    """Of calls with many values of whole numbers, the part whose values the region's sizes allow. They are taken to be
    spread evenly between the least and the largest."""
    part, made = 1.0, region.dynamic
    for name, of in made.arguments.items() if made is not None else ():
        if made is not None and name in seen.call.spans:
            (first, last), (least, largest) = seen.call.spans[name], of.ends(made.ranges)
            part *= max(0, min(last, largest) - max(first, least) + 1) / (last - first + 1)
    return part


def _outside(made: DynamicSize, of: Product, seen: Seen, name: str) -> str | None:
    """Why a whole number among the arguments is none that the region's sizes allow; None where one of its values is."""
    least, largest = of.ends(made.ranges)
    number = seen.call.numbers.get(name)
    first, last = seen.call.spans.get(name, (least, largest)) if number is None else (number, number)
    if first <= largest and least <= last:
        return None
    has = f"{first} to {last}" if first < last else str(first)
    return f"{name} is {has}, the kernel is for {least} to {largest}"


def _refused(guard: str, seen: Seen, bound: frozenset[str]) -> str | None:
    """Why a guard on an argument fails: `mask is None`, `scale == 2`, `mode in ('a', 'b')`, `mask.dim() == 2`."""
    match ast.parse(guard, mode="eval").body:
        case ast.Compare(ast.Name(name), [ast.Is() | ast.Eq() | ast.In()], [wanted]) if name not in bound:
            found = argument(seen, name)
            allowed = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
            said = [ast.unparse(one) for one in allowed]
            if found is None or found in said or not all(isinstance(one, ast.Constant) for one in allowed):
                return None
            return f"{name} is {found}, the kernel is for {' or '.join(said)}"
        case parsed:
            read = (node.value for node in ast.walk(parsed) if isinstance(node, ast.Attribute))
            names = (one.id for one in read if isinstance(one, ast.Name) and one.id not in bound)
            absent = next((name for name in names if argument(seen, name) == "None"), None)
            return None if absent is None else f"{absent} is None, the kernel is for a tensor"


def unknown(region: Region, seen: Seen, bound: frozenset[str]) -> bool:
    """Whether the region reads a tensor of which the recording of this call says nothing: one that the function has
    made before, or a part of an object that was not pictured."""
    own = _self_name(region)
    return any(
        _root(one.expression) in bound or (_root(one.expression) != own and shown(seen, one.expression, own) is None)
        for one in _tensors(region)
    )


def _tensors(region: Region) -> list[Named]:
    """Its live-ins but for numbers, of which any will do."""
    return [one for one in region.live_ins if number_in(one.expression) is None]


def _root(expression: str) -> str:
    """ "self" of "self.norm.weight"."""
    return re.split(r"[.\[]", expression, maxsplit=1)[0]


def _self_name(region: Region) -> str | None:
    """None in a function of no class: an argument is what it is called then."""
    return region.function_args[0] if "." in region.function and region.function_args else None


def _fits(region: Region, value: int, shape: Sequence[int]) -> bool:
    """A dimension that varies with declared sizes is a product of such as are in their ranges."""
    wanted, made = region.values[value].shape, region.dynamic
    if len(shape) != len(wanted):
        return False
    for dim, (seen, size) in enumerate(zip(shape, wanted, strict=True)):
        products = made.shapes.get(value) if made is not None else None
        of = products[dim] if products is not None else FIXED
        if made is not None and of:
            least = of.at({one.name: one.least for one in made.ranges})
            if seen % of.factor or not least <= seen <= of.at(largest_point(made.ranges)):
                return False
        elif seen != size:
            return False
    return True


def _laid_out(region: Region, value: int, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """The stride of a dimension of size 1 addresses nothing. Those that vary with a size are unknown here."""
    if region.dynamic is not None and value in region.dynamic.strides:
        return True
    wanted = region.values[value].strides
    return all(size == 1 or one == other for size, one, other in zip(shape, strides, wanted, strict=True))


def _listed(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"
