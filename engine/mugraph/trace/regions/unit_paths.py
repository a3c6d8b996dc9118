"""How a unit may name the tensors and objects that it reads."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import torch

from mugraph.trace.regions.paths import Paths
from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Event, Loaded
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import in_own_scope, loaded_names, stored_names

_OF_KEYS = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context, ast.JoinedStr,
    ast.FormattedValue,
)  # fmt: skip
"""What a subscript is written with: numbers, names, arithmetic, `f"layer{i}"`."""
_HOLDERS = (list, tuple, dict, torch.nn.ParameterList, torch.nn.ModuleList)


def paths_of(scope: Scope, unit: Unit, events: Sequence[Event]) -> Paths:
    """Expressions for what the function could name before the unit; what the unit itself says comes first."""
    activation = unit.activation
    snapshot = {name: value for name, value in activation.steps[unit.first].names.items() if name.isidentifier()}
    stored = set[str]() if unit.expression is not None else stored_names(unit.statements)
    nodes: Sequence[ast.AST] = unit.statements if unit.expression is None else [unit.expression]
    own = {number_of(node): node for root in nodes for node in in_own_scope(root) if isinstance(node, ast.expr)}
    said: list[tuple[str, object]] = []
    taken = stored | ({"getattr"} & {*snapshot, *activation.globals})
    for event in events:
        if isinstance(event, Loaded) and event.site.activation == activation.index:
            node = own.get(event.node)
            if node is not None and _is_path(node) and not (loaded_names([node]) & taken):
                said.append((ast.unparse(node), event.value))
    used = loaded_names(nodes)
    ordered = sorted(snapshot.items(), key=lambda named: named[0] not in used)  # stable: arguments come first
    outside: list[tuple[str, object]] = [
        (name, value)
        for name, value in activation.globals.items()
        if name not in snapshot
        and name.isidentifier()
        and (isinstance(value, torch.Tensor) or (name in used and type(value) in _HOLDERS))
    ]
    return Paths.of([*ordered, *said, *outside])


def _is_path(node: ast.expr) -> bool:
    """A name followed by attributes and subscripts without calls, other than `getattr(layers, f"layer{i}")`."""
    if isinstance(node, ast.Attribute):
        return _is_path(node.value)
    if isinstance(node, ast.Subscript):
        return _is_path(node.value) and all(isinstance(part, _OF_KEYS) for part in ast.walk(node.slice))
    match node:
        case ast.Call(ast.Name("getattr"), [owner, key], []):
            return _is_path(owner) and all(isinstance(part, _OF_KEYS) for part in ast.walk(key))
        case _:
            return isinstance(node, ast.Name)
