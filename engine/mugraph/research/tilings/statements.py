"""A tiling expression with its statements: where tiles are loaded, computed and stored (MCFuser §III-B).

A computation stands in its rightmost related loop. A memory statement stands beside its computation, or is hoisted to
its own rightmost related loop; a loop of extent 1 is dead, and removing it lets memory statements move further out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from mugraph.ir.placement import loop_paths
from mugraph.research.tilings.expressions import Contractions, Expression, without


class Access(StrEnum):
    LOAD = "L"
    COMPUTE = "C"
    STORE = "S"


@dataclass(frozen=True, slots=True)
class Statement:
    """One primitive operation on a tile of a tensor. by: the contraction it belongs to"""

    access: Access
    tensor: str
    by: str


@dataclass(frozen=True, slots=True)
class Scope:
    """A loop's body in order; axis is "" for the whole kernel."""

    axis: str
    body: tuple[Scope | Statement, ...]


Path = tuple[str, ...]
"""Axes of the loops around something, outermost first."""


def expand(chain: Contractions, expression: Expression, *, hoist: bool = True) -> Scope | None:
    """The expression's program; None where no order of its statements computes the chain.

    A contraction inside a reduction of what it reads uses partial sums, which is right because contractions are linear
    in each operand. Not right is a computation repeated by a loop that is not around its consumer: it would be summed
    as often; and a cycle, where a loop is both before and after something beside it.
    """
    places = _places(chain, expression, hoist=hoist)
    if _repeats(chain, places):
        return None
    return _scope((), places, _before(chain, places))


def trips(chain: Contractions, expression: Expression, tiles: Mapping[str, int]) -> dict[Statement, int]:
    """How often each hoisted statement runs with these tiles, over the whole grid. Raises ValueError where the
    expression is not valid."""
    left, extents = at_tiles(chain, expression, tiles)
    if expand(chain, left) is None:
        raise ValueError("this tiling expression does not compute the chain")
    return {
        statement: prod(extents[axis] for axis in path) for statement, path in _places(chain, left, hoist=True).items()
    }


def at_tiles(
    chain: Contractions, expression: Expression, tiles: Mapping[str, int]
) -> tuple[Expression, dict[str, int]]:
    """The expression without its loops of extent 1, and the extents of all."""
    extents = {axis: -(-size // tiles[axis]) for axis, size in chain.sizes.items()}
    return without(expression, (axis for axis, extent in extents.items() if extent == 1)), extents


def written(scope: Scope) -> str:
    """ "mh(n(k(L_A,L_B,C_C),L_D,C_E),S_E)" """
    parts = [f"{item.access}_{item.tensor}" if isinstance(item, Statement) else written(item) for item in scope.body]
    inner = ",".join(parts)
    return f"{scope.axis}{inner}" if len(parts) == 1 and isinstance(scope.body[0], Scope) else _around(scope, inner)


def _around(scope: Scope, inner: str) -> str:
    return f"{scope.axis}({inner})" if scope.axis else inner


def compute_places(chain: Contractions, expression: Expression) -> dict[str, Path]:
    """Contraction -> the loops around its computation: down to the rightmost related one."""
    return {op.name: _rightmost(expression, op.loops) for op in chain.ops}


def _places(chain: Contractions, expression: Expression, *, hoist: bool) -> dict[Statement, Path]:
    """In the order of the program."""
    found: dict[Statement, Path] = {}
    computed = compute_places(chain, expression)

    def put(access: Access, tensor: str, by: str) -> None:
        hoisted = _rightmost(expression, chain.axes_of(tensor))
        found[Statement(access, tensor, by)] = hoisted if hoist else computed[by]

    for op in chain.ops:
        for name in op.inputs:
            if name in chain.tensors:
                put(Access.LOAD, name, op.name)
        found[Statement(Access.COMPUTE, op.name, op.name)] = computed[op.name]
        if op in chain.outputs:
            put(Access.STORE, op.name, op.name)
    return found


def _rightmost(expression: Expression, axes: Iterable[str]) -> Path:
    paths = loop_paths(expression)
    return max((paths[axis] for axis in axes if axis in paths), key=len, default=())


def _repeats(chain: Contractions, places: Mapping[Statement, Path]) -> bool:
    """Does a loop that sums nothing into a result stand around it, but not around all that use it?"""
    for op in chain.ops:
        place = places[Statement(Access.COMPUTE, op.name, op.name)]
        users = [set(places[Statement(Access.COMPUTE, user.name, user.name)]) for user in chain.consumers[op.name]]
        common = set(place).intersection(*users) if users else set(op.axes)
        if set(place) - common - chain.reduced[op.name]:
            return True
    return False


def _before(chain: Contractions, places: Mapping[Statement, Path]) -> list[tuple[Statement, Statement]]:
    """Order dependencies: loads, the computation of what it reads, the computation, its store."""
    pairs: list[tuple[Statement, Statement]] = []
    for statement in places:
        compute = Statement(Access.COMPUTE, statement.by, statement.by)
        if statement.access is Access.LOAD:
            pairs.append((statement, compute))
        elif statement.access is Access.STORE:
            pairs.append((compute, statement))
        else:
            pairs += [(compute, Statement(Access.COMPUTE, u.name, u.name)) for u in chain.consumers[statement.by]]
    return pairs


def _scope(path: Path, places: Mapping[Statement, Path], before: Sequence[tuple[Statement, Statement]]) -> Scope | None:
    """The body of the loop at the end of `path`: its statements and the loops directly in it."""
    depth = len(path)
    child = {  # statement in it, at any depth -> what stands for it here: the axis of a loop, or itself
        statement: place[depth] if len(place) > depth else statement
        for statement, place in places.items()
        if place[:depth] == path
    }
    waiting = list(dict.fromkeys(child.values()))  # in the program's order where there is a choice
    needs = {item: {child[a] for a, b in before if a in child and child.get(b) == item} - {item} for item in waiting}
    body: list[Scope | Statement] = []
    while waiting:
        item = next((item for item in waiting if not needs[item] & set(waiting)), None)
        if item is None:
            return None
        waiting.remove(item)
        inner = item if isinstance(item, Statement) else _scope((*path, item), places, before)
        if inner is None:
            return None
        body.append(inner)
    return Scope(path[-1] if path else "", tuple(body))
