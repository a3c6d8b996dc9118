"""Parts of tensors that a loop walks along, as `deltaA[:, i]`: what a region of the loop's body reads.

With the part as what it finds, the region is one for every iteration. With the whole tensor it is one for one `i`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from mugraph.trace.regions.replacement_unit import Unit
from mugraph.trace.regions.scope import Scope
from mugraph.trace.run.tape import Record
from mugraph.trace.syntax.nodes import number_of
from mugraph.trace.syntax.statements import Loop, in_own_scope, loaded_names, own_statements, stored_names

Parts = Mapping[int, ast.Subscript]
"""Value number -> the expression that it is the result of."""


def loop_parts(scope: Scope, unit: Unit, records: Sequence[Record], produced: Collection[int]) -> Parts:
    """Of the unit's records, those that take a part, at a number that an enclosing loop changes, of a tensor that was
    there before. The expression means at the unit's beginning what it means where it stands.

    produced: values that the unit computes
    """
    roots: Sequence[ast.AST] = unit.statements if unit.expression is None else [unit.expression]
    moving = _moving(scope, unit, roots)
    if not moving:
        return {}
    stored = stored_names(unit.statements)
    nodes = {number_of(n): n for root in roots for n in in_own_scope(root) if isinstance(n, ast.Subscript)}
    found: dict[int, ast.Subscript] = {}
    for record in records:
        site = record.site
        if record.target != "Tensor.__getitem__" or site.activation != unit.activation.index or not site.nodes:
            continue
        node = nodes.get(site.nodes[-1])
        if node is None or len(record.inputs) != 1 or record.inputs[0] in produced or not _is_plain(node):
            continue
        names = loaded_names([node])
        if names & moving and not names & stored:
            found[record.outputs[0]] = node
    return found


def names_without(unit: Unit, parts: Parts, read: set[str]) -> set[str]:
    """Of the names that the unit reads, those it reads elsewhere than in the parts."""
    inside = {id(node) for part in parts.values() for node in ast.walk(part)}
    roots: Sequence[ast.AST] = unit.statements if unit.expression is None else [unit.expression]
    every = (node for root in roots for node in ast.walk(root))
    return read & {node.id for node in every if isinstance(node, ast.Name) and id(node) not in inside}


def _moving(scope: Scope, unit: Unit, roots: Sequence[ast.AST]) -> set[str]:
    """Names of whole numbers that a loop around the unit changes."""
    first, names = number_of(roots[0]), unit.activation.steps[unit.first].names
    loops = [
        one
        for statement in scope.function(unit.activation).body
        for one in own_statements(statement)
        if isinstance(one, Loop) and any(number_of(n) == first for n in ast.walk(one) if isinstance(n, type(roots[0])))
    ]
    return {name for name in stored_names(loops) if type(names.get(name)) is int}


def _is_plain(node: ast.Subscript) -> bool:
    """A name, or attributes of one, at an index of numbers and slices that names and arithmetic say."""
    base = node.value
    while isinstance(base, ast.Attribute):
        base = base.value
    allowed = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Slice, ast.Tuple, ast.operator, ast.unaryop,
               ast.expr_context)  # fmt: skip
    return isinstance(base, ast.Name) and all(isinstance(part, allowed) for part in ast.walk(node.slice))
