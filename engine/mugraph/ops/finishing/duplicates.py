"""Values that a program would compute twice: once for each of the axes that they are asked for at.

What is read twice, as keys that are the values too, is loaded twice, and so are tensors that are joined side by side:
the loads are all there is to it. Anything else is computed once, by another unit, and loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import Duplicated, NotLowerable
from mugraph.ops.algebra.rolled import number_of_alike
from mugraph.ops.finishing.shared_operators import SharedOperator


def refuse_duplicates(
    builder: Builder, place: Mapping[Node, int], live: Collection[int], flat: Sequence[SharedOperator]
) -> None:
    """Raises Duplicated, and NotLowerable where parts that are one value (rolled.py) have it.

    live: positions of operators that an output depends on
    """
    order = [output for call in builder.calls for output in call.outputs]
    for value in (*map(number_of_alike, reversed(order)), *reversed(order)):
        roles = {place[node]: dims for dims, node in builder.demands.get(value, {}).items() if node in place}
        computed = [dims for i, dims in roles.items() if i in live and not _is_read(i, flat)]
        if any(not _apart(builder, one, two) for one, two in combinations(computed, 2)):
            if value < 0:
                raise NotLowerable("a value of each of several parts would be computed twice")
            raise Duplicated(value)


def _is_read(i: int, flat: Sequence[SharedOperator]) -> bool:
    """Is it a leaf, or the sum of tensors that are joined side by side, each with zeros where the others are?"""
    return flat[i].kind.is_leaf or (_is_sum(i, flat) and all(_is_side(part, flat) for part in flat[i].inputs))


def _is_side(i: int, flat: Sequence[SharedOperator]) -> bool:
    if flat[i].kind is Kind.LOAD:
        return any(window.slides and window.has_zeros for window in flat[i].windows)
    return _is_masked(i, flat) or (_is_sum(i, flat) and _is_read(i, flat))


def _is_masked(i: int, flat: Sequence[SharedOperator]) -> bool:
    """Is it a tensor times masks, as a single row is that others are joined to?"""
    parts = flat[i].inputs
    kinds = [flat[part].kind for part in parts]
    known = all(
        kind in (Kind.LOAD, Kind.MASK) or _is_product(part, flat) for kind, part in zip(kinds, parts, strict=True)
    )
    if not _is_product(i, flat) or not known:
        return False
    inner = all(not _is_product(part, flat) or _is_masked(part, flat) for part in parts)
    return inner and any(kind is not Kind.LOAD for kind in kinds)


def _is_sum(i: int, flat: Sequence[SharedOperator]) -> bool:
    return flat[i].kind.is_elementwise and flat[i].kind.commutes and bool(flat[i].kind.shifted_by)


def _is_product(i: int, flat: Sequence[SharedOperator]) -> bool:
    return flat[i].kind.is_elementwise and flat[i].kind.commutes and bool(flat[i].kind.scaled_by)


def _apart(builder: Builder, one: AtomDims, two: AtomDims) -> bool:
    """Are these different parts of a value?"""
    atoms = builder.atoms
    for a, b in zip(atoms.resolve_dims(one), atoms.resolve_dims(two), strict=True):
        (first, last), (other_first, other_last) = atoms.bounds(a), atoms.bounds(b)
        if last < other_first or other_last < first:
            return True
        if [atoms.size[atom] for atom in a] == [atoms.size[atom] for atom in b]:
            sections = [(atoms.sections.get(x), atoms.sections.get(y)) for x, y in zip(a, b, strict=True)]
            if any(x and y and not x.inner and not y.inner and x.start != y.start for x, y in sections):
                return True
    return False
