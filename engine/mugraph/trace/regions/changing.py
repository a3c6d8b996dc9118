"""What a unit reads of the module's state that functions of the program change.

Conditions say what such a name has once the run is over, which may be another value than the unit read: a global that
a function binds anew, or the keys of a table that fills. Such a unit is refused. An item of a table is another matter:
what was read is known of each read (guards.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from mugraph.trace.regions.bound_names import called_by
from mugraph.trace.regions.replacement_unit import Offence, Unit, step_to
from mugraph.trace.regions.scope import Scope
from mugraph.trace.regions.user_code import global_names
from mugraph.trace.run.tape import File
from mugraph.trace.syntax.nodes import number_of

_WRITING = frozenset(
    {"append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "setdefault", "add", "discard"}
)


def changing(scope: Scope, unit: Unit) -> Offence | None:
    """The unit's first step that reads such a name, itself or in a function that it calls."""
    rebound, written = _changed(scope.files)
    if not rebound and not written:
        return None
    activation = unit.activation
    own = activation.steps[unit.first].names.keys()
    roots = unit.statements if unit.expression is None else (unit.expression,)
    for root in roots:
        name = _read([root], rebound - own, written, own)
        if name is not None:
            numbers = range(unit.first, unit.after)
            steps = [step for step in numbers if activation.steps[step].node >= number_of(root)]
            return Offence(steps[0] if steps else unit.first, _REASON.format(name))
    for inner in called_by(scope, unit):
        function = scope.function(inner)
        free = global_names(function)
        name = _read([function], rebound & free, written, inner.steps[0].names.keys() - free if inner.steps else ())
        if name is not None:
            return Offence(step_to(unit, inner), _REASON.format(name))
    return None


_REASON = "reads {}, which the program changes while it runs"


def _changed(files: Sequence[File]) -> tuple[set[str], set[str]]:
    """Names of modules that functions bind anew; last names of containers that they write to."""
    rebound, written = set[str](), set[str]()
    for file in files:
        if not file.is_own:
            continue
        for node in ast.walk(file.source.tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    rebound |= {n for part in ast.walk(node) if isinstance(part, ast.Global) for n in part.names}
                case ast.Subscript(value=base, ctx=ast.Store() | ast.Del()):
                    written |= {*_last_name(base)}
                case ast.Call(func=ast.Attribute(value=base, attr=method)) if method in _WRITING:
                    written |= {*_last_name(base)}
                case _:
                    pass
    return rebound, written


def _read(nodes: Iterable[ast.AST], rebound: set[str], written: set[str], local: Iterable[str]) -> str | None:
    """A name that is changed and read here. local: names that are no module's"""
    own = {*local}
    for node in (part for root in nodes for part in ast.walk(root)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in rebound:
            return node.id
        if isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                name = next(_last_name(right), None)
                if isinstance(operator, ast.In | ast.NotIn) and name in written and not _is_local(right, own):
                    return name
    return None


def _is_local(node: ast.expr, own: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in own


def _last_name(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case _:
            return
