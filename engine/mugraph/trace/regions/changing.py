"""What a unit reads of the module's state that functions of the program change.

Conditions say what such a name has once the run is over, which may be another value than the unit read: a global that
a function binds anew, or the keys of a table that fills. Such a unit is refused. An item of a table is another matter:
what was read is known of each read (guards.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set

from mugraph.trace.regions.bound_names import called_by
from mugraph.trace.regions.replacement_unit import Offence, Unit, step_to
from mugraph.trace.regions.scope import Scope
from mugraph.trace.regions.user_code import global_names
from mugraph.trace.syntax.changed_names import last_name
from mugraph.trace.syntax.nodes import number_of


def changing(scope: Scope, unit: Unit) -> Offence | None:
    """The unit's first step that reads such a name, itself or in a function that it calls."""
    changed = scope.user_code.changed_names
    rebound, filled = changed.rebound, changed.filled
    if not rebound and not filled:
        return None
    activation = unit.activation
    own = activation.steps[unit.first].names.keys()
    roots = unit.statements if unit.expression is None else (unit.expression,)
    for root in roots:
        name = _read([root], rebound - own, filled, own)
        if name is not None:
            numbers = range(unit.first, unit.after)
            steps = [step for step in numbers if activation.steps[step].node >= number_of(root)]
            return Offence(steps[0] if steps else unit.first, _REASON.format(name))
    for inner in called_by(scope, unit):
        function = scope.function(inner)
        free = global_names(function)
        name = _read([function], rebound & free, filled, inner.steps[0].names.keys() - free if inner.steps else ())
        if name is not None:
            return Offence(step_to(unit, inner), _REASON.format(name))
    return None


_REASON = "reads {}, which the program changes while it runs"


def _read(nodes: Iterable[ast.AST], rebound: Set[str], filled: Set[str], local: Iterable[str]) -> str | None:
    """A name that is changed and read here. local: names that are no module's"""
    own = {*local}
    for node in (part for root in nodes for part in ast.walk(root)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in rebound:
            return node.id
        if isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                name = next(last_name(right), None)
                if isinstance(operator, ast.In | ast.NotIn) and name in filled and not _is_local(right, own):
                    return name
    return None


def _is_local(node: ast.expr, own: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in own
