"""Names that generated code would read where the user's own code may not have bound them yet.

The test of a region is made whatever way the function took to its line. What the region reads on the way that was
traced (`if kind == "attend": x = x + kept`) may have no value on another one, where the user's code does not read it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.scope import Scope
from mugraph.trace.syntax.binding import surely_bound, surely_read, surely_read_by
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import own_statements, stored_names


def unsure_of(scope: Scope, unit: Unit, expressions: Iterable[str]) -> list[str]:
    """Those of the function's local names, in the expressions, that may be unbound where the unit begins, in order."""
    function = scope.function(unit.activation)
    step = unit.activation.steps[unit.first]
    at = next((s for top in function.body for s in own_statements(top) if number_of(s) == step.node), None)
    if at is None:
        return []
    given = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    local = (stored_names(function.body) & step.names.keys()) - given
    read = surely_read(unit.statements) if unit.expression is None else surely_read_by(unit.expression)
    unsure = sorted(local - surely_bound(function, at) - read) if local else []
    if not unsure:
        return []
    texts = list(expressions)
    return [name for name in unsure if any(_reads(text, name) for text in texts)]


def _reads(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.'\"]){re.escape(name)}(?![\w'\"])", text) is not None
