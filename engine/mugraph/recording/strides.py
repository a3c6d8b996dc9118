"""How tensors of recorded calls lie in memory, as products of the sizes that vary: a query that is a view of what one
projection made has strides that no shape says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.ranges import Point, Product, product_of
from mugraph.recording.memory import Recorded
from mugraph.recording.shown import contiguous
from mugraph.trace.syntax.shapes import BadShapes, TensorSpec, parse_spec


def laid(calls: Sequence[Recorded], points: Sequence[Point]) -> dict[str, tuple[Product, ...]] | None:
    """The strides of each argument that does not lie row by row in all of the calls; a stride that does not vary is a
    product of no sizes. None where they are no products of the sizes, or an argument is no tensor with dimensions.

    points: the sizes of each call
    """
    found: dict[str, tuple[Product, ...]] = {}
    for name in dict.fromkeys(name for one in calls for name in one.strides or ()):
        specs = [_tensor(one, name) for one in calls]
        shapes = [spec.shape for spec in specs if spec is not None]
        if len(shapes) < len(calls):
            return None
        strides = [
            tuple((one.strides or {}).get(name, contiguous(shape))) for one, shape in zip(calls, shapes, strict=True)
        ]
        products = [_stride(at, shapes, strides, points) for at in range(len(shapes[0]))]
        known = [of for of in products if of is not None]
        if len(known) < len(products):
            return None
        found[name] = tuple(known)
    return found


def _tensor(call: Recorded, name: str) -> TensorSpec | None:
    try:
        spec = parse_spec(call.arguments[name])
    except (BadShapes, KeyError):
        return None
    return spec if isinstance(spec, TensorSpec) else None


def _stride(
    at: int, shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]], points: Sequence[Point]
) -> Product | None:
    """Of one dimension. Where it has one element its stride says nothing."""
    telling = [n for n, shape in enumerate(shapes) if shape[at] != 1] or [0]
    values = [strides[n][at] for n in telling]
    of = product_of(values, [points[n] for n in telling])
    return replace(of, factor=values[0]) if of is not None and not of else of
