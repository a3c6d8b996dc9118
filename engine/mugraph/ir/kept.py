"""Values that count only where masks are 1: what is joined along an axis, each part of which is kept in its own places.

A concatenation is a sum of parts, each a product with masks that say where it lies. In a thread block that has one
place of the joined axis, all parts but one are multiplied by 0, and what they are computed from need not be loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import product
from math import prod
from typing import Protocol, TypeVar

from mugraph.ir.ops import Kind, Op

_MOST = 1 << 12
"""Places along the axes of masks, up to which they are counted."""


class _IsKind(Protocol):
    @property
    def neutral(self) -> float | None: ...
    @property
    def absorbing(self) -> float | None: ...


class Operator(Protocol):
    """Of a block graph, or of a tile."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> _IsKind: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...


Some = TypeVar("Some", bound=Operator)


def is_product(operator: Operator) -> bool:
    return operator.kind.neutral == 1.0 and operator.kind.absorbing == 0.0


def conjuncts(mask: Some, operators: Mapping[str, Some]) -> tuple[Some, ...]:
    """The masks that a value is the product of; nothing where it is no such product."""
    if mask.kind is Kind.MASK:
        return (mask,)
    parts = [conjuncts(operators[name], operators) for name in (mask.inputs if is_product(mask) else ())]
    return tuple({one.name: one for part in parts for one in part}.values()) if parts and all(parts) else ()


def kept_by(operators: Mapping[str, Some], masks: Callable[[Some, str], Iterable[str]]) -> dict[str, frozenset[str]]:
    """Value -> masks, each of which every use of the value is multiplied by: where one is 0, any value will do.

    operators: inputs before uses. masks: by which an operator keeps one of its inputs, by name
    """
    found: dict[str, frozenset[str]] = {}
    for operator in reversed(list(operators.values())):
        after = found.get(operator.name, frozenset[str]())
        for name in operator.inputs:
            here = after.union(masks(operator, name))
            found[name] = found[name] & here if name in found else here
    return found


def factors(operators: Mapping[str, Op]) -> Callable[[Op, str], Iterable[str]]:
    """For `kept_by`, of a block graph: the masks that are the other factor of a product."""

    def masks(op: Op, name: str) -> Iterable[str]:
        if not is_product(op) or conjuncts(op, operators):
            return ()
        return [one.name for other in op.inputs if other != name for one in conjuncts(operators[other], operators)]

    return masks


def share(masks: Iterable[Op], sizes: Mapping[str, int], single: Iterable[str]) -> float:
    """Of the thread blocks, those at whose place all of these masks are 1. single: axes of which a block has one place.
    Masks of other axes are 1 somewhere in every block, as far as this counts."""
    alone = frozenset(single)
    counted = [mask for mask in masks if not mask.fn and places(mask, sizes) <= alone]
    axes = sorted({axis for mask in counted for axis in places(mask, sizes)})
    if not axes or prod(sizes[axis] for axis in axes) > _MOST:
        return 1.0
    forms = tuple((_at(mask.rows, axes), _at(mask.columns, axes), int(mask.value)) for mask in counted)
    return _share(forms, tuple(sizes[axis] for axis in axes))


def places(mask: Op, sizes: Mapping[str, int]) -> frozenset[str]:
    """Axes that it varies along."""
    return frozenset(axis for axis in (*mask.rows, *mask.columns) if sizes[axis] > 1)


def _at(side: Iterable[str], axes: list[str]) -> tuple[int, ...]:
    return tuple(axes.index(axis) for axis in side if axis in axes)


@lru_cache(maxsize=1024)
def _share(forms: tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...], extents: tuple[int, ...]) -> float:
    def place(side: tuple[int, ...], at: tuple[int, ...]) -> int:
        number = 0
        for axis in side:
            number = number * extents[axis] + at[axis]
        return number

    every = list(product(*map(range, extents)))
    ones = sum(all(place(columns, at) <= place(rows, at) + more for rows, columns, more in forms) for at in every)
    return max(1, ones) / len(every)
