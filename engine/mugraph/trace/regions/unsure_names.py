"""Names that generated code would read where the user's own code may not have bound them yet.

The test of a region is made whatever way the function took to its line. What the region reads on the way that was
traced (`if kind == "attend": x = x + kept`) may have no value on another one, where the user's code does not read it.
Or it reads it, and raises, but only after it has written in place to a tensor that others see.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Record
from mugraph.trace.syntax.binding import surely_bound, surely_read, surely_read_by
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import own_statements, stored_names


def unsure_of(scope: Scope, unit: Unit, expressions: Iterable[str], write: Record | None) -> list[str]:
    """Those of the function's local names, in the expressions, that may be unbound where the unit begins, in order.

    write: the unit's first that others see, if it makes one
    """
    function = scope.function(unit.activation)
    step = unit.activation.steps[unit.first]
    at = next((s for top in function.body for s in own_statements(top) if number_of(s) == step.node), None)
    if at is None:
        return []
    given = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    local = (stored_names(function.body) & step.names.keys()) - given
    if write is not None:
        read = _read_before(scope, unit, write)
    else:
        read = surely_read(unit.statements) if unit.expression is None else surely_read_by(unit.expression)
    unsure = sorted(local - surely_bound(function, at) - read) if local else []
    if not unsure:
        return []
    texts = list(expressions)
    return [name for name in unsure if any(_reads(text, name) for text in texts)]


def _read_before(scope: Scope, unit: Unit, write: Record) -> set[str]:
    """Names that the unit surely reads before it makes the write. Expressions are evaluated in the order of their text;
    of a unit with branches or loops before the write, nothing is told."""
    site = write.site.within(unit.activation.index)
    if site is None:
        return set()
    at = site.nodes[-1] if site.nodes else unit.activation.steps[site.step].node
    last = scope.here.numbering.last[at - scope.here.numbering.base]
    if unit.expression is not None:
        return surely_read_by(unit.expression, last)
    read: set[str] = set()
    for statement in unit.statements:
        if number_of(statement) > last or not isinstance(statement, _STRAIGHT):
            break
        if statement.value is not None:  # what is read of the targets is read last
            read |= surely_read_by(statement.value, last) - stored_names([*unit.statements])
    return read


_STRAIGHT = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def _reads(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.'\"]){re.escape(name)}(?![\w'\"])", text) is not None
